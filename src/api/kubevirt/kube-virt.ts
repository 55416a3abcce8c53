import type { KubeObject } from '../meta.ts';
import {
  choice,
  count,
  type Infer,
  integer,
  kept,
  listOf,
  long,
  needed,
  object,
  openObject,
  quantity,
  text,
} from '../typed-schema.ts';
import { conditions } from './condition.ts';
import type { CustomKind } from './custom-kind.ts';
import { EVICTION_STRATEGIES } from './eviction-strategy.ts';
import { migrationConfiguration } from './migration-configuration.ts';

/**
 * The configuration of the whole cluster. Most of what KubeVirt can be told here is about how it deploys itself, which
 * means nothing to us: all of it is kept.
 */

const developerConfiguration = openObject('What is tried out.', {
  featureGates: listOf('Features that are switched on.', text('Name of a feature.')),
  disabledFeatureGates: listOf('Features that are switched off.', text('Name of a feature.')),
  memoryOvercommit: integer("What guests' memory may be, in percent of what their pods ask for; 100 by default."),
  cpuAllocationRatio: integer('How many processors of guests share one of a node; 10 by default.'),
});

const networkConfiguration = openObject('How guests are on networks.', {
  defaultNetworkInterface: text(
    'How a guest without networks is on that of its pod: bridge, the default, or masquerade, which can move.',
  ),
});

const configuration = openObject('How guests are run.', {
  migrations: migrationConfiguration,
  evictionStrategy: choice(
    'What happens to guests that say nothing when they have to leave; None, the default, shuts them down.',
    EVICTION_STRATEGIES,
  ),
  developerConfiguration,
  network: networkConfiguration,
  machineType: text('The machine of guests that name none; q35 by default.'),
  cpuModel: text('The processor of guests that name none; host-model by default.'),
  cpuRequest: quantity(
    'What a launcher pod asks for, for each processor of a guest that says nothing; a processor by cpuAllocationRatio by default.',
  ),
  vmRolloutStrategy: choice(
    'When changes of a machine reach its guest: with its next start, or at once where they can, which is the default.',
    ['Stage', 'LiveUpdate'],
  ),
  liveUpdateConfiguration: openObject('How much guests may grow while they run.', {
    maxHotplugRatio: count('How many times as many sockets as a guest starts with it may get; 4 by default.'),
    maxCpuSockets: count('How many sockets a guest may get that says nothing, whatever it starts with.'),
    maxGuest: quantity('How much memory a guest may get that says nothing, whatever it starts with.'),
  }),
  vmStateStorageClass: text('The storage class for the state of firmware and TPM. Nothing acts on it here.'),
});

const workloadUpdateStrategy = object('How guests get a new launcher.', {
  workloadUpdateMethods: listOf(
    'What may be done to them, in order; nothing when empty.',
    choice('What may be done.', ['LiveMigrate', 'Evict']),
  ),
  batchEvictionSize: integer('How many are evicted at once; 10 by default.'),
  batchEvictionInterval: text('How long to wait between that; 1m by default.'),
});

const spec = openObject('How the cluster runs guests.', {
  configuration,
  workloadUpdateStrategy,
  synchronizationPort: text('Port of the synchronization controller; 9185 by default.'),
  infra: kept('Where control-plane components run. Nothing acts on it here.'),
  workloads: kept('Where agents run. Nothing acts on it here.'),
});

const restoration = object('What is to be settled since the data of the API was restored from a backup.', {
  id: needed(text('What tells this restoration from others.', { minLength: 1 })),
  unheard: listOf(
    'Nodes that have not said yet what their journals hold; until they have, no guest starts.',
    text('Name of a node.'),
  ),
});

const status = openObject('How the control plane is.', {
  phase: text('How far it is.'),
  conditions,
  observedGeneration: long('The generation that this was observed at.'),
  synchronizationAddresses: listOf('Where the synchronization controller is reached.', text('An address and a port.')),
  outdatedVirtualMachineInstanceWorkloads: integer('How many guests have an old launcher.'),
  restoration,
});

/** The kind KubeVirt. */
export const kubeVirt: CustomKind = {
  group: 'kubevirt.io',
  version: 'v1',
  kind: 'KubeVirt',
  plural: 'kubevirts',
  scope: 'Namespaced',
  shortNames: ['kv', 'kvs'],
  categories: ['all'],
  description: 'The configuration of the whole cluster.',
  fields: { spec: needed(spec), status },
  hasStatus: true,
  columns: [
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
    { name: 'Phase', type: 'string', jsonPath: '.status.phase' },
  ],
};

export type KubeVirtConfiguration = Infer<typeof configuration>;
export type KubeVirtSpec = Infer<typeof spec>;
export type Restoration = Infer<typeof restoration>;
export type KubeVirtStatus = Infer<typeof status>;

export interface KubeVirt extends KubeObject {
  spec: KubeVirtSpec;
  status?: KubeVirtStatus;
}
