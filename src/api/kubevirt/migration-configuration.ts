import { count, flag, type Infer, integer, long, needed, object, quantity, text } from '../typed-schema.ts';
import { migrationExperiments } from './migration-experiments.ts';

const port = (description: string) => integer(description, { minimum: 1, maximum: 65_535 });

/** Where targets wait for a copy if nobody says otherwise: ports for whatever a host likes. */
export const MIGRATION_PORTS = { first: 49_152, last: 49_999 };

const portRange = object(
  `Ports that targets listen on for the copy; ${MIGRATION_PORTS.first} to ${MIGRATION_PORTS.last} by default.`,
  { first: needed(port('The first.')), last: needed(port('The last.')) },
  {
    'x-kubernetes-validations': [{ rule: 'self.first <= self.last', message: 'the first must not be after the last' }],
  },
);

/** How migrations are carried out, cluster-wide; frozen into the status of each guest that moves. */
export const migrationConfiguration = object('How migrations are carried out.', {
  parallelMigrationsPerCluster: count(
    'How many may run at once in the cluster; 5 by default, 1000 at most. 0 lets none begin.',
  ),
  parallelOutboundMigrationsPerNode: count('How many may leave one node at once; 2 by default. 0 lets none leave.'),
  parallelInboundMigrationsPerNode: count('How many may come to one node at once; 2 by default. 0 lets none come.'),
  priorityAgeingSeconds: count(
    'Seconds of waiting that lift a migration to the next class, never to system-critical; 0, the default, for never.',
  ),
  finishedMigrationsKept: count('How many migrations of a guest are kept once they are over; 5 by default.'),
  bandwidthPerMigration: quantity('Bytes per second of one migration at most; 0, the default, for no limit.'),
  completionTimeoutPerGiB: long('Seconds that each GiB may take before something is done about it; 150 by default.'),
  progressTimeout: long('Seconds without progress after which a migration is given up; 150 by default.'),
  maxDowntimeMs: long(
    'Milliseconds that the guest may stand still; 900 by default. Changed only with a gate that tunes it.',
    {
      minimum: 1,
      maximum: 2_000_000,
    },
  ),
  utilityVolumesTimeout: long('Seconds to wait for utility volumes to go. Nothing acts on it here: there are none.'),
  allowAutoConverge: flag('Whether a guest that writes too fast is slowed down; false by default.'),
  allowPostCopy: flag('Whether the guest may go on at its target before all of its memory is there; false by default.'),
  allowWorkloadDisruption: flag('Whether a guest that does not converge may be paused; follows allowPostCopy.'),
  unsafeMigrationOverride: flag('Whether migrations that seem unsafe are let through. Nothing acts on it here.'),
  disableTLS: flag(
    'Whether the copy is sent unencrypted, within the cluster; both sides still prove who they are, and there is no post-copy.',
  ),
  matchSELinuxLevelOnMigration: flag("Whether the target gets the source's SELinux level. Nothing acts on it here."),
  network: text(
    'The network that migrations use. Nothing acts on it here: agents are told themselves (--migration-address).',
  ),
  portRange,
  nodeDrainTaintKey: text('Key of the taint that empties a node; kubevirt.io/drain by default.'),
  disruptionHoldSeconds: count(
    'Seconds for which a launcher that is preempted or tainted away holds its guest, so that it can move; 300 by default.',
  ),
  criticalPreemptionHoldSeconds: count(
    'The same where the room is for a pod of the most critical classes (priority from 2000000000); 60 by default.',
  ),
  syncTimeoutSeconds: count(
    'Seconds for which a half of a migration waits for its other half, and for which what comes before it is kept; 600 by default.',
    { minimum: 1, maximum: 86_400 },
  ),
  experimental: migrationExperiments,
});

export type MigrationConfiguration = Infer<typeof migrationConfiguration>;
