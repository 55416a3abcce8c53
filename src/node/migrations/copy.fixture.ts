import type { MigrationConfiguration } from '../../api/kubevirt/migration-configuration.ts';
import { ManualClock, seededRandom, silentLogger } from '../../env/test.ts';
import type { Machine } from '../../hypervisor/hypervisor.ts';
import { SMALL_MACHINE } from '../../hypervisor/machine.fixture.ts';
import type { DevicePlace } from '../../hypervisor/machine.ts';
import type { HostedModel } from '../../hypervisor/model/hosted-model.ts';
import type { ModelTraits } from '../../hypervisor/model/model-guest.ts';
import { ModelHost } from '../../hypervisor/model/model-host.ts';
import { ModelNetwork } from '../../hypervisor/model/model-network.ts';
import { frozenOptions } from '../../migration/policies/options.ts';
import { Copy } from './copy.ts';
import type { AdoptOptions, CopyContext, CopyHooks } from './copy-options.ts';
import { listenAgain } from './listen-again.ts';
import type { WantedMethod } from './peer.ts';

export const MIB = 2 ** 20;
export const DISK: DevicePlace = { bus: 'virtio', at: 4 };
const SPEC = { ...SMALL_MACHINE, memoryBytes: 1024 * MIB };
const RANGE = { host: 'node-b', firstPort: 100, lastPort: 199 };
const STEP_MS = 10;

export interface CopySceneOptions {
  readonly traits?: Partial<ModelTraits>;
  readonly disks?: readonly DevicePlace[];
  readonly configuration?: MigrationConfiguration;
  readonly isPostCopyPossible?: boolean;
}

/** A model guest of a GiB at one host, a machine that waits for it at another, and 100 MiB each second between them. */
export class CopyScene {
  readonly clock = new ManualClock();
  readonly network = new ModelNetwork(100 * MIB);
  readonly hosts: readonly [ModelHost, ModelHost];
  /** What the copy told, in order: its states as they change, and `still`. */
  readonly told: string[] = [];
  /** By when the guest must have gone over. */
  deadlineMs: number | undefined;
  /** Whether the agent of the target answers when it is asked for the last time. */
  isTargetThere = true;
  /** How many credentials are there to be read. */
  credentialsCount = 0;
  readonly #options: CopySceneOptions;
  #source: Machine | undefined;
  #target: Machine | undefined;
  #copy: Copy | undefined;
  #runs = 0;

  private constructor(options: CopySceneOptions) {
    this.#options = options;
    const host = (seed: number): ModelHost => {
      const env = { clock: this.clock, random: seededRandom(seed) };
      return new ModelHost({ env, latencyMs: () => 1, traits: options.traits ?? {}, network: this.network });
    };
    this.hosts = [host(1), host(2)];
  }

  static async open(options: CopySceneOptions = {}): Promise<CopyScene> {
    const scene = new CopyScene(options);
    scene.#source = await scene.soon(scene.hosts[0].hypervisor(scene.clock).start(SPEC, scene.#run()));
    await scene.soon(scene.source.continue());
    await scene.newTarget();
    return scene;
  }

  get source(): Machine {
    return must(this.#source);
  }

  get target(): Machine {
    return must(this.#target);
  }

  get copy(): Copy {
    return must(this.#copy);
  }

  get link() {
    return this.network.link('node-b');
  }

  /** How many guests are executed at either host. */
  get executing(): readonly number[] {
    return this.hosts.map((host) => [...host.alive].filter(({ isExecuting }) => isExecuting).length);
  }

  /** The source as it is on its host. */
  get sourceModel(): HostedModel {
    return must([...this.hosts[0].alive][0]);
  }

  /** A machine that waits for the guest, in the place of the last one. */
  async newTarget(): Promise<void> {
    const spec = { ...SPEC, incoming: { ramBytes: SPEC.memoryBytes } };
    this.#target = await this.soon(this.hosts[1].hypervisor(this.clock).start(spec, this.#run()));
  }

  /** Opens the target, and begins the copy. */
  async start(): Promise<Copy> {
    const { isPostCopyPossible = true } = this.#options;
    const allowsPostCopy = this.#context.options.allowPostCopy;
    const method: WantedMethod = { allowsPostCopy, isEncrypted: true };
    const ports = await this.soon(
      this.target.migration.listen({
        ...RANGE,
        tls: { directory: '/tls', peer: 'source' },
        disks: this.#context.disks,
        allowsPostCopy: allowsPostCopy && isPostCopyPossible,
        channels: undefined,
      }),
    );
    const opened = { host: RANGE.host, ...ports, isPostCopyPossible };
    this.credentialsCount++;
    const remove = async (): Promise<void> => void this.credentialsCount--;
    const credentials = { tls: { directory: '/tls', peer: 'target' }, remove };
    this.#copy = Copy.start({ ...this.#context, opened, method, credentials });
    return this.#copy;
  }

  /** The agent of the source is another one from now on. */
  async restart(known: AdoptOptions['known'] = {}, startedAtMs?: number): Promise<Copy> {
    this.copy.detach();
    this.source.detach();
    this.#source = await this.soon(this.hosts[0].hypervisor(this.clock).adopt(this.source.run));
    this.#copy = Copy.adopt({ ...this.#context, known, startedAtMs });
    await this.pass(20);
    return this.#copy;
  }

  /** Lets time pass, at most for so long, until the copy is like this. Throws where that does not come. */
  async until(what: (copy: Copy) => boolean, withinMs = 300_000): Promise<void> {
    for (let passedMs = 0; passedMs < withinMs; passedMs += STEP_MS) {
      if (what(this.copy)) return;
      await this.pass(STEP_MS);
    }
    const { state, failure, progress } = this.copy;
    throw new Error(`it did not come to that: ${JSON.stringify({ state, failure, progress, told: this.told })}`);
  }

  async pass(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += STEP_MS) {
      this.clock.advance(STEP_MS);
      for (let turn = 0; turn < 20; turn++) await Promise.resolve();
    }
  }

  /** What comes of a promise once a little time has passed. */
  async soon<T>(promise: Promise<T>): Promise<T> {
    promise.catch(() => undefined);
    await this.pass(100);
    return promise;
  }

  get #context(): CopyContext {
    return {
      env: { clock: this.clock, random: seededRandom(3), log: silentLogger },
      machine: this.source,
      options: frozenOptions(this.#options.configuration ?? {}),
      disks: this.#options.disks ?? [],
      hooks: this.#hooks,
      deadlineMs: () => this.deadlineMs,
    };
  }

  get #hooks(): CopyHooks {
    return {
      onNews: () => {
        const state = this.#copy?.state ?? 'copying';
        if (this.told.findLast((each) => each !== 'still') !== state) this.told.push(state);
      },
      onStill: () => this.told.push('still'),
      isTargetThere: async () => this.isTargetThere,
      listenAgain: async () => {
        if (this.link.state !== 'up') throw new Error('the target does not answer');
        return { host: RANGE.host, port: await listenAgain(this.target.migration, RANGE, this.clock) };
      },
    };
  }

  #run() {
    const instance = `run-${this.#runs++}`;
    return { directory: `/runs/${instance}`, instance };
  }
}

function must<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('the scene is not that far');
  return value;
}
