import type { KubeObject } from '../meta.ts';
import {
  choice,
  type Infer,
  integer,
  listOf,
  mapOf,
  moment,
  needed,
  object,
  openObject,
  text,
} from '../typed-schema.ts';
import { conditions } from './condition.ts';
import type { CustomKind } from './custom-kind.ts';
import { cause, causes } from './migration-cause.ts';
import { migrationProgress } from './migration-progress.ts';
import { migrationState } from './migration-state.ts';

/** The move of a guest to another node, namespace or cluster. */

/**
 * Phases as KubeVirt has them; the empty one is that of an object that nobody has looked at. Only halves of a
 * migration between two control planes synchronize.
 */
export const MIGRATION_PHASES = [
  '',
  'Pending',
  'Scheduling',
  'Scheduled',
  'PreparingTarget',
  'TargetReady',
  'Running',
  'Succeeded',
  'Failed',
  'WaitingForSync',
  'Synchronizing',
] as const;

export type MigrationPhase = (typeof MIGRATION_PHASES)[number];

const phase = choice('How far the migration is.', MIGRATION_PHASES);

/** What two halves know each other by. `migration-twins` says why it has two names. */
const key = {
  key: text('What both halves of the migration are known by.'),
  migrationID: text('The same as key.'),
};

/** Open, so that a webhook can name what nobody knows, instead of the API server dropping it in silence. */
export const migrationSpec = openObject('Which guest moves, and how.', {
  vmName: text('Name of the guest, in the same namespace. It or vmiName must be given.'),
  vmiName: text('The same as vmName.'),
  addedNodeSelector: mapOf(
    'Labels that the target node must have, besides those that the guest asks for, which win.',
    text('A value.'),
  ),
  priority: text(
    'The class: system-critical, user-triggered or system-maintenance; below all of them when absent. Who sets it needs the verb use on migrationpriorities.kubevirt.io of that name.',
  ),
  cause: cause('Why the guest moves. Set by who is asked to move it, not by who asks.'),
  sendTo: openObject('Makes this the half that the guest leaves.', {
    ...key,
    connectURL: needed(text('Where the synchronization controller of the other half is reached: HOST:PORT.')),
  }),
  receive: openObject('Makes this the half that the guest comes to.', key),
});

const phaseTransition = object('When a phase began.', {
  phase,
  phaseTransitionTimestamp: moment('When it began.'),
});

const status = object('How the migration is.', {
  phase,
  conditions,
  phaseTransitionTimestamps: listOf('When the phases began.', phaseTransition),
  effectivePriority: integer('What it is ordered by while it waits: the highest number over all of its causes.'),
  causes,
  progress: migrationProgress,
  migrationState,
  syncEndpoint: text('Where the synchronization controller of this half is reached.'),
  synchronizationAddresses: listOf('The same as syncEndpoint, with all addresses.', text('An address and a port.')),
});

/** The kind VirtualMachineInstanceMigration. */
export const virtualMachineInstanceMigration: CustomKind = {
  group: 'kubevirt.io',
  version: 'v1',
  olderVersions: ['v1alpha3'],
  kind: 'VirtualMachineInstanceMigration',
  plural: 'virtualmachineinstancemigrations',
  scope: 'Namespaced',
  shortNames: ['vmim', 'vmims'],
  categories: ['all'],
  description: 'The move of a guest to another node, namespace or cluster.',
  fields: { spec: needed(migrationSpec), status },
  hasStatus: true,
  columns: [
    { name: 'Phase', type: 'string', jsonPath: '.status.phase' },
    { name: 'VMI', type: 'string', jsonPath: '.spec.vmiName' },
    { name: 'Priority', type: 'integer', jsonPath: '.status.effectivePriority' },
    { name: 'Cause', type: 'string', jsonPath: '.spec.cause' },
    { name: 'Source', type: 'string', jsonPath: '.status.migrationState.sourceNode' },
    { name: 'Target', type: 'string', jsonPath: '.status.migrationState.targetNode' },
    { name: 'Progress', type: 'string', jsonPath: '.status.progress.summary' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
    { name: 'Class', type: 'string', jsonPath: '.spec.priority', priority: 1 },
    { name: 'Mode', type: 'string', jsonPath: '.status.migrationState.mode', priority: 1 },
    { name: 'Policy', type: 'string', jsonPath: '.status.migrationState.migrationPolicyName', priority: 1 },
  ],
};

export type VirtualMachineInstanceMigrationSpec = Infer<typeof migrationSpec>;
export type VirtualMachineInstanceMigrationStatus = Infer<typeof status>;

export interface VirtualMachineInstanceMigration extends KubeObject {
  spec: VirtualMachineInstanceMigrationSpec;
  status?: VirtualMachineInstanceMigrationStatus;
}

/** Whether a migration is over, one way or the other. */
export function isFinalMigration({ status }: Pick<VirtualMachineInstanceMigration, 'status'>): boolean {
  return status?.phase === 'Succeeded' || status?.phase === 'Failed';
}
