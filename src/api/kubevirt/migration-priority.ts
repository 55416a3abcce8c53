/** The classes of migrations, by which those that wait are ordered. */

/** Numbers of the classes; whoever names none is below all of them. */
const NUMBERS = { 'system-critical': 100, 'user-triggered': 50, 'system-maintenance': 20 } as const;

export type MigrationPriority = keyof typeof NUMBERS;

/** All classes, the most urgent one first. */
export const MIGRATION_PRIORITIES: readonly MigrationPriority[] = [
  'system-critical',
  'user-triggered',
  'system-maintenance',
];

/** Above all classes: a migration that has begun is carried on before any other begins. */
export const RUNNING_PRIORITY = 1000;

export function isMigrationPriority(name: string): name is MigrationPriority {
  return Object.hasOwn(NUMBERS, name);
}

/** The number of a class; 0 for none, and for one that nobody knows. */
export function priorityNumber(name: string | undefined): number {
  return name !== undefined && isMigrationPriority(name) ? NUMBERS[name] : 0;
}
