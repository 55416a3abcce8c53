import type { KubeVirtConfiguration } from './kube-virt.ts';
import { unstartableWarnings } from './unstartable-fields.ts';
import type { VirtualMachineSpec } from './virtual-machine.ts';
import type { VirtualMachineInstanceSpec } from './virtual-machine-instance-spec.ts';

/**
 * Fields that are kept and not acted on, where their author could think that they were: each is worth a warning when
 * the object is written. What nobody would miss (a case's manufacturer, a sound card's model) is kept in silence.
 */

/** Paths below the spec of a guest; `[]` is any item of a list. */
export const NOT_ACTED_ON: readonly string[] = [
  'accessCredentials',
  'dnsConfig',
  'dnsPolicy',
  'domain.clock.timezone',
  'domain.cpu.dedicatedCpuPlacement',
  'domain.cpu.isolateEmulatorThread',
  'domain.cpu.numa',
  'domain.cpu.realtime',
  'domain.devices.autoattachVSOCK',
  'domain.devices.clientPassthrough',
  'domain.devices.disks[].shareable',
  'domain.devices.downwardMetrics',
  'domain.devices.filesystems',
  'domain.devices.gpus',
  'domain.devices.hostDevices',
  'domain.devices.interfaces[].dhcpOptions',
  'domain.devices.interfaces[].passt',
  'domain.devices.interfaces[].passtBinding',
  'domain.devices.tpm',
  'domain.devices.watchdog',
  'domain.features.hyperv',
  'domain.firmware.acpi',
  'domain.ioThreadsPolicy',
  'domain.launchSecurity',
  'domain.memory.hugepages',
  'livenessProbe',
  'readinessProbe',
  'resourceClaims',
  'utilityVolumes',
  'volumes[].containerPath',
  'volumes[].downwardAPI',
  'volumes[].downwardMetrics',
  'volumes[].memoryDump',
  'volumes[].serviceAccount',
  'volumes[].sysprep',
];

/** The same of the cluster's configuration. */
const CONFIGURATION_NOT_ACTED_ON: readonly string[] = [
  'migrations.matchSELinuxLevelOnMigration',
  'migrations.network',
  'migrations.unsafeMigrationOverride',
  'migrations.utilityVolumesTimeout',
  'vmStateStorageClass',
];

const STEPS: readonly (readonly string[])[] = NOT_ACTED_ON.map((path) => path.replaceAll('[]', '.[]').split('.'));

/** What to tell the author of a machine. */
export function virtualMachineWarnings(spec: VirtualMachineSpec): string[] {
  return [
    ...(spec.running === undefined ? [] : ['spec.running is deprecated, please use spec.runStrategy instead.']),
    ...found(spec, ['dataVolumeTemplates'], 0, 'spec').map(warning),
    ...(spec.template.spec ? guestWarnings(spec.template.spec, 'spec.template.spec') : []),
  ];
}

/** What to tell the author of a guest. */
export function virtualMachineInstanceWarnings(spec: VirtualMachineInstanceSpec): string[] {
  return guestWarnings(spec, 'spec');
}

/** What to tell the author of a cluster's configuration. */
export function configurationWarnings(configuration: KubeVirtConfiguration, path: string): string[] {
  return CONFIGURATION_NOT_ACTED_ON.flatMap((each) => found(configuration, each.split('.'), 0, path)).map(warning);
}

function guestWarnings(spec: VirtualMachineInstanceSpec, path: string): string[] {
  const unstartable = unstartableWarnings(spec, path);
  const kept = STEPS.flatMap((steps) => found(spec, steps, 0, path));
  // What keeps the guest from starting is said once, and in those words.
  const rest = kept.filter((field) => !unstartable.some((each) => each.startsWith(`${field} `)));
  return [...rest.map(warning), ...unstartable];
}

function warning(field: string): string {
  return `${field} is kept, but nothing acts on it here`;
}

/** The paths in a value that the rest of the steps lead to. */
function found(value: unknown, steps: readonly string[], index: number, path: string): string[] {
  const step = steps[index];
  if (step === undefined) return isSaid(value) ? [path] : [];
  if (step === '[]')
    return Array.isArray(value)
      ? value.flatMap((item, position) => found(item, steps, index + 1, `${path}[${position}]`))
      : [];
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) return [];
  return found((value as Record<string, unknown>)[step], steps, index + 1, `${path}.${step}`);
}

/** Whether something is asked for: what is switched off or empty cannot be missed. */
function isSaid(value: unknown): boolean {
  if (value === undefined || value === null || value === false || value === '') return false;
  return !Array.isArray(value) || value.length > 0;
}
