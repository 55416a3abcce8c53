import {
  ACCELERATOR_LABEL,
  CPU_FEATURE_PREFIX,
  CPU_MODEL_PREFIX,
  CPU_VENDOR_PREFIX,
  GUESTS_ONLY,
  HOST_FEATURE_PREFIX,
  HOST_MODEL_PREFIX,
  MACHINE_TYPE_PREFIX,
} from '../../api/kubevirt/node-labels.ts';
import { SCHEDULABLE_LABEL } from '../../api/kubevirt/well-known.ts';
import type { Condition, KubeObject } from '../../api/meta.ts';
import { formatQuantity, parseQuantity } from '../../api/quantity.ts';
import type { HostIdentity, HostUsage } from '../../env/ports.ts';
import type { Accelerator } from '../../hypervisor/machine.ts';
import type { HypervisorCapabilities } from '../../hypervisor/qemu/capabilities.ts';
import type { Taint } from '../../migration/fit/objects.ts';
import type { Pressure } from './pressure.ts';

/** What a Node object says of a host, as pure functions of what is known of it. */

/** By what others reach a node, as its status lists it. */
export interface NodeAddress {
  readonly type: 'InternalIP' | 'Hostname' | 'ExternalIP';
  readonly address: string;
}

/** What is told of a node, besides what the host says of itself. */
export interface NodeProfile {
  readonly name: string;
  /** What tells this agent from every other of the same name; absent where there can be no other. */
  readonly agentId?: string;
  /** This program's own version, without a `v`. */
  readonly version: string;
  /** What guests run on here; KVM only where a guest has really run on it. */
  readonly accelerator: Accelerator;
  /** Undefined where the hypervisor did not say. */
  readonly capabilities: HypervisorCapabilities | undefined;
  /** The directory that claims of local storage get their directories in. */
  readonly localStoragePath: string;
  readonly addresses: readonly NodeAddress[];
  /** Whether the Node is a kubelet's, which says all that is not about guests. */
  readonly hasKubelet?: boolean;
  /** Taints that a new Node has. From then on they are for others to change. */
  readonly taints?: readonly Taint[];
  /** How much the node may promise to pods; all that the host has where absent. Several nodes may share a host. */
  readonly share?: { readonly cpus?: number; readonly memoryBytes?: number; readonly pods?: number };
}

/** Devices that launcher pods may ask for, as KubeVirt's device plug-ins find them. */
export interface NodeDevices {
  readonly tun: boolean;
  readonly vhostNet: boolean;
}

/** Says which agent a Node is of, by what that agent keeps beside its journal. */
const AGENT_ANNOTATION = 'godwit.dev/agent';
const LOCAL_STORAGE_ANNOTATION = 'godwit.dev/local-storage-path';
const CPU_MODEL_MIGRATION_PREFIX = 'cpu-model-migration.node.kubevirt.io/';
/** Below these every label is the agent's: those that it would not set any more are removed. */
const OWN_PREFIXES: readonly string[] = [
  CPU_MODEL_PREFIX,
  CPU_MODEL_MIGRATION_PREFIX,
  CPU_FEATURE_PREFIX,
  CPU_VENDOR_PREFIX,
  HOST_MODEL_PREFIX,
  HOST_FEATURE_PREFIX,
  MACHINE_TYPE_PREFIX,
];

const PODS_MAX = 110;
/** What KubeVirt's device plug-ins say of a device that any number of guests can share. */
const DEVICES = '1k';
/** What kubelets keep for themselves by default, so that the host never runs dry before a pod is told. */
const RESERVED_MEMORY_BYTES = 100 * 1024 * 1024;
const RESERVED_DISK_SHARE = 0.1;

/** A label's name has at most this many characters behind its prefix. */
const LABEL_NAME = /^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/;

/** The labels that the agent answers for. */
export function labelsOf(profile: NodeProfile, host: HostIdentity, isReady: boolean): Record<string, string> {
  const { name, accelerator, capabilities, hasKubelet } = profile;
  const ofNode = {
    'kubernetes.io/os': host.operatingSystem,
    'kubernetes.io/arch': host.architecture,
    'kubernetes.io/hostname': name,
    [GUESTS_ONLY]: 'true',
  };
  return {
    ...(hasKubelet ? {} : ofNode),
    [SCHEDULABLE_LABEL]: String(isReady),
    [ACCELERATOR_LABEL]: accelerator,
    ...(capabilities ? capabilityLabels(capabilities) : {}),
  };
}

function capabilityLabels(capabilities: HypervisorCapabilities): Record<string, string> {
  const { cpuModels, cpuFeatures, cpuVendor, hostModel, machineTypes } = capabilities;
  const keys = [
    ...cpuModels.flatMap((model) => [[CPU_MODEL_PREFIX, model] as const, [CPU_MODEL_MIGRATION_PREFIX, model] as const]),
    ...cpuFeatures.map((feature) => [CPU_FEATURE_PREFIX, feature] as const),
    [CPU_VENDOR_PREFIX, cpuVendor] as const,
    ...(hostModel ? [[HOST_MODEL_PREFIX, hostModel.name] as const] : []),
    ...(hostModel?.missingFeatures ?? []).map((feature) => [HOST_FEATURE_PREFIX, feature] as const),
    ...machineTypes.map((type) => [MACHINE_TYPE_PREFIX, type] as const),
  ];
  return Object.fromEntries(
    keys.filter(([, name]) => LABEL_NAME.test(name)).map(([prefix, name]) => [prefix + name, 'true']),
  );
}

/** The labels that have to change: those with another value, and (null) those that are the agent's but hold no more. */
export function labelChanges(
  observed: Readonly<Record<string, string>>,
  wanted: Readonly<Record<string, string>>,
): Record<string, string | null> {
  const known = new Map(Object.entries(observed));
  const changed = Object.entries(wanted).filter(([key, value]) => known.get(key) !== value);
  const gone = [...known.keys()].filter(
    (key) => !Object.hasOwn(wanted, key) && OWN_PREFIXES.some((prefix) => key.startsWith(prefix)),
  );
  return Object.fromEntries([...changed, ...gone.map((key) => [key, null] as const)]);
}

/** The annotations that the agent answers for, except for the heartbeat. */
export function annotationsOf({ localStoragePath, agentId }: NodeProfile): Record<string, string> {
  return {
    [LOCAL_STORAGE_ANNOTATION]: localStoragePath,
    ...(agentId === undefined ? {} : { [AGENT_ANNOTATION]: agentId }),
  };
}

/** The agent that a Node is of; undefined where none has said so. */
export function agentIdOf(node: KubeObject | undefined): string | undefined {
  return node?.metadata.annotations?.[AGENT_ANNOTATION];
}

/** What is put into pods' accounts. */
export function resourcesOf(
  profile: NodeProfile,
  host: HostIdentity,
  disk: HostUsage['disk'],
  devices: NodeDevices,
): { readonly capacity: Record<string, string>; readonly allocatable: Record<string, string> } {
  const { share = {}, accelerator } = profile;
  const cpu = canonical(String(share.cpus ?? host.cpus));
  const memoryBytes = share.memoryBytes ?? host.memoryBytes;
  const common = {
    cpu,
    pods: canonical(String(share.pods ?? PODS_MAX)),
    'devices.kubevirt.io/kvm': accelerator === 'kvm' ? DEVICES : '0',
    'devices.kubevirt.io/tun': devices.tun ? DEVICES : '0',
    'devices.kubevirt.io/vhost-net': devices.vhostNet ? DEVICES : '0',
  };
  return {
    capacity: { ...common, memory: kibibytes(memoryBytes), 'ephemeral-storage': kibibytes(disk.bytes) },
    allocatable: {
      ...common,
      memory: kibibytes(Math.max(0, memoryBytes - RESERVED_MEMORY_BYTES)),
      'ephemeral-storage': kibibytes(disk.bytes * (1 - RESERVED_DISK_SHARE)),
    },
  };
}

/** As a server writes it back, so that the same amount is the same text. */
function kibibytes(bytes: number): string {
  return canonical(`${Math.floor(bytes / 1024)}Ki`);
}

function canonical(text: string): string {
  const quantity = parseQuantity(text);
  return quantity ? formatQuantity(quantity) : text;
}

/** What people and tools are told of the host's software. */
export function nodeInfoOf({ version, capabilities }: NodeProfile, host: HostIdentity): Record<string, string> {
  return {
    machineID: host.machineID,
    systemUUID: host.systemUUID,
    bootID: host.bootID,
    kernelVersion: host.kernelVersion,
    osImage: host.osImage,
    operatingSystem: host.operatingSystem,
    architecture: host.architecture,
    kubeletVersion: `v${version}+godwit`,
    kubeProxyVersion: '',
    containerRuntimeVersion: `qemu://${capabilities?.version ?? 'unknown'}`,
  };
}

/** A condition as nodes have them. */
export interface NodeCondition extends Condition {
  lastHeartbeatTime?: string;
}

/** The conditions that the agent answers for; `problem` says why the node cannot take pods. */
export function conditionsOf(pressures: readonly Pressure[], problem: string | undefined): NodeCondition[] {
  return [
    ...pressures.map(
      ({ type, isPressing, reason, message }): NodeCondition => ({
        type,
        status: isPressing ? 'True' : 'False',
        reason,
        message,
      }),
    ),
    problem === undefined
      ? { type: 'Ready', status: 'True', reason: 'AgentReady', message: 'the agent takes pods' }
      : { type: 'Ready', status: 'False', reason: 'AgentNotReady', message: problem },
  ];
}
