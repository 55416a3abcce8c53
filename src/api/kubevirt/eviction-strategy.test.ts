import { describe, expect, it } from 'vitest';
import {
  effectiveEvictionStrategy,
  type EvictionOutcome,
  evictionOutcome,
  type EvictionStrategy,
} from './eviction-strategy.ts';

describe('the eviction strategy', () => {
  it.each<[EvictionStrategy | undefined, EvictionStrategy | undefined, EvictionStrategy]>([
    [undefined, undefined, 'None'],
    [undefined, 'LiveMigrate', 'LiveMigrate'],
    ['None', 'LiveMigrate', 'None'],
    ['External', undefined, 'External'],
  ])('of a guest that says %s in a cluster that says %s is %s', (ofGuest, ofCluster, strategy) => {
    expect(effectiveEvictionStrategy(ofGuest, ofCluster)).toBe(strategy);
  });
  it.each<[EvictionStrategy, isLiveMigratable: boolean, EvictionOutcome]>([
    ['None', true, 'Evict'],
    ['None', false, 'Evict'],
    ['LiveMigrate', true, 'Migrate'],
    ['LiveMigrate', false, 'Refuse'],
    ['LiveMigrateIfPossible', true, 'Migrate'],
    ['LiveMigrateIfPossible', false, 'Evict'],
    ['External', true, 'External'],
    ['External', false, 'External'],
  ])('%s, live-migratable %s: %s', (strategy, isLiveMigratable, outcome) => {
    expect(evictionOutcome(strategy, isLiveMigratable)).toBe(outcome);
  });
});
