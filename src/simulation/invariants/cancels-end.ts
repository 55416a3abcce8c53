import {
  isFinalMigration,
  type VirtualMachineInstanceMigration,
} from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { keyOf } from '../../kube/resource.ts';
import { MIGRATIONS } from '../buckets.ts';
import type { Invariant } from '../invariant.ts';
import { isHandedOff, migrationsOf } from '../moves.ts';

/** Nodes that were given up come back within this time, and then say what became of their guests. */
const CANCEL_MS_MAX = 5 * 60_000;
/** What no agent has begun ends as soon as there is a controller. */
const EARLY_CANCEL_MS_MAX = 90_000;

/**
 * A migration that was deleted is over soon, as far as nothing fails; or else it says that it is past the point where it
 * could be stopped.
 */
export function cancelsEnd(): Invariant {
  const sinceMs = new Map<string, number>();
  let calmSinceMs: number | undefined;
  return {
    name: 'cancels-end',
    observe({ bucket, object, atMs }) {
      const { uid = '', deletionTimestamp } = object?.metadata ?? {};
      if (bucket === MIGRATIONS && deletionTimestamp !== undefined && !sinceMs.has(uid)) sinceMs.set(uid, atMs);
      return undefined;
    },
    unsettled({ state, elapsedMs }) {
      calmSinceMs ??= elapsedMs;
      const calmMs = calmSinceMs;
      return migrationsOf(state).flatMap((migration) => {
        const askedMs = sinceMs.get(migration.metadata.uid ?? '');
        if (askedMs === undefined || isFinalMigration(migration) || isPastIt(migration)) return [];
        const boundMs = isHandedOff(migration) ? CANCEL_MS_MAX : EARLY_CANCEL_MS_MAX;
        const isLate = elapsedMs > Math.max(askedMs, calmMs) + boundMs;
        return [{ key: keyOf(migration), what: `was cancelled, and is ${migration.status?.phase}`, isLate }];
      });
    },
  };
}

function isPastIt({ status }: VirtualMachineInstanceMigration): boolean {
  return (status?.conditions ?? []).some(
    ({ type, status: value, reason }) =>
      type === 'migrationAbortRequested' && value === 'True' && reason === 'PostCopy',
  );
}
