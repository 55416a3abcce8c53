import type { MigrationState } from '../../api/kubevirt/migration-state.ts';
import { isFinalMigration } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import type { Client } from '../../kube/client.ts';
import { virtualMachineInstanceMigrations, virtualMachineInstances } from '../../kube/kubevirt-resources.ts';
import { keyOf } from '../../kube/resource.ts';
import { isHandedOff, type MigrationFacts, ownState, sourceNodeOf } from '../../migration/phase/facts.ts';
import type { MigrationReference, SlotHolder } from '../../migration/slots/request.ts';
import { guestKeyOf } from './keys.ts';
import { referenceTo } from './slot-requests.ts';

/** What the server itself says of migrations, this very moment: no cache is asked. */

/** Whether all of these have ended or are gone; another object of the same name is none of them. */
export async function areOver(
  client: Client,
  members: readonly MigrationReference[],
  signal: AbortSignal,
): Promise<boolean> {
  for (const { namespace, name, uid } of members) {
    const migration = await client.find(virtualMachineInstanceMigrations, namespace, name, signal);
    if (migration && migration.metadata.uid === uid && !isFinalMigration(migration)) return false;
  }
  return true;
}

/** Stands for a node that nobody remembers: it is as good as any, and none. */
const UNKNOWN_NODE = '?';

type Move = Pick<MigrationFacts, 'migration' | 'guest'>;

/**
 * Who must have slots, whatever a ledger says that is new, or may be an old one that was put back: those of the `known` that
 * are not over, and all that the agents have been given. The others have to stand in line again. Of the latter the guests
 * say so first: a phase is written after the hand-off.
 */
export async function rightfulHolders(
  client: Client,
  known: Iterable<SlotHolder>,
  nowMs: number,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, SlotHolder>> {
  const { items } = await client.list(virtualMachineInstanceMigrations, {}, signal);
  const unfinished = items.filter((each) => !isFinalMigration(each));
  if (unfinished.length === 0) return new Map();
  const guests = new Map((await client.list(virtualMachineInstances, {}, signal)).items.map((it) => [keyOf(it), it]));
  const moves = unfinished.map((migration): Move => ({ migration, guest: guests.get(guestKeyOf(migration)) }));
  const uids = new Set(unfinished.map(({ metadata }) => metadata.uid));
  const holders = [...known].filter(({ members }) => members.some(({ uid }) => uids.has(uid)));
  const counted = new Set(holders.flatMap(({ members }) => members.map(({ uid }) => uid)));
  const started = startedHolders(moves, nowMs).filter(({ members }) => !members.some(({ uid }) => counted.has(uid)));
  return new Map([...holders, ...started].map((holder) => [holder.uid, holder]));
}

function startedHolders(moves: readonly Move[], nowMs: number): SlotHolder[] {
  const receivers = new Map(moves.flatMap((each) => keyed(each.migration.spec.receive?.key, each)));
  const senders = new Map(moves.flatMap((each) => keyed(each.migration.spec.sendTo?.key, each)));
  return moves.flatMap((move) => {
    const { sendTo, receive } = move.migration.spec;
    // The two halves of a move inside this cluster count once, as the sender.
    if (receive && !sendTo && senders.has(receive.key ?? '')) return [];
    const receiver = sendTo && !receive ? receivers.get(sendTo.key ?? '') : undefined;
    const isStarted = isHandedOff(move) || (receiver !== undefined && isHandedOff(receiver));
    return isStarted ? [holderOf(move, receiver, nowMs)] : [];
  });
}

function keyed(key: string | undefined, move: Move): [string, Move][] {
  return key === undefined ? [] : [[key, move]];
}

function holderOf(move: Move, receiver: Move | undefined, nowMs: number): SlotHolder {
  const { metadata, spec } = move.migration;
  const isHalf = (spec.sendTo === undefined) !== (spec.receive === undefined);
  const kind = !isHalf || receiver ? 'local' : spec.sendTo ? 'send' : 'receive';
  const members = [move, ...(receiver ? [receiver] : [])].map(({ migration }) => referenceTo(migration));
  const [state, there] = [stateOf(move), receiver && stateOf(receiver)];
  const sourceNode = state.sourceNode ?? sourceNodeOf(move.guest) ?? UNKNOWN_NODE;
  const targetNode = state.targetNode ?? there?.targetNode ?? UNKNOWN_NODE;
  return {
    uid: metadata.uid ?? '',
    kind,
    members,
    sourceNode: kind === 'receive' ? undefined : sourceNode,
    targetNode: kind === 'send' ? undefined : targetNode,
    state: 'committed',
    sinceMs: nowMs,
  };
}

/** Where a migration goes from and to, as its guest says, or else it itself. */
function stateOf(move: Move): Pick<MigrationState, 'sourceNode' | 'targetNode'> {
  return ownState(move) ?? move.migration.status?.migrationState ?? {};
}
