import type { VirtualMachineInstanceMigration } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { EVACUATION_ANNOTATION, WORKLOAD_UPDATE_ANNOTATION } from '../../api/kubevirt/well-known.ts';
import { phaseBeganMs } from './facts.ts';
import type { FailureReason } from './failure.ts';

/**
 * How long the cluster's own migrations of a guest wait after others failed, as KubeVirt has it: 20 seconds after the
 * first failure in a row, twice as long after each further one. What people ask for never waits; and what has to be over
 * soon is not kept waiting for much of the time that it has.
 */

const FIRST_MS = 20_000;
/** As many failures as KubeVirt remembers: it keeps five finished migrations. */
const DOUBLINGS_MAX = 4;

/** What part of the time up to a deadline may be waited for, and for how long in any case. */
const SHARE_OF_DEADLINE = 1 / 8;
const SHORTEST_MS = 5000;

const OWN_ANNOTATIONS = [EVACUATION_ANNOTATION, WORKLOAD_UPDATE_ANNOTATION];

/** Whether the cluster itself made it, to empty a node or to update a workload. */
export function isClustersOwn({ metadata }: VirtualMachineInstanceMigration): boolean {
  return OWN_ANNOTATIONS.some((name) => Object.hasOwn(metadata.annotations ?? {}, name));
}

/** Before which moment a migration should not begin; undefined where it need not wait. All are of one guest. */
export function backoffUntilMs(
  migration: VirtualMachineInstanceMigration,
  all: Iterable<VirtualMachineInstanceMigration>,
  /** When the guest must be gone. */
  deadlineMs = Number.POSITIVE_INFINITY,
): number | undefined {
  if (!isClustersOwn(migration)) return undefined;
  const others = [...all]
    .filter((each) => each.metadata.uid !== migration.metadata.uid && isClustersOwn(each))
    .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    .toSorted((a, b) => madeMs(b) - madeMs(a));
  const firstOther = others.findIndex(({ status }) => status?.phase !== 'Failed');
  const failures = (firstOther < 0 ? others : others.slice(0, firstOther)).filter((each) => !foundNoNode(each));
  if (failures.length === 0) return undefined;
  const delayMs = FIRST_MS * 2 ** Math.min(failures.length - 1, DOUBLINGS_MAX);
  // Two that were made in the same second have no order of their own.
  const failedMs = Math.max(...failures.map((each) => phaseBeganMs(each, 'Failed') ?? madeMs(each)));
  const bearableMs = Math.max(SHORTEST_MS, (deadlineMs - failedMs) * SHARE_OF_DEADLINE);
  return failedMs + Math.min(delayMs, bearableMs);
}

/**
 * One that no node took has waited for minutes, at no cost, and nothing went wrong with it: its successor is in line at
 * once, or the room that comes up meanwhile would be found late.
 */
function foundNoNode({ status }: VirtualMachineInstanceMigration): boolean {
  const reason: FailureReason = 'TargetPodUnschedulable';
  return status?.conditions?.some((each) => each.type === 'migrationFailed' && each.reason === reason) === true;
}

function madeMs({ metadata }: VirtualMachineInstanceMigration): number {
  return Date.parse(metadata.creationTimestamp ?? '');
}
