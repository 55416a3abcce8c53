import { humanDuration } from '../../api/human-duration.ts';
import { MIGRATION_PRIORITIES, priorityNumber } from '../../api/kubevirt/migration-priority.ts';
import { unreachable } from '../../api/unreachable.ts';
import type { SlotLimits } from '../../migration/slots/ledger.ts';
import type { FullSlots, Moving, Queue, Waiting } from './queue.ts';

/** The queue in words; pure. */

/** What is said of one that waits. */
export interface WaitingWords {
  readonly why: string;
  /** Whom it waits for: those that have the slots, and those that come before it. */
  readonly behind: readonly string[];
  /** What would let it go. */
  readonly remedy: string;
}

/** The field of the cluster's configuration that sets a limit. */
const FIELDS: { readonly [scope in FullSlots['of']]: string } = {
  cluster: 'parallelMigrationsPerCluster',
  leaving: 'parallelOutboundMigrationsPerNode',
  arriving: 'parallelInboundMigrationsPerNode',
};

/** Says why one waits, behind whom, and what would let it go. */
export function waitingWords(waiting: Waiting, queue: Queue, nowMs: number): WaitingWords {
  if (waiting.heldUp) return { why: heldUpText(waiting, nowMs), behind: [], remedy: heldUpRemedy(waiting, nowMs) };
  const { full } = waiting;
  if (full.length === 0)
    return {
      why: waiting.behind.length > 0 ? 'others come before it' : 'nothing is in its way',
      behind: waiting.behind,
      remedy: 'it gets its slots as soon as the migration controller looks at it; see that the control plane runs',
    };
  const takers = [...new Set(full.flatMap(({ takenBy }) => takenBy))];
  const behind = [...takers.map((machine) => withProgress(machine, queue.moving)), ...waiting.behind];
  return { why: full.map(fullText).join('; and '), behind, remedy: slotRemedy(full, waiting.behind.length) };
}

function fullText(slots: FullSlots): string {
  const field = FIELDS[slots.of];
  if (slots.limit === 0) return `migrations are paused: ${field} is 0`;
  const count = slots.limit === 1 ? 'the one' : `all ${slots.limit}`;
  switch (slots.of) {
    case 'cluster':
      return `${count} that may move at once in the cluster ${slots.limit === 1 ? 'is' : 'are'} under way`;
    case 'leaving':
      return `${count} that may leave ${slots.node} at once ${slots.limit === 1 ? 'is' : 'are'} under way`;
    case 'arriving':
      return `${count} that may come to ${slots.node} at once ${slots.limit === 1 ? 'is' : 'are'} under way`;
    default:
      return unreachable(slots);
  }
}

function slotRemedy(full: readonly FullSlots[], before: number): string {
  const paused = full.find(({ limit }) => limit === 0);
  const fields = [...new Set(full.map(({ of }) => FIELDS[of]))].join(' and ');
  if (paused) return `set ${FIELDS[paused.of]} of the KubeVirt resource above 0`;
  const others =
    before === 0 ? '' : before === 1 ? ', and the one before it has gone' : `, and the ${before} before it have gone`;
  return `it goes when one of those under way ends${others}; or raise ${fields} of the KubeVirt resource`;
}

function withProgress(machine: string, moving: readonly Moving[]): string {
  const found = moving.find((each) => each.machine === machine);
  const summary = found?.migration.status?.progress?.summary;
  return summary === undefined ? machine : `${machine} (${summary})`;
}

function heldUpText({ heldUp, migration }: Waiting, nowMs: number): string {
  if (!heldUp) return '';
  const messageOf = (type: string): string => {
    const message = migration.status?.conditions?.find((each) => each.type === type)?.message;
    return message ? `: ${message}` : '';
  };
  switch (heldUp.kind) {
    case 'Backoff':
      return `the last try failed, and the next one waits for ${humanDuration(heldUp.untilMs - nowMs)}`;
    case 'NotMovable':
      return 'its guest does not run';
    case 'Busy':
      return `${heldUp.node} is still at an earlier move of its guest`;
    case 'Quota':
      return `the quota of its namespace leaves no room for a second pod${messageOf('migrationRejectedByResourceQuota')}`;
    case 'NoNode':
      return `no node takes it${messageOf('migrationTargetPodUnschedulable')}`;
    case 'OtherHalf':
      return `its other half is not ready${messageOf('decentralizedMigrationBlocked')}`;
    default:
      return unreachable(heldUp);
  }
}

function heldUpRemedy({ heldUp, migration, machine }: Waiting, nowMs: number): string {
  const { namespace = '' } = migration.metadata;
  const name = machine.slice(namespace.length + 1);
  switch (heldUp?.kind) {
    case undefined:
      return '';
    case 'Backoff':
      return `it goes on by itself in ${humanDuration(heldUp.untilMs - nowMs)}; 'godwit migrate ${name} -n ${namespace}' does not wait`;
    case 'NotMovable':
      return `it goes on once the guest runs ('godwit why vm ${name} -n ${namespace}' says why it does not)`;
    case 'Busy':
      return `it goes on once the agent of ${heldUp.node} has ended that ('godwit why node ${heldUp.node}' says how it is)`;
    case 'Quota':
      return `it goes on once the quota of ${namespace} leaves room for its pod`;
    case 'NoNode':
      return 'it goes on once a node has room for it, and the labels that it asks for';
    case 'OtherHalf':
      return 'it goes on once the other half is there, with the same key, and the clusters reach and trust each other';
    default:
      return unreachable(heldUp);
  }
}

/** A priority with the name of its class. */
export function priorityText(priority: number): string {
  const name = MIGRATION_PRIORITIES.find((each) => priorityNumber(each) === priority);
  return name ?? (priority === 0 ? 'none' : String(priority));
}

/** What is taken of what there is, in a sentence. */
export function slotsText({ moving, rules }: Queue): string {
  const { perCluster, outboundPerNode, inboundPerNode }: SlotLimits = rules.limits;
  const order = rules.isByPriority ? 'by class, deadline and age' : 'by age';
  return `${moving.length} of ${perCluster} in the cluster move; at most ${outboundPerNode} leave a node and ${inboundPerNode} come to one; who waits goes ${order}`;
}
