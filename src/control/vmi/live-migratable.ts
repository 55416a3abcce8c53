import { ACCELERATOR_LABEL, HOST_MODEL_PREFIX } from '../../api/kubevirt/node-labels.ts';
import type { KubeVirtCondition } from '../../api/kubevirt/condition.ts';
import type {
  VirtualMachineInstance,
  VirtualMachineInstanceStatus,
} from '../../api/kubevirt/virtual-machine-instance.ts';
import type { Volume } from '../../api/kubevirt/volumes.ts';
import { BRIDGE_MIGRATION_ANNOTATION } from '../../api/kubevirt/well-known.ts';
import type { PersistentVolumeClaim } from '../../migration/fit/objects.ts';

/** Whether a guest can move while it runs, and if not, why: the first obstacle in KubeVirt's order is the one that is told. */

export interface Migratability {
  /** LiveMigratable, and StorageLiveMigratable, which does not mind where disks are. */
  readonly conditions: readonly [KubeVirtCondition, KubeVirtCondition];
  readonly method: NonNullable<VirtualMachineInstanceStatus['migrationMethod']>;
}

type ClaimOf = (claimName: string) => PersistentVolumeClaim | undefined;
type Labels = { readonly [key: string]: string };

/** What is known of the cluster that a guest would move in. */
export interface MigrationGround {
  readonly claimOf: ClaimOf;
  /** The labels of the node that the guest is on; none where that is not known. */
  readonly nodeLabels: Labels;
}

const DISKS = 'DisksNotLiveMigratable';

const OBSTACLES: readonly (readonly [
  string,
  (guest: VirtualMachineInstance, ground: MigrationGround) => string | undefined,
])[] = [
  ['InterfaceNotLiveMigratable', interfaceObstacle],
  ['CPUModeLiveMigratable', processorObstacle],
  ['HostDeviceNotLiveMigratable', hostDeviceObstacle],
  ['SEVNotLiveMigratable', (guest) => (hasSecurity(guest, 'sev', 'snp') ? 'VMI uses SEV' : undefined)],
  ['TDXNotLiveMigratable', (guest) => (hasSecurity(guest, 'tdx') ? 'VMI uses TDX' : undefined)],
  ['SecureExecutionNotLiveMigratable', secureExecutionObstacle],
  ['NoTSCFrequencyNotLiveMigratable', clockObstacle],
  ['HypervPassthroughNotLiveMigratable', hypervObstacle],
  [DISKS, diskObstacle],
  ['VirtIOFSNotLiveMigratable', sharedDirectoryObstacle],
  ['PersistentReservationNotLiveMigratable', reservationObstacle],
];

/** The conditions that say so, and how the guest would move. */
export function migratability(guest: VirtualMachineInstance, ground: MigrationGround): Migratability {
  const method = copiedVolumes(guest).length > 0 ? 'BlockMigration' : 'LiveMigration';
  const found = OBSTACLES.flatMap(([reason, find]) => {
    const message = find(guest, ground);
    return message === undefined ? [] : [{ reason, message }];
  });
  const besidesDisks = found.filter(({ reason }) => reason !== DISKS);
  const message = besidesDisks.map((each) => `${each.reason}: ${each.message}`).join(', ');
  return {
    conditions: [
      verdict('LiveMigratable', found[0]),
      verdict('StorageLiveMigratable', message === '' ? undefined : { reason: 'NotMigratable', message }),
    ],
    method,
  };
}

function verdict(type: string, obstacle: { reason: string; message: string } | undefined): KubeVirtCondition {
  return obstacle ? { type, status: 'False', ...obstacle } : { type, status: 'True' };
}

/** On the pod's network only a binding that gives the guest an address of its own survives the change of pods. */
function interfaceObstacle({ metadata, spec }: VirtualMachineInstance): string | undefined {
  const onPodNetwork = new Set((spec.networks ?? []).filter(({ pod }) => pod).map(({ name }) => name));
  const isBridgeAllowed = Object.hasOwn(metadata.annotations ?? {}, BRIDGE_MIGRATION_ANNOTATION);
  const isStuck = (spec.domain.devices.interfaces ?? []).some(
    ({ name, masquerade, bridge, passt, passtBinding, binding }) =>
      onPodNetwork.has(name) &&
      !(masquerade ?? passt ?? passtBinding ?? binding ?? (isBridgeAllowed ? bridge : undefined)),
  );
  return isStuck
    ? `cannot migrate VMI which does not use masquerade, bridge with ${BRIDGE_MIGRATION_ANNOTATION} VM annotation or a migratable plugin to connect to the pod network`
    : undefined;
}

/**
 * A guest that has the very processor of its host can go only where there is the same, and where its node has no name for
 * it nobody can look for that. A processor that QEMU plays is the same everywhere.
 */
function processorObstacle(
  { spec, status }: VirtualMachineInstance,
  { nodeLabels }: MigrationGround,
): string | undefined {
  const model = spec.domain.cpu?.model || 'host-model';
  if (model !== 'host-model' && model !== 'host-passthrough') return undefined;
  if (nodeLabels[ACCELERATOR_LABEL] !== 'kvm') return undefined;
  const hasName = Object.entries(nodeLabels).some(
    ([key, value]) => key.startsWith(HOST_MODEL_PREFIX) && value === 'true',
  );
  return hasName ? undefined : `the node "${status?.nodeName ?? ''}" does not allow migration with ${model}`;
}

function hostDeviceObstacle({ spec }: VirtualMachineInstance): string | undefined {
  const { hostDevices = [], gpus = [], interfaces = [] } = spec.domain.devices;
  if (hostDevices.length > 0) return 'VMI specifies non-migratable generic PCI host device';
  if (gpus.length > 1) return 'VMI specifies too many GPUs';
  if (gpus.length > 0) return 'VMI specifies non-migratable GPU device';
  return interfaces.some(({ sriov }) => sriov) ? 'VMI uses a PCI host devices' : undefined;
}

function secureExecutionObstacle({ spec }: VirtualMachineInstance): string | undefined {
  const isSecure = spec.architecture === 's390x' && spec.domain.launchSecurity !== undefined;
  return isSecure ? 'VMI uses Secure Execution' : undefined;
}

function sharedDirectoryObstacle({ spec }: VirtualMachineInstance): string | undefined {
  return (spec.domain.devices.filesystems ?? []).length > 0 ? 'VMI uses virtiofs' : undefined;
}

function hasSecurity({ spec }: VirtualMachineInstance, ...kinds: readonly string[]): boolean {
  const { launchSecurity } = spec.domain;
  return launchSecurity !== undefined && kinds.some((kind) => Object.hasOwn(launchSecurity, kind));
}

function hypervObstacle({ spec }: VirtualMachineInstance): string | undefined {
  const passthrough = spec.domain.features?.['hypervPassthrough'] as { enabled?: boolean } | undefined;
  return passthrough && passthrough.enabled !== false ? 'VMI uses hyperv passthrough' : undefined;
}

/** A guest of Windows that follows the processor's counter has to find the same one wherever it goes. */
function clockObstacle({ spec, status }: VirtualMachineInstance): string | undefined {
  const hyperv = spec.domain.features?.['hyperv'] as { reenlightenment?: { enabled?: boolean } } | undefined;
  const isAsked = hyperv?.reenlightenment !== undefined && hyperv.reenlightenment.enabled !== false;
  return isAsked && status?.topologyHints?.tscFrequency === undefined
    ? 'HyperV Reenlightenment VMIs cannot migrate when TSC Frequency is not exposed on the cluster: guest timers might be inconsistent'
    : undefined;
}

function reservationObstacle({ spec }: VirtualMachineInstance): string | undefined {
  const isReserved = (spec.domain.devices.disks ?? []).some(({ lun }) => lun?.reservation === true);
  return isReserved ? 'VMI uses SCSI persistent reservation' : undefined;
}

/**
 * A claim that one node alone can have keeps the target pod from ever being scheduled, and a file of the node is another
 * one on every node.
 */
function diskObstacle({ spec, status }: VirtualMachineInstance, { claimOf }: MigrationGround): string | undefined {
  const moving = new Set((status?.migratedVolumes ?? []).map(({ volumeName }) => volumeName));
  for (const { name, persistentVolumeClaim, dataVolume, hostDisk } of spec.volumes ?? []) {
    if (hostDisk && hostDisk.shared !== true) return 'cannot migrate VMI with non-shared HostDisk';
    const claimName = persistentVolumeClaim?.claimName ?? dataVolume?.name;
    if (claimName === undefined || moving.has(name)) continue;
    if (!claimOf(claimName)?.spec?.accessModes?.includes('ReadWriteMany'))
      return `cannot migrate VMI: PVC ${claimName} is not shared, live migration requires that all PVCs must be shared (using ReadWriteMany access mode)`;
  }
  return undefined;
}

/** Volumes without a claim of their own: what the guest wrote to them is copied with it. */
function copiedVolumes({ spec, status }: VirtualMachineInstance): readonly Volume[] {
  const readonlyDisks = new Set(
    (spec.domain.devices.disks ?? []).filter(({ cdrom }) => cdrom && cdrom.readonly !== false).map(({ name }) => name),
  );
  const moving = new Set((status?.migratedVolumes ?? []).map(({ volumeName }) => volumeName));
  return (spec.volumes ?? []).filter(({ name, persistentVolumeClaim, dataVolume, hostDisk }) => {
    if (persistentVolumeClaim ?? dataVolume) return moving.has(name);
    return hostDisk?.shared !== true && !readonlyDisks.has(name);
  });
}
