import { unreachable } from '../unreachable.ts';

/** What happens to a guest whose pod is to be evicted, and who decides that. */

/** None: it is evicted as any pod. LiveMigrate: it is moved, or the eviction is refused. External: somebody else acts. */
export const EVICTION_STRATEGIES = ['None', 'LiveMigrate', 'LiveMigrateIfPossible', 'External'] as const;

export type EvictionStrategy = (typeof EVICTION_STRATEGIES)[number];

interface Guest {
  readonly metadata: { readonly deletionTimestamp?: string | null };
  readonly spec: { readonly evictionStrategy?: EvictionStrategy };
  readonly status?: {
    readonly phase?: string;
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
  };
}

interface Configuration {
  readonly evictionStrategy?: EvictionStrategy;
}

/** The strategy that holds: the guest's own, else the cluster's, else None. */
export function evictionStrategyOf({ spec }: Pick<Guest, 'spec'>, configuration: Configuration): EvictionStrategy {
  return spec.evictionStrategy ?? configuration.evictionStrategy ?? 'None';
}

/** Whether the guest can be live-migrated, as far as anybody has said. */
export function isMigratable({ status }: Pick<Guest, 'status'>): boolean {
  return status?.conditions?.find(({ type }) => type === 'LiveMigratable')?.status === 'True';
}

/** What becomes of a guest when its pod is evicted: it moves, it goes with the pod, it stays, or others see to it. */
export type EvictionOutcome = 'Migrate' | 'Evict' | 'Refuse' | 'External';

/** The outcome of an eviction of a guest as it is now. */
export function evictionOutcomeOf(
  guest: Pick<Guest, 'spec' | 'status'>,
  configuration: Configuration,
): EvictionOutcome {
  const strategy = evictionStrategyOf(guest, configuration);
  switch (strategy) {
    case 'None':
      return 'Evict';
    case 'LiveMigrate':
      return isMigratable(guest) ? 'Migrate' : 'Refuse';
    case 'LiveMigrateIfPossible':
      return isMigratable(guest) ? 'Migrate' : 'Evict';
    case 'External':
      return 'External';
    default:
      return unreachable(strategy);
  }
}

/** Whether a disruption budget has to keep the guest's pods: whoever is not simply evicted has one, from its first moment. */
export function needsBudget(guest: Guest, configuration: Configuration): boolean {
  return isAlive(guest) && evictionOutcomeOf(guest, configuration) !== 'Evict';
}

/** Whether a guest that has to leave its node is to be moved by us. */
export function wantsEvacuation(guest: Guest, configuration: Configuration): boolean {
  return isAlive(guest) && evictionOutcomeOf(guest, configuration) === 'Migrate';
}

function isAlive({ metadata, status }: Guest): boolean {
  return !metadata.deletionTimestamp && status?.phase !== 'Succeeded' && status?.phase !== 'Failed';
}
