import { causesOf, isMarked } from '../../api/kubevirt/evacuation.ts';
import { evictionOutcomeOf } from '../../api/kubevirt/eviction-strategy.ts';
import type { KubeVirtConfiguration } from '../../api/kubevirt/kube-virt.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import {
  isFinalMigration,
  type VirtualMachineInstanceMigration,
} from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { keyOf } from '../../kube/resource.ts';
import { unreachable } from '../../api/unreachable.ts';
import type { NodeCondition } from '../../migration/fit/objects.ts';
import { isEvacuation, isLeavable, notMigratable } from './decide.ts';

/** What keeps a node from becoming empty: which guests stay, and why, in words for whoever empties it. */

/** The condition of nodes that says so. */
export const DRAIN_BLOCKED = 'DrainBlocked';

export interface Hindrance {
  /** The guest, by namespace and name. */
  readonly guest: string;
  readonly message: string;
}

/** What keeps a guest from leaving; undefined where it can go, or where nobody has asked it to yet. */
export function hindranceOf(
  guest: VirtualMachineInstance,
  migrations: readonly VirtualMachineInstanceMigration[],
  configuration: KubeVirtConfiguration,
  /** Without it nothing is said to take too long. */
  nowMs = Number.NEGATIVE_INFINITY,
): Hindrance | undefined {
  const message = isLeavable(guest) ? messageOf(guest, migrations, configuration, nowMs) : undefined;
  return message === undefined ? undefined : { guest: keyOf(guest), message };
}

function messageOf(
  guest: VirtualMachineInstance,
  migrations: readonly VirtualMachineInstanceMigration[],
  configuration: KubeVirtConfiguration,
  nowMs: number,
): string | undefined {
  const outcome = evictionOutcomeOf(guest, configuration);
  switch (outcome) {
    case 'Evict':
      return undefined;
    case 'Refuse':
      return `cannot be live-migrated: ${notMigratable(guest)}`;
    case 'External':
      return 'its eviction strategy is External: whoever manages it has to move or to end it';
    case 'Migrate':
      return delayOf(guest, migrations, nowMs);
    default:
      return unreachable(outcome);
  }
}

/** Conditions of migrations that go no further, and what they mean. */
const DELAYS: ReadonlyMap<string, string> = new Map([
  ['migrationTargetPodUnschedulable', 'no node takes it'],
  ['migrationRejectedByResourceQuota', 'its namespace may have no further pod'],
]);

/** Why the migration of a guest goes no further, or what the last one that was made to empty the node failed of. */
function delayOf(
  guest: VirtualMachineInstance,
  migrations: readonly VirtualMachineInstanceMigration[],
  nowMs: number,
): string | undefined {
  const current = migrations.find((each) => !isFinalMigration(each));
  for (const { type, status, message = '' } of current?.status?.conditions ?? []) {
    const meaning = DELAYS.get(type);
    if (meaning !== undefined && status === 'True') return `${meaning}: ${message}`;
  }
  const isWaiting = !current || ['', 'Pending'].includes(current.status?.phase ?? '');
  if (!isWaiting || !isMarked(guest)) return undefined;
  const [last] = migrations
    .filter((each) => isFinalMigration(each) && isEvacuation(each))
    .toSorted((a, b) => madeMs(b) - madeMs(a));
  if (last?.status?.phase === 'Failed')
    return `its last migration failed, and is tried again: ${last.status.migrationState?.failureReason ?? ''}`;
  const isOverdue = !current && nowMs >= dueMs(guest);
  return isOverdue ? 'it has to leave, and no migration could be made for it: see its events' : undefined;
}

/** A migration is made at once; if there is none after so long, something keeps it from being made. */
const MAKING_MS = 10_000;

/** When a guest that has to leave should have a migration; never where nobody knows since when it has to. */
function dueMs(guest: VirtualMachineInstance): number {
  const sinceMs = causesOf(guest).map(({ since }) => Date.parse(since ?? ''));
  const known = sinceMs.filter((ms) => !Number.isNaN(ms));
  return known.length === 0 ? Number.POSITIVE_INFINITY : Math.min(...known) + MAKING_MS;
}

/** When it has to be looked again whether a guest got its migration although nothing happens; undefined where it has one. */
export function lookAgainMs(
  guest: VirtualMachineInstance,
  migrations: readonly VirtualMachineInstanceMigration[],
  nowMs: number,
): number | undefined {
  const atMs = dueMs(guest);
  return migrations.every(isFinalMigration) && atMs > nowMs && atMs < Number.POSITIVE_INFINITY ? atMs : undefined;
}

function madeMs({ metadata }: VirtualMachineInstanceMigration): number {
  return Date.parse(metadata.creationTimestamp ?? '');
}

/** What is said of one guest, and of all of them: conditions are read by people, in a terminal. */
const MESSAGE_LENGTH_MAX = 300;
const TOTAL_LENGTH_MAX = 2000;

type Verdict = Pick<NodeCondition, 'type' | 'status' | 'reason' | 'message'>;

/** The condition of a node that is being emptied, or was: these guests stay for these reasons. */
export function drainBlocked(hindrances: readonly Hindrance[]): Verdict {
  const type = DRAIN_BLOCKED;
  if (hindrances.length === 0)
    return { type, status: 'False', reason: 'NothingInTheWay', message: 'no virtual machine is kept from leaving' };
  const lines = hindrances
    .toSorted((a, b) => (a.guest < b.guest ? -1 : 1))
    .map(({ guest, message }) => shortened(`${guest}: ${message}`));
  const count = hindrances.length;
  let text = `${count} virtual ${count === 1 ? 'machine' : 'machines'} cannot leave`;
  for (const [index, line] of lines.entries()) {
    const next = `${text}${index === 0 ? ': ' : '; '}${line}`;
    if (next.length > TOTAL_LENGTH_MAX) {
      text += `; and ${count - index} more`;
      break;
    }
    text = next;
  }
  return { type, status: 'True', reason: 'VirtualMachinesStay', message: text };
}

function shortened(line: string): string {
  return line.length <= MESSAGE_LENGTH_MAX ? line : `${line.slice(0, MESSAGE_LENGTH_MAX - 3)}...`;
}
