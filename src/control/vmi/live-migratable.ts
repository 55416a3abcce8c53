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

const DISKS = 'DisksNotLiveMigratable';

const OBSTACLES: readonly (readonly [
  string,
  (guest: VirtualMachineInstance, claimOf: ClaimOf) => string | undefined,
])[] = [
  ['InterfaceNotLiveMigratable', interfaceObstacle],
  ['HostDeviceNotLiveMigratable', hostDeviceObstacle],
  ['SEVNotLiveMigratable', (guest) => (hasSecurity(guest, 'sev', 'snp') ? 'VMI uses SEV' : undefined)],
  ['TDXNotLiveMigratable', (guest) => (hasSecurity(guest, 'tdx') ? 'VMI uses TDX' : undefined)],
  ['NoTSCFrequencyNotLiveMigratable', clockObstacle],
  ['HypervPassthroughNotLiveMigratable', hypervObstacle],
  [DISKS, diskObstacle],
  ['VirtIOFSNotLiveMigratable', sharedDirectoryObstacle],
  ['PersistentReservationNotLiveMigratable', reservationObstacle],
];

/** The conditions that say so, and how the guest would move. */
export function migratability(guest: VirtualMachineInstance, claimOf: ClaimOf): Migratability {
  const method = copiedVolumes(guest).length > 0 ? 'BlockMigration' : 'LiveMigration';
  const found = OBSTACLES.flatMap(([reason, find]) => {
    const message = find(guest, claimOf);
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

function hostDeviceObstacle({ spec }: VirtualMachineInstance): string | undefined {
  const { hostDevices = [], gpus = [], interfaces = [] } = spec.domain.devices;
  const hasDevice = hostDevices.length + gpus.length > 0 || interfaces.some(({ sriov }) => sriov);
  return hasDevice ? 'VMI uses a PCI host devices' : undefined;
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

/** A claim that one node alone can have keeps the target pod from ever being scheduled. */
function diskObstacle({ spec, status }: VirtualMachineInstance, claimOf: ClaimOf): string | undefined {
  const moving = new Set((status?.migratedVolumes ?? []).map(({ volumeName }) => volumeName));
  for (const { name, persistentVolumeClaim, dataVolume } of spec.volumes ?? []) {
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
