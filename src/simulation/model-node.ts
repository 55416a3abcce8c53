import type { Env, HostFacts } from '../env/ports.ts';
import type { Hypervisor } from '../hypervisor/hypervisor.ts';
import type { ModelHost } from '../hypervisor/model/model-host.ts';
import type { Client } from '../kube/client.ts';
import type { LocalIdentity } from '../kube/in-process-transport.ts';
import { Manager } from '../kube/manager.ts';
import type { Service } from '../kube/service.ts';
import { NODES_GROUP } from '../machinery/node-user.ts';
import { Agent } from '../node/agent.ts';
import { wantedInterfaces } from '../node/machine/guest-interfaces.ts';
import { machineSpec } from '../node/machine/machine-spec.ts';
import type { CopyCredentials } from '../node/migrations/copy-credentials.ts';
import { PeerError, type Peers, type PeerService } from '../node/migrations/peer.ts';
import type { NodeProfile } from '../node/registration/node-object.ts';
import { registrationServices } from '../node/registration/node-registration.ts';
import type { GuestVolumes } from '../node/volumes/guest-volumes.ts';
import type { Program } from './component.ts';
import { type ModelDisk, ModelDiskError } from './model-disk.ts';
import type { SimulatedProcess } from './process.ts';
import { unending } from './world.ts';

/** What there is of a node even while no agent runs on it. */
export interface ModelNode {
  readonly name: string;
  /** Where it is reached, where that is not its name. */
  readonly place?: string;
  readonly host: ModelHost;
  readonly disk: ModelDisk;
  /** How much it may promise to pods, where that is not what models have. */
  readonly share?: NodeProfile['share'];
  /** By what its agent is known elsewhere, where anybody is to know it. */
  readonly keys?: readonly string[];
  /** A hypervisor that is worse than its host, for planted bugs. */
  readonly spoilHypervisor?: ((hypervisor: Hypervisor) => Hypervisor) | undefined;
}

/** How the agent of a node reaches the others, and is reached by them. */
export interface AgentsLink {
  readonly peers: Peers;
  /** Lets the others reach it. */
  serve(service: PeerService): void;
}

/** Nobody reaches anybody. */
const NO_LINK: AgentsLink = {
  peers: { exchange: () => Promise.reject(new PeerError('Unreachable', 'these agents have no channel')) },
  serve: () => undefined,
};

/** Models of machines know each other without proof. */
const MODEL_TLS = { directory: '/model', peer: 'model' };
const MODEL_CREDENTIALS: CopyCredentials = {
  issue: async (_podUID, use) => ({
    used: await use(MODEL_TLS),
    source: { authorityPem: 'model', certificatePem: 'model', keyPem: 'model', peer: MODEL_TLS.peer },
  }),
  write: () => Promise.resolve({ tls: MODEL_TLS, remove: () => Promise.resolve() }),
};
/** Where the models of machines of a node are reached, its place being its address. */
const MODEL_PORT = 10_250;
const MODEL_CPUS = 16;

const GIBIBYTE = 2 ** 30;
/** What a model answers to whoever asks for the version of QEMU. */
const MODEL_ENGINE = { version: { major: 7, minor: 2, micro: 0 }, accelerator: 'tcg' } as const;

const NETWORK = { kind: 'user', forwards: [] } as const;

/** Guests of simulations have no volumes but those that are empty at first: their models know how large they are. */
const EMPTY_VOLUMES: GuestVolumes = {
  prepare: ({ guest, directory }) => {
    const empty = (guest.spec.volumes ?? []).filter(({ emptyDisk }) => emptyDisk !== undefined);
    const disks = new Map(
      empty.map(({ name }) => [
        name,
        { path: `${directory}/${name}.qcow2`, format: 'qcow2', cache: 'writeback' } as const,
      ]),
    );
    return Promise.resolve({ disks, kernel: undefined });
  },
};

const MODEL_FACTS: HostFacts = {
  identity: () =>
    Promise.resolve({
      operatingSystem: 'linux',
      architecture: 'amd64',
      hostname: 'model',
      osImage: 'model of a host',
      kernelVersion: 'model',
      machineID: '',
      systemUUID: '',
      bootID: '',
      cpus: MODEL_CPUS,
      memoryBytes: 64 * GIBIBYTE,
      addresses: [],
    }),
  usage: () =>
    Promise.resolve({
      memoryAvailableBytes: 64 * GIBIBYTE,
      disk: { bytes: 512 * GIBIBYTE, availableBytes: 512 * GIBIBYTE, inodes: 0, freeInodes: 0 },
      processes: { running: 1, max: 1000 },
    }),
  canOpen: () => Promise.resolve(false),
};

/** Whom the agent of a node speaks as. */
export function nodeIdentity(name: string): LocalIdentity {
  return { user: `system:node:${name}`, groups: [NODES_GROUP] };
}

/** All that the real agent of a node does, on models of a host and of its disk. */
export function agentServices(
  node: ModelNode,
  env: Env,
  client: Client,
  link: AgentsLink = NO_LINK,
): readonly Service[] {
  const { name, place = name, host, disk, share, keys = [], spoilHypervisor } = node;
  const hypervisor = host.hypervisor(env.clock);
  const { services } = registrationServices({
    env,
    client,
    host: MODEL_FACTS,
    profile: {
      name,
      version: 'v0.0.0-model',
      accelerator: MODEL_ENGINE.accelerator,
      capabilities: undefined,
      ...(share ? { share } : {}),
      localStoragePath: `/${name}/volumes`,
      addresses: [{ type: 'Hostname', address: place }],
    },
    dataDirectory: `/${name}`,
    port: () => undefined,
    agentKeys: () => keys,
  });
  const agent = new Agent({
    env,
    client,
    nodeName: name,
    hypervisor: spoilHypervisor?.(hypervisor) ?? hypervisor,
    volumes: EMPTY_VOLUMES,
    specOf: (guest, volumes) => {
      const connected = wantedInterfaces(guest).map((wanted) => [wanted.name, NETWORK] as const);
      return machineSpec(guest, volumes, new Map(connected), MODEL_ENGINE);
    },
    journal: disk.journal(env.clock),
    files: disk.files(env.clock),
    directory: `/${name}`,
    migration: {
      peers: link.peers,
      address: () => ({ address: place, port: MODEL_PORT }),
      host: place,
      credentials: MODEL_CREDENTIALS,
      cpus: MODEL_CPUS,
      ramBytesOf: ({ memoryBytes }) => memoryBytes,
    },
  });
  link.serve(agent.peers);
  return [...services, ...agent.services];
}

/** The program of a node, with the node's own rights. */
export function agentProgram(node: ModelNode, linkOf?: (process: SimulatedProcess) => AgentsLink): Program {
  return async (process, clientOf) => {
    const { name } = node;
    const { env } = process;
    try {
      const services = agentServices(node, env, clientOf(nodeIdentity(name)), linkOf?.(process));
      await new Manager({ env, name }).add(...services).run(unending());
    } catch (error) {
      // An agent whose disk fails ends; whoever looks after it starts it again.
      if (!isDiskError(error)) throw error;
    }
  };
}

function isDiskError(error: unknown): boolean {
  for (let each = error; each instanceof Error; each = each.cause) if (each instanceof ModelDiskError) return true;
  return false;
}
