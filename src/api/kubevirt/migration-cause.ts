import { choice, type Infer, integer, listByKey, moment, needed, object, text } from '../typed-schema.ts';

/** Why a guest moves. One move may serve several causes, of which the most urgent one counts. */

export const MIGRATION_CAUSES = [
  'User',
  'APIEviction',
  'Preemption',
  'NoExecuteTaint',
  'DrainTaint',
  'WorkloadUpdate',
  'Descheduler',
  'CrossCluster',
] as const;

export type MigrationCause = (typeof MIGRATION_CAUSES)[number];

export const cause = (description: string) => choice(description, MIGRATION_CAUSES);

const servedCause = object('A cause that this move serves.', {
  cause: needed(cause('What it is.')),
  priority: integer('The number of its class; 0 for none.'),
  since: moment('When it came up.'),
  deadline: moment('When the guest must be gone; a preempted pod has one.'),
  message: text('The cause in words.'),
});

/** All causes that one migration serves. */
export const causes = listByKey('Why the guest moves: all causes that this move serves.', 'cause', servedCause);

export type ServedCause = Infer<typeof servedCause>;
