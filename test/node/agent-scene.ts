import { VirtualMachineInstances } from '../../src/control/vmi/virtual-machine-instances.ts';
import { VirtualMachines } from '../../src/control/vm/virtual-machines.ts';
import { ControlScene, NAMESPACE } from '../../src/control/control.fixture.ts';
import { type LauncherPod, pods } from '../../src/control/resources.ts';
import type { VirtualMachineInstance } from '../../src/api/kubevirt/virtual-machine-instance.ts';
import type { DurableFile, Env } from '../../src/env/ports.ts';
import { seededRandom, silentLogger } from '../../src/env/test.ts';
import type { MachineSpec } from '../../src/hypervisor/machine.ts';
import type { SeenStamp } from '../../src/migration/right-to-run/image-stamps.ts';
import { SMALL_MACHINE } from '../../src/hypervisor/machine.fixture.ts';
import { Client } from '../../src/kube/client.ts';
import { virtualMachineInstances } from '../../src/kube/kubevirt-resources.ts';
import { Manager } from '../../src/kube/manager.ts';
import type { Resource } from '../../src/kube/resource.ts';
import type { Transport } from '../../src/kube/transport.ts';
import { Agent, type AgentOptions } from '../../src/node/agent.ts';
import { FakeHost } from '../../src/node/guests/fake-hypervisor.fixture.ts';
import { MemoryFiles } from '../../src/node/guests/memory-files.fixture.ts';
import { MemoryFile } from '../../src/node/journal/memory-file.fixture.ts';
import type {
  GuestVolumes,
  PreparedVolumes,
  VolumeError,
  VolumeRequest,
} from '../../src/node/volumes/guest-volumes.ts';
import type { ImageStamps } from '../../src/node/volumes/image-stamp-files.ts';
import { Life } from './life.ts';

type AgentPorts = Pick<
  AgentOptions,
  'hypervisor' | 'launchers' | 'specOf' | 'journal' | 'files' | 'logFiles' | 'directory' | 'user'
>;

export const NODE = 'node-a';
export const nodes: Resource = {
  group: '',
  version: 'v1',
  plural: 'nodes',
  kind: 'Node',
  namespaced: false,
};

/** The real controllers, the real agent, and a host that only says it runs machines; the test is the scheduler. */
export class AgentScene extends ControlScene {
  readonly host = new FakeHost();
  readonly journal = new MemoryFile();
  readonly files = new MemoryFiles();
  /** What is wrong with volumes, by name. */
  readonly volumeErrors = new Map<string, VolumeError>();
  /** Why the machine cannot be. */
  specError: Error | undefined;
  /** The claim that the disk of guests is on, where they have one. */
  claim: { readonly name: string; readonly uid: string } | undefined;
  /** What is beside the images of claims, by the claims' UIDs; room where nothing is. */
  readonly stamps = new Map<string, SeenStamp>();
  /** What the agents wrote: `METHOD path`. */
  readonly agentWrites: string[] = [];
  agent: Agent | undefined;
  /** What tells the agents that are started from others of the same name, if anything does. */
  agentId: string | undefined;
  #lives = 0;
  #running: Promise<void> = Promise.resolve();
  #life: Life | undefined;
  #stopAgent: () => Promise<void> = async () => undefined;

  constructor() {
    super(
      (context) => new VirtualMachines(context),
      (context) => new VirtualMachineInstances({ ...context, launcherImage: 'launcher:1' }),
    );
  }

  override async start(): Promise<void> {
    await super.start();
    await this.client.create(nodes, { apiVersion: 'v1', kind: 'Node', metadata: { name: NODE } }, this.signal);
    await this.startAgent();
  }

  override async stop(): Promise<void> {
    await this.stopAgent();
    await super.stop();
  }

  /** What the agent runs on. */
  ports(): AgentPorts {
    return {
      hypervisor: this.host.hypervisor(),
      specOf: (guest) => this.#specOf(guest),
      journal: this.journal,
      files: this.files,
      logFiles: this.files,
      directory: '/data',
    };
  }

  /** Starts an agent, which knows nothing but what its predecessors left on the disk. */
  async startAgent(life = new Life()): Promise<void> {
    const env: Env = { clock: life.clock(this.clock), random: seededRandom(++this.#lives), log: silentLogger };
    const transport: Transport = life.transport(this.clientTransport(), (write) => this.agentWrites.push(write));
    const { hypervisor, journal, files, ...ports } = this.ports();
    const agent = new Agent({
      env,
      client: new Client(transport, 'agent'),
      nodeName: NODE,
      ...(this.agentId === undefined ? {} : { agentId: this.agentId }),
      hypervisor: life.hypervisor(hypervisor),
      volumes: life.port<GuestVolumes>({ prepare: (request) => this.#prepare(request) }),
      journal: life.port<DurableFile>(journal),
      files: life.port<AgentPorts['files']>(files, ['read']),
      stamps: life.port<ImageStamps>(this.#imageStamps()),
      ...ports,
    });
    const stopping = new AbortController();
    const manager = new Manager({ env, name: NODE }).add(...agent.services);
    const running = manager.run(stopping.signal);
    this.#running = running;
    // Who waits for it hears of its failure.
    running.catch(() => undefined);
    this.agent = agent;
    this.#life = life;
    this.#stopAgent = async () => {
      if (life.isOver) return;
      stopping.abort();
      await running;
    };
    await this.settle();
  }

  /** Starts an agent, and waits for its end. */
  async runAgent(): Promise<void> {
    await this.startAgent();
    this.#stopAgent = async () => undefined;
    await this.#running;
  }

  async stopAgent(): Promise<void> {
    await this.#stopAgent();
    this.#stopAgent = async () => undefined;
  }

  /** The agent is gone from one moment to the next. */
  killAgent(): void {
    this.#life?.end();
    this.#stopAgent = async () => undefined;
  }

  /** A guest without a machine that keeps it. */
  makeGuest(spec: Partial<VirtualMachineInstance['spec']> = {}): Promise<VirtualMachineInstance> {
    return this.create(virtualMachineInstances, {
      metadata: { name: 'web' },
      spec: { domain: { devices: {}, memory: { guest: '64Mi' } }, ...spec },
    });
  }

  guest(): Promise<VirtualMachineInstance> {
    return this.get(virtualMachineInstances, 'web');
  }

  /** Binds every pod that has no node; returns the first. */
  async bind(): Promise<LauncherPod> {
    return this.until(async () => {
      const pod = (await this.list(pods)).find(({ spec }) => !spec?.nodeName);
      if (!pod) throw new Error('there is no fresh pod');
      const { name = '' } = pod.metadata;
      const target = { apiVersion: 'v1', kind: 'Node', name: NODE };
      const binding = { apiVersion: 'v1', kind: 'Binding', metadata: { name }, target };
      await this.client.post(pods, NAMESPACE, name, 'binding', binding, this.signal);
      return pod;
    });
  }

  async phaseBecomes(phase: string): Promise<VirtualMachineInstance> {
    return this.until(async () => {
      const guest = await this.guest();
      if (guest.status?.phase !== phase) throw new Error(`the guest is ${guest.status?.phase ?? 'new'}, not ${phase}`);
      return guest;
    });
  }

  async #prepare({ guest }: VolumeRequest): Promise<PreparedVolumes> {
    for (const { name } of guest.spec.volumes ?? []) {
      const error = this.volumeErrors.get(name);
      if (error) throw error;
    }
    return { disks: new Map(), kernel: undefined };
  }

  #specOf(guest: VirtualMachineInstance): MachineSpec {
    if (this.specError) throw this.specError;
    const { claim } = this;
    const place = { bus: 'virtio', at: 1 } as const;
    const disk = { volume: 'data', place, path: '/claim/disk.img', format: 'raw', cache: 'none' } as const;
    return {
      ...SMALL_MACHINE,
      name: `${guest.metadata.namespace ?? ''}/${guest.metadata.name ?? ''}`,
      ...(claim ? { disks: [{ ...disk, claim }] } : {}),
    };
  }

  #imageStamps(): ImageStamps {
    const { stamps } = this;
    return {
      look: async ({ claim }) => ({ stamp: stamps.get(claim.uid) ?? 'blank', isBeside: true }),
      write: async ({ claim }, stamp) => void stamps.set(claim.uid, stamp),
      discard: async ({ claim }) => void stamps.delete(claim.uid),
    };
  }
}
