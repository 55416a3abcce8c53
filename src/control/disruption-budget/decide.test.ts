import { describe, expect, it } from 'vitest';
import type { EvictionStrategy } from '../../api/kubevirt/eviction-strategy.ts';
import type { VirtualMachineInstanceStatus } from '../../api/kubevirt/virtual-machine-instance.ts';
import { budgetFor, type DisruptionBudget } from '../../migration/eviction/disruption-budget.ts';
import { guestOf } from '../vmi/guests.fixture.ts';
import { type BudgetFacts, decide } from './decide.ts';

const MOVABLE: VirtualMachineInstanceStatus = {
  phase: 'Running',
  nodeName: 'node-a',
  conditions: [{ type: 'LiveMigratable', status: 'True' }],
};
const STUCK: VirtualMachineInstanceStatus = { ...MOVABLE, conditions: [{ type: 'LiveMigratable', status: 'False' }] };

function facts(evictionStrategy: EvictionStrategy, status = MOVABLE, more: Partial<BudgetFacts> = {}): BudgetFacts {
  return {
    guest: guestOf({ evictionStrategy }, status),
    configuration: {},
    budget: undefined,
    others: [],
    podCount: 1,
    isMigrating: false,
    isExpansionOver: true,
    ...more,
  };
}

/** A budget that keeps so many pods of the guest, for a migration or for none. */
const budget = (minAvailable: number, migration?: string): DisruptionBudget =>
  budgetFor(guestOf(), minAvailable, migration);

/** What is done, in a word each. */
const done = (given: BudgetFacts): string[] =>
  decide(given).map((step) => (step.kind === 'delete' ? 'delete' : `${step.kind} ${step.minAvailable}`));

describe('a budget', () => {
  it.each<[EvictionStrategy, string, VirtualMachineInstanceStatus, string[]]>([
    ['None', 'movable', MOVABLE, []],
    ['None', 'stuck', STUCK, []],
    ['LiveMigrate', 'movable', MOVABLE, ['create 1']],
    ['LiveMigrate', 'stuck', STUCK, ['create 1']],
    ['LiveMigrate', 'not looked at yet', {}, ['create 1']],
    ['LiveMigrateIfPossible', 'movable', MOVABLE, ['create 1']],
    ['LiveMigrateIfPossible', 'stuck', STUCK, []],
    ['LiveMigrateIfPossible', 'not looked at yet', {}, []],
    ['External', 'movable', MOVABLE, ['create 1']],
    ['External', 'stuck', STUCK, ['create 1']],
  ])('%s, %s', (strategy, _, status, steps) => {
    expect(done(facts(strategy, status, { podCount: 0 }))).toEqual(steps);
  });

  it.each<[string, Partial<BudgetFacts>, string[]]>([
    ['keeps one pod', { budget: budget(1) }, []],
    ['keeps the pod that is to come', { budget: budget(1), podCount: 0 }, []],
    ['keeps two for a migration that is under way', { budget: budget(2, 'm'), isExpansionOver: false }, []],
    ['keeps two while both are there', { budget: budget(2, 'm'), podCount: 2 }, []],
    ['shrinks when one is left and the migration is over', { budget: budget(2, 'm') }, ['correct 1']],
    ['shrinks when none is left', { budget: budget(2, 'm'), podCount: 0 }, ['correct 1']],
    ['loses the name of a migration that is over', { budget: budget(1, 'm') }, ['correct 1']],
    ['grows to what is there', { budget: budget(1), podCount: 2 }, ['correct 2']],
    ['is made for what is there', { podCount: 2 }, ['create 2']],
    [
      'keeps pods also while they are not ready',
      { budget: { ...budget(1), spec: { ...budget(1).spec, unhealthyPodEvictionPolicy: 'AlwaysAllow' } } },
      ['correct 1'],
    ],
    [
      'may say in words what it does anyway',
      { budget: { ...budget(1), spec: { ...budget(1).spec, unhealthyPodEvictionPolicy: 'IfHealthyBudget' } } },
      [],
    ],
  ])('%s', (_, more, steps) => {
    expect(done(facts('LiveMigrate', MOVABLE, more))).toEqual(steps);
  });

  it.each<[string, VirtualMachineInstanceStatus, boolean, string[]]>([
    ['goes when nobody needs it', STUCK, false, ['delete']],
    ['stays while the guest is marked', { ...STUCK, evacuationNodeName: 'node-a' }, false, []],
    ['goes when the guest is marked for another node', { ...STUCK, evacuationNodeName: 'node-b' }, false, ['delete']],
    ['stays while the guest moves', STUCK, true, []],
    ['goes with the guest, whatever is under way', { ...STUCK, phase: 'Failed' }, true, ['delete']],
  ])('%s', (_, status, isMigrating, steps) => {
    expect(done(facts('LiveMigrateIfPossible', status, { budget: budget(1), isMigrating }))).toEqual(steps);
  });

  it('is there before others go', () => {
    const others = [budget(1)];
    expect(done(facts('LiveMigrate', MOVABLE, { others }))).toEqual(['create 1']);
    expect(done(facts('LiveMigrate', MOVABLE, { others, budget: budget(1) }))).toEqual(['delete']);
  });

  it('is deleted on the word of a cache only where nothing could bring the need back', () => {
    const certain = (status: VirtualMachineInstanceStatus) =>
      decide(facts('LiveMigrateIfPossible', status, { budget: budget(1) }))[0];
    expect(certain(STUCK)).toMatchObject({ kind: 'delete', isCertain: false });
    expect(certain({ ...MOVABLE, phase: 'Succeeded' })).toMatchObject({ kind: 'delete', isCertain: true });
  });
});
