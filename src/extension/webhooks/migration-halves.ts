import { sidesOf } from '../../api/kubevirt/migration-sides.ts';
import type { MigrationState } from '../../api/kubevirt/migration-state.ts';
import { isAway, isSameRunner } from '../../api/kubevirt/right-to-run-transition.ts';
import type {
  VirtualMachineInstance,
  VirtualMachineInstanceStatus,
} from '../../api/kubevirt/virtual-machine-instance.ts';
import { deepEqual } from '../../machinery/equal.ts';

/**
 * Who writes what of a guest's migration: the controllers say between which nodes it is, each of the two agents writes its
 * own half, and the verdict is for whoever has the right to run the guest.
 */

type Field = keyof MigrationState;

const SOURCE_FIELDS: ReadonlySet<string> = new Set<Field>([
  'startTimestamp',
  'mode',
  'channel',
  'progress',
  'decisions',
  'sourceLetter',
]);
/** What a source may still tell once its guest has gone: how the copy was, which it drives to its end. */
const LAST_WORDS: ReadonlySet<string> = new Set<Field>(['channel', 'progress', 'decisions']);
/** Of a migration after which the guest is where it was. */
const FAILURE_FIELDS: ReadonlySet<string> = new Set<Field>([
  'completed',
  'failed',
  'failureReason',
  'abortStatus',
  'endTimestamp',
]);
const TARGET_FIELDS: ReadonlySet<string> = new Set<Field>([
  'targetNodeAddress',
  'targetDirectMigrationNodePorts',
  'targetRunner',
  'targetLetter',
]);
/** Of a migration after which it is at its target. */
const SUCCESS_FIELDS: ReadonlySet<string> = new Set<Field>([
  'targetNodeDomainDetected',
  'targetNodeDomainReadyTimestamp',
  'completed',
  'endTimestamp',
  'downtimeMs',
  'mode',
  'progress',
]);

/** What is wrong with a node's change of a guest's migration; undefined for nothing. */
export function migrationObjection(
  node: string,
  guest: VirtualMachineInstance,
  next: VirtualMachineInstanceStatus,
): string | undefined {
  const old = guest.status ?? {};
  // Neither made nor forgotten by nodes.
  if ((old.migrationState === undefined) !== (next.migrationState === undefined))
    return 'may not write status.migrationState';
  const [before = {}, after = {}] = [old.migrationState, next.migrationState];
  const fields = changedFields(before, after);
  if (fields.length === 0) return undefined;
  const sides = sidesOf(guest);
  const isSource = sides.isSource && before.sourceNode === node;
  const isTarget = sides.isTarget && before.targetNode === node;
  const isDescribed = sides.isSource && isDescriber(node, old);
  if (!isSource && !isTarget && !isDescribed) return 'is no side of the migration of this guest';
  const holder = next.rightToRun?.holder?.node;
  const hasGone = isAway(next.rightToRun) || (holder !== undefined && holder !== node);
  // A guest that has ended by now may have arrived before.
  const hasStayed = !hasGone && (holder === node || before.completed !== true);
  const isMine = (field: string): boolean =>
    (isSource && (hasGone ? isLastWord(field, before, after) : SOURCE_FIELDS.has(field))) ||
    (isSource && hasStayed && FAILURE_FIELDS.has(field)) ||
    (isDescribed && isOfDisks(before.sourceState, after.sourceState)) ||
    // A guest that was to come from elsewhere and has not: its target has refused it.
    (isTarget && !sides.isSource && !next.rightToRun && FAILURE_FIELDS.has(field)) ||
    (isTarget && (TARGET_FIELDS.has(field) || (holder === node && SUCCESS_FIELDS.has(field))));
  const field = fields.find((each) => !isMine(each));
  if (field !== undefined) return `may not write status.migrationState.${field}`;
  return runnerObjection(node, old, after);
}

/** Whether the guest is this node's, and was said to be what goes elsewhere, maybe before it is known where. */
function isDescriber(node: string, { rightToRun, migrationState }: VirtualMachineInstanceStatus): boolean {
  const { runner } = migrationState?.sourceState ?? {};
  return !isAway(rightToRun) && runner?.node === node && isSameRunner(runner, rightToRun?.holder);
}

/** Of its side as a whole a source says nothing but which disks the guest has there: that it alone knows to the byte. */
function isOfDisks(before: MigrationState['sourceState'], after: MigrationState['sourceState']): boolean {
  const [{ volumes: _old, ...old }, { volumes: _next, ...next }] = [before ?? {}, after ?? {}];
  return before !== undefined && after?.volumes !== undefined && deepEqual(old, next);
}

/** By mode and progress it is judged whether memory has yet to follow the guest: neither is ever taken back. */
function isLastWord(field: string, before: MigrationState, after: MigrationState): boolean {
  if (field === 'mode') return after.mode === 'PostCopy';
  const isBack = field === 'progress' && (after.progress?.percent ?? 0) < (before.progress?.percent ?? 0);
  return LAST_WORDS.has(field) && !isBack;
}

/** Who waits for a guest is a launcher pod of its own node, and no other. */
function runnerObjection(
  node: string,
  { activePods = {}, migrationState }: VirtualMachineInstanceStatus,
  { targetRunner }: MigrationState,
): string | undefined {
  if (!targetRunner || deepEqual(migrationState?.targetRunner, targetRunner)) return undefined;
  const pods = new Map(Object.entries(activePods));
  const isOwn = targetRunner.node === node && pods.get(targetRunner.podUID) === node;
  return isOwn ? undefined : 'may wait for a guest only in a launcher pod that it runs';
}

function changedFields(old: MigrationState, next: MigrationState): string[] {
  const [before, after] = [new Map(Object.entries(old)), new Map(Object.entries(next))];
  const all = new Set([...before.keys(), ...after.keys()]);
  return [...all].filter((field) => !deepEqual(before.get(field), after.get(field)));
}
