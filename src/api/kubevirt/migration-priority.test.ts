import { expect, it } from 'vitest';
import { MIGRATION_PRIORITIES, priorityNumber, RUNNING_PRIORITY } from './migration-priority.ts';

it('the numbers of the classes are those of the proposal', () => {
  expect(MIGRATION_PRIORITIES.map((name) => [name, priorityNumber(name)])).toEqual([
    ['system-critical', 100],
    ['user-triggered', 50],
    ['system-maintenance', 20],
  ]);
  expect(RUNNING_PRIORITY).toBe(1000);
});

it.each([undefined, '', 'urgent', 'constructor', 'toString'])('no class, or one that nobody knows, is 0: %s', (name) =>
  expect(priorityNumber(name)).toBe(0),
);
