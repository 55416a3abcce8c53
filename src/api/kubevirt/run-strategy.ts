import { type FieldError, child, invalid, required } from '../field-error.ts';
import { unreachable } from '../unreachable.ts';

/** Whether a machine's guest should run. */

/**
 * Always: it runs, and is started again whenever it ends. RerunOnFailure: the same, unless it ended well. Manual: as
 * users say. Halted: it does not run. Once: it runs until it ends. WaitAsReceiver: it comes from elsewhere.
 */
export const RUN_STRATEGIES = ['Always', 'RerunOnFailure', 'Manual', 'Halted', 'Once', 'WaitAsReceiver'] as const;

export type RunStrategy = (typeof RUN_STRATEGIES)[number];

/** The two fields that say it; `running` is the older one. */
export interface RunWish {
  readonly running?: boolean;
  readonly runStrategy?: RunStrategy;
}

/** The strategy that holds: `runStrategy`, else Always or Halted by `running`, else Halted. */
export function effectiveRunStrategy(wish: RunWish): RunStrategy {
  return wish.runStrategy ?? (wish.running === true ? 'Always' : 'Halted');
}

/** Refuses a machine that says it twice or not at all, or waits for a guest where guests cannot come from elsewhere. */
export function runStrategyErrors(wish: RunWish, path: string, isDecentralizedMigrationEnabled: boolean): FieldError[] {
  const { running, runStrategy } = wish;
  if (running !== undefined && runStrategy !== undefined)
    return [
      invalid(
        child(path, 'running'),
        running,
        'Running and RunStrategy are mutually exclusive. Note that Running is deprecated, please use RunStrategy instead',
      ),
    ];
  if (running === undefined && runStrategy === undefined)
    return [required(child(path, 'runStrategy'), 'RunStrategy must be specified')];
  if (runStrategy === 'WaitAsReceiver' && !isDecentralizedMigrationEnabled)
    return [
      invalid(
        child(path, 'runStrategy'),
        runStrategy,
        'Invalid RunStrategy (WaitAsReceiver), DecentralizedLiveMigration feature gate is not enabled in kubevirt resource',
      ),
    ];
  return [];
}

/** How a guest ended. */
export type GuestEnd = 'Succeeded' | 'Failed';

/** Whether a guest that ended by itself is made anew under a strategy. */
export function isRunAgain(strategy: RunStrategy, end: GuestEnd): boolean {
  switch (strategy) {
    case 'Always':
      return true;
    case 'RerunOnFailure':
      return end === 'Failed';
    case 'Manual':
    case 'Halted':
    case 'Once':
    case 'WaitAsReceiver':
      return false;
    default:
      return unreachable(strategy);
  }
}
