import { unreachable } from '../unreachable.ts';

/** What happens to a guest whose pod is to be evicted, and who decides that. */

/** None: it is evicted as any pod. LiveMigrate: it is moved, or the eviction is refused. External: somebody else acts. */
export const EVICTION_STRATEGIES = ['None', 'LiveMigrate', 'LiveMigrateIfPossible', 'External'] as const;

export type EvictionStrategy = (typeof EVICTION_STRATEGIES)[number];

/** The strategy that holds: the guest's own, else the cluster's, else None. */
export function effectiveEvictionStrategy(
  ofGuest: EvictionStrategy | undefined,
  ofCluster: EvictionStrategy | undefined,
): EvictionStrategy {
  return ofGuest ?? ofCluster ?? 'None';
}

/** What becomes of a guest when its pod is evicted: it moves, it goes with the pod, it stays, or others see to it. */
export type EvictionOutcome = 'Migrate' | 'Evict' | 'Refuse' | 'External';

/** The outcome of an eviction under a strategy, for a guest that can be live-migrated or cannot. */
export function evictionOutcome(strategy: EvictionStrategy, isLiveMigratable: boolean): EvictionOutcome {
  switch (strategy) {
    case 'None':
      return 'Evict';
    case 'LiveMigrate':
      return isLiveMigratable ? 'Migrate' : 'Refuse';
    case 'LiveMigrateIfPossible':
      return isLiveMigratable ? 'Migrate' : 'Evict';
    case 'External':
      return 'External';
    default:
      return unreachable(strategy);
  }
}
