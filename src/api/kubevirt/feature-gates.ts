import type { KubeVirtConfiguration } from './kube-virt.ts';

/** Features that a cluster's configuration switches on and off. */

/** Alpha is off unless it is switched on, Beta is on unless it is switched off. */
type Stage = 'Alpha' | 'Beta';

interface Gate {
  readonly stage: Stage;
  /** What is there while it is on. */
  readonly description: string;
}

/** The gates that make a difference here. docs/configuration.md lists them. */
export const FEATURE_GATES = {
  MigrationPriorityQueue: {
    stage: 'Beta',
    description: 'Migrations wait in the order of their classes; without it, in the order in which they came.',
  },
  DecentralizedLiveMigration: {
    stage: 'Alpha',
    description: 'Guests move to other namespaces and clusters; `godwit up` runs the synchronization controller.',
  },
  PreemptionEvictionLiveMigration: {
    stage: 'Alpha',
    description: 'A launcher pod that is preempted holds its guest until it has moved.',
  },
  NoExecuteTaintEvictionLiveMigration: {
    stage: 'Alpha',
    description: 'A launcher pod that a NoExecute taint drives away holds its guest until it has moved.',
  },
  MigrationStallDetection: {
    stage: 'Alpha',
    description: '`experimental.stallDetector` and `maxDowntimeMs` may be set, and are obeyed.',
  },
  MigrationDowntimeTuning: {
    stage: 'Alpha',
    description: '`experimental.downtimeTuning` and `maxDowntimeMs` may be set, and are obeyed.',
  },
} as const satisfies Readonly<Record<string, Gate>>;

export type FeatureGate = keyof typeof FEATURE_GATES;

/** Gates of KubeVirt for what we do in any case. They say nothing new, and nobody needs to hear of them. */
export const ALWAYS_ON: ReadonlySet<string> = new Set([
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
export const WITHOUT_EFFECT: ReadonlySet<string> = new Set([
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
  return FEATURE_GATES[gate].stage === 'Beta' && !disabledFeatureGates.includes(gate);
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
  if (Object.hasOwn(FEATURE_GATES, gate) || ALWAYS_ON.has(gate)) return [];
  if (WITHOUT_EFFECT.has(gate)) return [`${path}: feature gate ${JSON.stringify(gate)} has no effect here`];
  return [`${path}: unknown feature gate ${JSON.stringify(gate)}`];
}
