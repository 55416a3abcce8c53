import { describe, expect, it } from 'vitest';
import {
  type EvictionOutcome,
  evictionOutcomeOf,
  type EvictionStrategy,
  evictionStrategyOf,
  isMigratable,
  needsBudget,
  wantsEvacuation,
} from './eviction-strategy.ts';

function guest(evictionStrategy: EvictionStrategy | undefined, liveMigratable: boolean, phase = 'Running') {
  const status = liveMigratable ? 'True' : 'False';
  return {
    metadata: {},
    spec: evictionStrategy ? { evictionStrategy } : {},
    status: { phase, conditions: [{ type: 'LiveMigratable', status }] },
  };
}

describe('the eviction strategy', () => {
  it.each<[EvictionStrategy | undefined, EvictionStrategy | undefined, EvictionStrategy]>([
    [undefined, undefined, 'None'],
    [undefined, 'LiveMigrate', 'LiveMigrate'],
    ['None', 'LiveMigrate', 'None'],
    ['External', undefined, 'External'],
  ])('of a guest that says %s in a cluster that says %s is %s', (ofGuest, ofCluster, strategy) => {
    const configuration = ofCluster ? { evictionStrategy: ofCluster } : {};
    expect(evictionStrategyOf(guest(ofGuest, true), configuration)).toBe(strategy);
  });

  it.each<[EvictionStrategy, isLiveMigratable: boolean, EvictionOutcome, hasBudget: boolean, isMoved: boolean]>([
    ['None', true, 'Evict', false, false],
    ['None', false, 'Evict', false, false],
    ['LiveMigrate', true, 'Migrate', true, true],
    ['LiveMigrate', false, 'Refuse', true, false],
    ['LiveMigrateIfPossible', true, 'Migrate', true, true],
    ['LiveMigrateIfPossible', false, 'Evict', false, false],
    ['External', true, 'External', true, false],
    ['External', false, 'External', true, false],
  ])('%s, live-migratable %s: %s, has a budget %s, is moved %s', (strategy, isLive, outcome, hasBudget, isMoved) => {
    for (const [ofGuest, configuration] of [
      [strategy, {}],
      [undefined, { evictionStrategy: strategy }],
    ] as const) {
      const subject = guest(ofGuest, isLive);
      expect(evictionOutcomeOf(subject, configuration)).toBe(outcome);
      expect(needsBudget(subject, configuration)).toBe(hasBudget);
      expect(wantsEvacuation(subject, configuration)).toBe(isMoved);
    }
  });

  it('takes for movable only who is said to be', () => {
    expect(isMigratable({})).toBe(false);
    expect(isMigratable({ status: { conditions: [] } })).toBe(false);
    expect(isMigratable({ status: { conditions: [{ type: 'LiveMigratable', status: 'Unknown' }] } })).toBe(false);
  });

  it.each([
    ['has ended', guest('LiveMigrate', true, 'Succeeded')],
    ['has failed', guest('LiveMigrate', true, 'Failed')],
    ['is being deleted', { ...guest('External', true), metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } }],
  ])('keeps and moves no guest that %s', (_, subject) => {
    expect(needsBudget(subject, {})).toBe(false);
    expect(wantsEvacuation(subject, {})).toBe(false);
  });

  it('keeps a guest that nobody has looked at yet', () => {
    expect(needsBudget({ metadata: {}, spec: { evictionStrategy: 'LiveMigrate' } }, {})).toBe(true);
  });
});
