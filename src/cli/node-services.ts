import { join } from 'node:path';
import { LAUNCHER_USER, LAUNCHERS_DIRECTORY } from '../api/kubevirt/launcher-container.ts';
import type { Env, Processes, UserIdentity } from '../env/ports.ts';
import { realConnector } from '../env/real-connector.ts';
import { realDiskFiles } from '../env/real-disk-files.ts';
import { realDurableFile } from '../env/real-durable-file.ts';
import { realFiles } from '../env/real-files.ts';
import { realHost } from '../env/real-host.ts';
import { realPorts } from '../env/real-ports.ts';
import { realProcesses } from '../env/real-processes.ts';
import type { Accelerator } from '../hypervisor/machine.ts';
import { queryCapabilities } from '../hypervisor/qemu/capabilities.ts';
import { ramBytesFor } from '../hypervisor/qemu/ram-size.ts';
import { probeAccelerator } from '../hypervisor/qemu/probe-accelerator.ts';
import { QemuHypervisor, qemuVersion } from '../hypervisor/qemu/qemu-hypervisor.ts';
import type { QemuVersion } from '../hypervisor/qemu/qmp-message.ts';
import type { KubeMetrics } from '../kube/metrics.ts';
import type { Service } from '../kube/service.ts';
import { Agent } from '../node/agent.ts';
import { Launchers } from '../node/guests/launchers.ts';
import { AgentKeys } from '../node/identity/agent-keys.ts';
import { type NodeIdentity, servingCertificate } from '../node/identity/join.ts';
import type { ManagedCertificate } from '../node/identity/managed-certificate.ts';
import { ImageStore } from '../node/images/image-store.ts';
import { GuestMachines } from '../node/machine/guest-machines.ts';
import { interfaceStatuses } from '../node/machine/interface-statuses.ts';
import { PortForwards } from '../node/machine/port-forwards.ts';
import { Taps } from '../node/machine/taps.ts';
import { MigrationCertificates } from '../node/migrations/certificates.ts';
import { HttpsPeers } from '../node/migrations/https-peers.ts';
import type { NodeMigration } from '../node/migrations/node-migration.ts';
import { SocketRelays } from '../node/migrations/socket-relays.ts';
import type { NodeAddress, NodeProfile } from '../node/registration/node-object.ts';
import { registrationServices } from '../node/registration/node-registration.ts';
import { AgentServer } from '../node/server/agent-server.ts';
import { DirectoryRemoval } from '../node/storage/directory-removal.ts';
import { diskBytesOf } from '../node/volumes/disk-size.ts';
import { ImageStampFiles } from '../node/volumes/image-stamp-files.ts';
import { NodeVolumes } from '../node/volumes/node-volumes.ts';
import type { AgentOptions } from './agent.ts';
import { AGENT_ID_FILE } from './data-directory.ts';
import { UserError } from './failure.ts';
import { readLastPort, rememberPort } from './last-port.ts';
import { QEMU_PROGRAM } from './qemu-program.ts';
import { VERSION } from './version.ts';

export interface NodeServicesOptions {
  readonly options: AgentOptions;
  readonly directory: string;
  readonly env: Env;
  readonly metrics: KubeMetrics;
  readonly identity: NodeIdentity;
  /** By what others reach the node. */
  readonly address: string;
  /** Where migrations from nodes of the cluster arrive, if not there. */
  readonly migrationHost: string | undefined;
}

/** Where agents listen, so that a firewall between two clusters can be told; any port will do where all are taken. */
export const AGENT_PORTS = Array.from({ length: 64 }, (_, index) => 9186 + index);
/** Whom QEMU runs as where the agent is root: numbers that are nobody's. */
const UNPRIVILEGED: UserIdentity = { uid: 64_107, gid: 64_107 };
/** Whom it runs as in the pods of kubelets. */
const IN_PODS: UserIdentity = { uid: LAUNCHER_USER, gid: LAUNCHER_USER };

/** What guests run on. */
interface Engine {
  readonly hypervisor: QemuHypervisor;
  /** What starts QEMU, where that is not this agent. */
  readonly launchers: Launchers | undefined;
  readonly version: QemuVersion;
  readonly accelerator: Accelerator;
  readonly user: UserIdentity | undefined;
}

export interface NodeServices {
  /** To be added to one manager. */
  readonly services: readonly Service[];
  /** Ends every guest of the node within its grace period. Resolves when none is left. */
  readonly leave: () => Promise<void>;
}

/** All that the agent of a node on this machine does. */
export async function nodeServices(of: NodeServicesOptions): Promise<NodeServices> {
  const { options, directory, env, identity, metrics, address } = of;
  const { name } = options;
  const { client } = identity;
  const engine = await startEngine(options, directory, env);
  const agentId = await ownAgentId(directory, env);
  let server: AgentServer | undefined;
  const agentAddress = () => (server ? { address, port: server.port } : undefined);
  const agent = guestsAgent(of, engine, agentId, await migrationOf(of, engine, agentAddress));
  const addresses: NodeAddress[] = [
    { type: 'InternalIP', address },
    { type: 'Hostname', address: name },
  ];
  const profile = { ...(await profileOf(options, directory, engine, addresses, env)), agentId };
  const { registration, services: registering } = registrationServices({
    env,
    client,
    host: realHost,
    profile,
    dataDirectory: directory,
    port: () => server?.port,
    agentKeys: () => keys.pins,
  });
  const keys = new AgentKeys(env.clock, () => registration.refresh());
  const certificate = await servingCertificate({
    env,
    files: realDiskFiles,
    node: name,
    directory: join(directory, 'pki'),
    addresses: [address],
    server: identity.access.server,
    client,
    after: registration.registered,
  });
  await showKeys(keys, identity, certificate);
  server = await AgentServer.listen({
    env,
    client,
    node: name,
    guests: agent.access,
    peers: agent.peers,
    isAwaited: agent.isAwaited,
    certificate,
    clientAuthorities: () => identity.access.authorities(),
    metrics: () => metrics.render(),
    host: address,
    port: 0,
    preferredPorts: [readLastPort(directory) ?? [], AGENT_PORTS].flat(),
  });
  rememberPort(directory, server.port);
  metrics.certificates('agent', () => certificatesOf(identity, certificate));
  const removal = new DirectoryRemoval({
    env,
    client,
    nodeName: name,
    localPath: profile.localStoragePath,
    sharedPath: options.shared,
    files: realDiskFiles,
  });
  const renewing = identity.clientCertificate ? [identity.clientCertificate] : [];
  const services = [...renewing, certificate, server, ...registering, ...agent.services, removal];
  return { services, leave: () => agent.leave() };
}

/** Whoever meets this agent elsewhere knows it by the keys of what it shows: they are told before they are shown. */
async function showKeys(keys: AgentKeys, identity: NodeIdentity, serving: ManagedCertificate): Promise<void> {
  const { certificate } = await identity.access.credentials(new AbortController().signal);
  keys.note(certificate);
  for (const shown of [identity.clientCertificate, serving]) {
    keys.note(shown?.current?.certificatePem);
    shown?.onChange(() => keys.note(shown.current?.certificatePem));
    shown?.beforeChange((...next) => keys.announce(...next));
  }
}

/** What the agent shows to others, and when it ends. */
function* certificatesOf(
  { clientCertificate }: NodeIdentity,
  serving: ManagedCertificate,
): Generator<readonly [string, number]> {
  if (clientCertificate?.current) yield ['agent-client', clientCertificate.current.notAfterMs];
  if (serving.current) yield ['agent-serving', serving.current.notAfterMs];
}

async function startEngine({ kubelet }: AgentOptions, directory: string, env: Env): Promise<Engine> {
  const user = realProcesses.isRoot ? (kubelet ? IN_PODS : UNPRIVILEGED) : undefined;
  let version: QemuVersion;
  try {
    version = await qemuVersion(realProcesses, QEMU_PROGRAM);
  } catch (error) {
    const advice = "install it with 'apt-get install --no-install-recommends qemu-system-x86'";
    throw new UserError(`${QEMU_PROGRAM} cannot be run (${(error as Error).message}); ${advice}`, { cause: error });
  }
  const hypervisorOn = (processes: Processes): QemuHypervisor =>
    new QemuHypervisor({
      env,
      connector: realConnector,
      processes,
      hostFiles: realFiles,
      program: QEMU_PROGRAM,
      version,
      user,
    });
  const here = hypervisorOn(realProcesses);
  const { accelerator, reason } = await probeAccelerator({
    clock: env.clock,
    hypervisor: here,
    hostFiles: realFiles,
    user,
    run: { directory: join(directory, 'probe'), instance: await ownAgentId(directory, env) },
    machineType: `pc-q35-${version.major}.${version.minor}`,
  });
  env.log.info(`guests run on ${accelerator}`, { reason });
  if (!kubelet) return { hypervisor: here, launchers: undefined, version, accelerator, user };
  const launchers = new Launchers({
    clock: env.clock,
    connector: realConnector,
    files: realDiskFiles,
    directory: join(directory, LAUNCHERS_DIRECTORY),
    user,
  });
  return { hypervisor: hypervisorOn(launchers.processes(realProcesses)), launchers, version, accelerator, user };
}

/** What tells the agent of this directory, and of its journal, from every other. */
async function ownAgentId(directory: string, { random }: Env): Promise<string> {
  const file = realDurableFile(join(directory, AGENT_ID_FILE));
  try {
    const known = new TextDecoder().decode((await file.read()) ?? new Uint8Array()).trim();
    if (known !== '') return known;
    const made = random.uuid();
    await file.replace(new TextEncoder().encode(`${made}\n`));
    return made;
  } finally {
    await file.close();
  }
}

/** What guests need to leave this node, or to come to it. */
async function migrationOf(
  { env, directory, identity, address, migrationHost }: NodeServicesOptions,
  { version, accelerator, user }: Engine,
  agentAddress: NodeMigration['address'],
): Promise<NodeMigration> {
  const { cpus, bootID } = await realHost.identity();
  return {
    peers: new HttpsPeers({ access: identity.access, clock: env.clock }),
    address: agentAddress,
    host: address,
    migrationHost,
    credentials: new MigrationCertificates({
      env,
      files: { ...realFiles, ...realDiskFiles },
      directory: join(directory, 'migrations'),
      user,
    }),
    relays: new SocketRelays({ ...env, user }),
    cpus,
    ramBytesOf: ({ memoryBytes }) => ramBytesFor(memoryBytes, version, accelerator),
    diskBytesOf: (disk) => diskBytesOf(realDiskFiles, disk),
    diskFileOf: async ({ path }) => {
      const file = (await realDiskFiles.describe(path))?.identity;
      return file !== undefined && bootID !== '' ? { host: bootID, file } : undefined;
    },
  };
}

function guestsAgent(of: NodeServicesOptions, engine: Engine, agentId: string, migration: NodeMigration): Agent {
  const { options, directory, env, metrics, identity, address } = of;
  const { client } = identity;
  const imagesDirectory = options.images ?? join(directory, 'images');
  const images = new ImageStore({
    directory: imagesDirectory,
    files: realDiskFiles,
    clock: env.clock,
    random: env.random,
  });
  const { clock } = env;
  const { hypervisor, launchers, user } = engine;
  const stamps = new ImageStampFiles({ files: realDiskFiles, directory: join(directory, 'stamps') });
  // What belongs to other guests, too, is nothing that a guest may name as a file of the node.
  const reservedDirectories = [directory, imagesDirectory, ...(options.shared ? [options.shared] : [])];
  const machines = new GuestMachines({
    host: engine,
    forwards: new PortForwards({ clock, ports: realPorts, address }),
    taps: new Taps({
      clock,
      processes: realProcesses,
      files: realDiskFiles,
      nodeName: options.name,
      bridges: options.bridge ?? [],
      user,
    }),
  });
  return new Agent({
    env,
    client,
    nodeName: options.name,
    agentId,
    hypervisor,
    volumes: new NodeVolumes({
      client,
      files: realDiskFiles,
      images,
      reservedDirectories,
      stamps,
      seenDirectory: options.kubelet ? directory : undefined,
    }),
    stamps,
    specOf: (guest, volumes) => machines.specOf(guest, volumes),
    interfacesOf: interfaceStatuses,
    journal: realDurableFile(join(directory, 'journal')),
    files: realDiskFiles,
    logFiles: realDiskFiles,
    directory,
    migration,
    metrics,
    ...(launchers ? { launchers } : {}),
    ...(user ? { user } : {}),
  });
}

async function profileOf(
  { name, memory, kubelet, registerWithTaints: taints }: AgentOptions,
  directory: string,
  { accelerator }: Engine,
  addresses: readonly NodeAddress[],
  env: Env,
): Promise<NodeProfile> {
  const capabilities = await queryCapabilities(realProcesses, QEMU_PROGRAM, accelerator).catch((error: unknown) => {
    env.log.warn('QEMU does not say what it can do', { error: String(error) });
    return undefined;
  });
  return {
    name,
    version: VERSION,
    accelerator,
    capabilities,
    localStoragePath: join(directory, 'volumes'),
    addresses,
    ...(kubelet ? { hasKubelet: true } : {}),
    ...(taints ? { taints } : {}),
    ...(memory === undefined ? {} : { share: { memoryBytes: memory } }),
  };
}
