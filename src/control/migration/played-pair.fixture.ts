import type { HalfVolume } from '../../api/kubevirt/migration-halves.ts';
import { pairKeyOf } from '../../api/kubevirt/validate-migration.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type {
  MigrationPhase,
  VirtualMachineInstanceMigration,
} from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import {
  MIGRATION_FINALIZER,
  MIGRATION_GUEST_LABEL,
  RECEIVER_ANNOTATION,
  SYNCHRONIZATION_FINALIZER,
} from '../../api/kubevirt/well-known.ts';
import { formatTime, type JsonObject, type KubeObject } from '../../api/meta.ts';
import {
  virtualMachineInstanceMigrations as migrations,
  virtualMachineInstances as guests,
} from '../../kube/kubevirt-resources.ts';
import { statusPatch } from '../../kube/status-patch.ts';
import { applySource, applyTarget } from '../../migration/halves/apply.ts';
import { parseSourceHalf, parseTargetHalf } from '../../migration/halves/parse.ts';
import { sourceHalf, targetHalf } from '../../migration/halves/project.ts';
import { nodes, pods } from '../resources.ts';
import type { PlayedAgents } from './played-agents.fixture.ts';

/** One side of a pair: who plays its agents, and what its objects are called. */
export interface PlayedSide {
  readonly agents: PlayedAgents;
  readonly guest: string;
  readonly move: string;
}

const GIBIBYTE = 2 ** 30;

/** For longer than a cluster that was cut off often waits until it dials again. */
const TRIES_MAX = 300;

/**
 * A pair of migrations between two guests, on one server or on two. Plays the agents of both sides, and the
 * synchronization, unless that is real: it carries the halves over, as text, whenever it is told to.
 */
export class PlayedPair {
  readonly source: PlayedSide;
  readonly target: PlayedSide;
  readonly key: string;
  /** Where the synchronization is not played but real, the address at which it is reached. */
  readonly #address: string | undefined;

  constructor(key: string, source: PlayedSide, target: PlayedSide, address?: string) {
    this.key = key;
    this.#address = address;
    this.source = source;
    this.target = target;
  }

  /** A guest that waits to be received. */
  async addReceiver(more: Partial<VirtualMachineInstance> = {}): Promise<void> {
    const { agents, guest } = this.target;
    const { metadata, ...rest } = more;
    const domain = { devices: {}, memory: { guest: '64Mi' } };
    const annotations = { [RECEIVER_ANNOTATION]: 'true' };
    await agents.scene.create(guests, {
      metadata: { name: guest, annotations, ...metadata },
      spec: { domain },
      ...rest,
    });
    await agents.says(guest, { phase: 'WaitingForSync' });
  }

  async send(key = this.key): Promise<void> {
    const { agents, move, guest } = this.source;
    const sendTo = { key, migrationID: key, connectURL: this.#address ?? 'there:9185' };
    await agents.move(move, guest, { sendTo, cause: 'CrossCluster' }, this.#kept(move, guest));
  }

  async receive(key = this.key): Promise<void> {
    const { agents, move, guest } = this.target;
    const receive = { key, migrationID: key };
    await agents.move(move, guest, { receive, cause: 'CrossCluster' }, this.#kept(move, guest));
  }

  /** What each half is to the other, carried over once. */
  async exchange(): Promise<void> {
    if (this.#address !== undefined) return;
    const [source, target] = [await this.#see(this.source), await this.#see(this.target)];
    if (source && target && pairKeyOf(source.migration.spec) !== pairKeyOf(target.migration.spec)) return;
    const [sources, targets] = [
      source && parseSourceHalf(carried(sourceHalf(source))),
      target && parseTargetHalf(carried(targetHalf(target))),
    ];
    for (const parsed of [sources, targets]) if (parsed && 'problem' in parsed) throw new Error(parsed.problem);
    if (target?.guest && sources && 'half' in sources)
      await this.#tell(this.target, target.guest, applySource({ ...target, guest: target.guest }, sources.half));
    if (source?.guest && targets && 'half' in targets)
      await this.#tell(this.source, source.guest, applyTarget({ ...source, guest: source.guest }, targets.half));
    if (source) await this.#letGo(this.source, source.migration, target);
    if (target) await this.#letGo(this.target, target.migration, source);
  }

  /** A half that is over stays until the other one knows. */
  async #letGo(
    side: PlayedSide,
    { metadata, status }: VirtualMachineInstanceMigration,
    other: { migration: VirtualMachineInstanceMigration } | undefined,
  ): Promise<void> {
    const isOver = status?.phase === 'Failed' || status?.phase === 'Succeeded';
    const isKnown = !other || other.migration.status?.phase === status?.phase;
    if (!isOver || !isKnown || !metadata.finalizers?.includes(SYNCHRONIZATION_FINALIZER)) return;
    const finalizers = metadata.finalizers.filter((each) => each !== SYNCHRONIZATION_FINALIZER);
    await side.agents.scene.patch(migrations, side.move, { metadata: { finalizers } });
  }

  /** Lets both sides go on, with all that they have to tell each other, until the check does not throw. */
  async until<T>(check: () => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries++) {
      for (const scene of this.#scenes()) {
        await scene.pass(200, 100);
      }
      await this.exchange();
      try {
        return await check();
      } catch (error) {
        if (tries === TRIES_MAX) throw error;
      }
    }
  }

  /** Lets time pass on both sides. */
  async pass(durationMs: number, stepMs = 10_000): Promise<void> {
    for (let leftMs = durationMs; leftMs > 0; leftMs -= stepMs) {
      for (const scene of this.#scenes()) await scene.pass(Math.min(stepMs, leftMs), stepMs);
      await this.exchange();
    }
  }

  /** Waits for both halves to be in phases. */
  async reach(source: MigrationPhase, target: MigrationPhase): Promise<void> {
    await this.until(async () => {
      const [one, other] = [await this.find(this.source), await this.find(this.target)];
      const found = `${one?.status?.phase ?? '-'} ${other?.status?.phase ?? '-'}`;
      if (found === `${source} ${target}`) return;
      const why = [one, other].map((each) => JSON.stringify(each?.status?.conditions ?? [])).join(' ');
      throw new Error(`the halves are ${found}, not ${source} ${target}: ${why}`);
    });
  }

  /** Waits until both know each other. */
  async meet(): Promise<void> {
    await this.until(async () => {
      for (const side of [this.source, this.target]) {
        const { phase = '' } = (await this.find(side))?.status ?? {};
        if (['', 'Synchronizing', 'WaitingForSync'].includes(phase)) throw new Error(`${side.move} is ${phase}`);
      }
    });
  }

  find({ agents, move }: PlayedSide): Promise<VirtualMachineInstanceMigration | undefined> {
    return agents.scene.find(migrations, move);
  }

  /** The source's agent says what disks the guest has. */
  async measure(volumes: readonly HalfVolume[] = []): Promise<void> {
    await this.until(async () => {
      const state = await this.source.agents.state(this.source.guest);
      if (state.sourceState?.pod === undefined) throw new Error('nobody asks for it');
    });
    const told = { migrationState: { sourceState: { volumes } } } as unknown as JsonObject;
    await this.source.agents.says(this.source.guest, told);
  }

  /** Up to a target pod that runs. */
  async runTarget(
    volumes: readonly HalfVolume[] = [{ name: 'root', sizeBytes: GIBIBYTE, isBlock: false }],
  ): Promise<void> {
    await this.measure(volumes);
    await this.until(() => this.#targetPod());
    await this.target.agents.runTarget(this.target.move);
  }

  async #targetPod(): Promise<void> {
    if (!(await this.target.agents.findTargetPod(this.target.move))) throw new Error('there is no target pod');
  }

  /** The target's agent has its machine waiting. */
  async prepare(): Promise<void> {
    const { agents, guest } = this.target;
    const { targetPod = '', targetNode = '' } = await agents.state(guest);
    const podUID = (await agents.scene.get(pods, targetPod)).metadata.uid ?? '';
    const targetRunner = { node: targetNode, nodeUID: `uid-of-${targetNode}`, podUID };
    await agents.prepare(guest);
    await agents.says(guest, { migrationState: { targetRunner } });
  }

  /** The source's agent reserves, and begins. */
  async begin(): Promise<void> {
    const { agents, guest } = this.source;
    const { rightToRun, migrationState } = (await agents.scene.get(guests, guest)).status ?? {};
    const successor = migrationState?.targetRunner;
    await agents.says(guest, {
      migrationState: { startTimestamp: formatTime(agents.scene.clock.now()), mode: 'PreCopy' },
      rightToRun: { ...rightToRun, successor, across: true } as JsonObject,
    });
  }

  /** The target's agent takes the guest over, in a record that it begins. */
  async take(more: JsonObject = { completed: true }): Promise<void> {
    const { agents, guest } = this.target;
    const { sourceState, targetRunner } = await agents.state(guest);
    const endTimestamp = formatTime(agents.scene.clock.now());
    await agents.says(guest, {
      phase: 'Running',
      rightToRun: { epoch: (sourceState?.epoch ?? 0) + 1, holder: { ...targetRunner } } as JsonObject,
      migrationState: { endTimestamp, targetNodeDomainReadyTimestamp: endTimestamp, downtimeMs: 42, ...more },
    });
  }

  /** The source's agent, once it knows that the target has it, gives the guest away; and its guest is over. */
  async give(): Promise<void> {
    const { agents, guest } = this.source;
    const { rightToRun } = (await agents.scene.get(guests, guest)).status ?? {};
    const holder = { ...rightToRun?.successor };
    const epoch = (rightToRun?.epoch ?? 0) + 1;
    await agents.says(guest, { phase: 'Succeeded', rightToRun: { epoch, holder, successor: null, across: true } });
  }

  /** The target's agent says that it never will. */
  async refuse(failureReason = 'was asked to'): Promise<void> {
    const { agents, guest } = this.target;
    const endTimestamp = formatTime(agents.scene.clock.now());
    await agents.says(guest, { migrationState: { failed: true, completed: true, failureReason, endTimestamp } });
  }

  /** The source's agent keeps its guest. */
  async giveUp(failureReason = 'was asked to'): Promise<void> {
    const { agents, guest } = this.source;
    const endTimestamp = formatTime(agents.scene.clock.now());
    await agents.says(guest, {
      rightToRun: { successor: null, across: null },
      migrationState: { failed: true, completed: true, failureReason, endTimestamp },
    });
  }

  /** Up to the copy. */
  async run(): Promise<void> {
    await this.send();
    await this.receive();
    await this.runTarget();
    await this.copy();
  }

  /** Both agents do what comes after the target's pod runs, until the guest is being copied. */
  async copy(): Promise<void> {
    await this.reach('PreparingTarget', 'PreparingTarget');
    await this.prepare();
    await this.reach('TargetReady', 'TargetReady');
    await this.begin();
    await this.reach('Running', 'Running');
  }

  /** As the webhook and the synchronization leave it. */
  #kept(name: string, guest: string): VirtualMachineInstanceMigration['metadata'] {
    const finalizers = [MIGRATION_FINALIZER, ...(this.#address === undefined ? [SYNCHRONIZATION_FINALIZER] : [])];
    return { name, labels: { [MIGRATION_GUEST_LABEL]: guest }, finalizers };
  }

  #scenes() {
    return new Set([this.source.agents.scene, this.target.agents.scene]);
  }

  async #see(side: PlayedSide): Promise<
    | {
        migration: VirtualMachineInstanceMigration;
        guest: VirtualMachineInstance | undefined;
        node: KubeObject | undefined;
      }
    | undefined
  > {
    const { scene } = side.agents;
    const migration = await this.find(side);
    if (!migration) return undefined;
    const guest = await scene.find(guests, side.guest);
    const { sourceState, targetNode } = guest?.status?.migrationState ?? {};
    const name = side === this.source ? sourceState?.node : targetNode;
    const node = name === undefined ? undefined : await scene.get(nodes, name);
    return { migration, guest, node };
  }

  async #tell({ agents, guest }: PlayedSide, seen: VirtualMachineInstance, next: object | undefined): Promise<void> {
    const body = next && statusPatch(seen, next);
    if (body) await agents.scene.patch(guests, guest, body, 'status');
  }
}

/** As it arrives: nothing but text. */
function carried(half: object): unknown {
  return JSON.parse(JSON.stringify(half));
}
