import type { KubeVirtConfiguration } from './kube-virt.ts';

/** Features that a cluster's configuration switches on and off. */

/** Alpha is off unless it is switched on, Beta is on unless it is switched off. */
type Stage = 'Alpha' | 'Beta';

const STAGES = {
  MigrationPriorityQueue: 'Beta',
  DecentralizedLiveMigration: 'Alpha',
  PreemptionEvictionLiveMigration: 'Alpha',
  NoExecuteTaintEvictionLiveMigration: 'Alpha',
  MigrationStallDetection: 'Alpha',
  MigrationDowntimeTuning: 'Alpha',
} as const satisfies Readonly<Record<string, Stage>>;

export type FeatureGate = keyof typeof STAGES;

/** Gates of KubeVirt for what we do in any case. They say nothing new, and nobody needs to hear of them. */
const ALWAYS_ON: ReadonlySet<string> = new Set([
  'CPUNodeDiscovery',
  'HostDisk',
  'InstancetypeReferencePolicy',
  'LiveMigration',
  'NodeRestriction',
  'NonRoot',
  'PSA',
  'VMLiveUpdateFeatures',
  'VmiMemoryOverheadReport',
  'VolumeMigration',
  'VolumesUpdateStrategy',
]);

/** Gates of KubeVirt for what we do not do. */
const WITHOUT_EFFECT: ReadonlySet<string> = new Set([
  'AlignCPUs',
  'AutoResourceLimitsGate',
  'BochsDisplayForEFIGuests',
  'ClusterProfiler',
  'CommonInstancetypesDeploymentGate',
  'CPUManager',
  'DeclarativeHotplugVolumes',
  'DisableCustomSELinuxPolicy',
  'DisableMDEVConfiguration',
  'DownwardMetrics',
  'DynamicPodInterfaceNaming',
  'EnableVirtioFsConfigVolumes',
  'EnableVirtioFsStorageVolumes',
  'ExpandDisks',
  'ExperimentalIgnitionSupport',
  'GPU',
  'GPUsWithDRA',
  'HostDevices',
  'HostDevicesWithDRA',
  'HotplugNICs',
  'HotplugVolumes',
  'HypervStrictCheck',
  'ImageVolume',
  'IncrementalBackup',
  'KubevirtSeccompProfile',
  'LibvirtHooksServerAndClient',
  'MultiArchitecture',
  'NetworkBindingPlugins',
  'NUMA',
  'ObjectGraph',
  'PanicDevices',
  'PasstIPStackMigration',
  'PersistentReservation',
  'Root',
  'SecureExecution',
  'Sidecar',
  'Snapshot',
  'SRIOVLiveMigration',
  'UtilityVolumes',
  'VGPULiveMigration',
  'VideoConfig',
  'VMExport',
  'VMPersistentState',
  'VSOCK',
  'WorkloadEncryptionSEV',
]);

type Configuration = Pick<KubeVirtConfiguration, 'developerConfiguration'>;

/** Whether a feature is on. One that is both switched on and off is on, as in KubeVirt. */
export function isFeatureGateEnabled(gate: FeatureGate, configuration: Configuration = {}): boolean {
  const { featureGates = [], disabledFeatureGates = [] } = configuration.developerConfiguration ?? {};
  if (featureGates.includes(gate)) return true;
  return STAGES[gate] === 'Beta' && !disabledFeatureGates.includes(gate);
}

/** What to tell the author of a configuration about gates that do nothing here. */
export function featureGateWarnings(configuration: Configuration, path: string): string[] {
  const { featureGates = [], disabledFeatureGates = [] } = configuration.developerConfiguration ?? {};
  return [
    ...featureGates.flatMap((gate, index) => warningsOf(gate, `${path}.developerConfiguration.featureGates[${index}]`)),
    ...disabledFeatureGates.flatMap((gate, index) =>
      warningsOf(gate, `${path}.developerConfiguration.disabledFeatureGates[${index}]`),
    ),
  ];
}

function warningsOf(gate: string, path: string): string[] {
  if (Object.hasOwn(STAGES, gate) || ALWAYS_ON.has(gate)) return [];
  if (WITHOUT_EFFECT.has(gate)) return [`${path}: feature gate ${JSON.stringify(gate)} has no effect here`];
  return [`${path}: unknown feature gate ${JSON.stringify(gate)}`];
}
