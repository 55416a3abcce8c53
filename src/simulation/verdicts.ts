import {
  isFinalMigration,
  type VirtualMachineInstanceMigration,
} from '../api/kubevirt/virtual-machine-instance-migration.ts';
import { MIGRATIONS } from './buckets.ts';
import type { Observation } from './observer.ts';

/** How the migrations of a run ended: a run in which nothing moves shows nothing about moves. */
export interface Verdicts {
  readonly succeeded: number;
  readonly failed: number;
}

export const NO_VERDICTS: Verdicts = { succeeded: 0, failed: 0 };

/** With what a durable change adds to them. */
export function withVerdict(verdicts: Verdicts, { bucket, object, previous }: Observation): Verdicts {
  if (bucket !== MIGRATIONS || !object) return verdicts;
  const [now, before] = [object, previous] as (VirtualMachineInstanceMigration | undefined)[];
  if (!now || !isFinalMigration(now) || (before && isFinalMigration(before))) return verdicts;
  return now.status?.phase === 'Succeeded'
    ? { ...verdicts, succeeded: verdicts.succeeded + 1 }
    : { ...verdicts, failed: verdicts.failed + 1 };
}
