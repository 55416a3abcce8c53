import { expect, it } from 'vitest';
import { isFinalMigration, MIGRATION_PHASES } from './virtual-machine-instance-migration.ts';

it('two phases are the last ones', () => {
  expect(MIGRATION_PHASES.filter((phase) => isFinalMigration({ status: { phase } }))).toEqual(['Succeeded', 'Failed']);
  expect(isFinalMigration({})).toBe(false);
});
