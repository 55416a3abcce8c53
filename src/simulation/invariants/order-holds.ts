import { causesOf, isMarked } from '../../api/kubevirt/evacuation.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import {
  isFinalMigration,
  type VirtualMachineInstanceMigration,
} from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { deepEqual } from '../../machinery/equal.ts';
import { backoffUntilMs } from '../../migration/phase/backoff.ts';
import type { SlotLedger } from '../../migration/slots/ledger.ts';
import { comesBefore, earliestDeadlineMs, effectivePriority, type Rank } from '../../migration/slots/order.ts';
import { MIGRATIONS, VMIS } from '../buckets.ts';
import type { Invariant } from '../invariant.ts';
import { guestKeyOf, LEDGER, ledgerIn, migrationsOf } from '../moves.ts';
import type { State } from '../observer.ts';

/** How one that is not over stands, as far as anybody could know. */
interface Standing {
  readonly name: string;
  readonly rank: Rank;
  /** Since when it is as urgent as it is. */
  readonly rankedMs: number;
  /** How urgent it was, and until when: whoever gives slots may hear late that it is not any more. */
  readonly past: readonly { readonly rank: Rank; readonly untilMs: number }[];
  /** The node that it could leave if it had a slot; undefined where it has one, or could not use it. */
  readonly sourceNode: string | undefined;
  readonly waitingMs: number;
}

/** Who gives slots may not know yet of one that waits for less than this: longer than anybody is cut off, or behind. */
const UNHEARD_MS = 300_000;
/** The same where nothing fails. */
const UNHEARD_CALM_MS = 15_000;

/** Nobody gets a slot while another one could have it that goes before it: by class, then by deadline, then by age. */
export function orderHolds(): Invariant {
  let standings: ReadonlyMap<string, Standing> = new Map();
  return {
    name: 'order-holds',
    observe({ bucket, key, object, previous, atMs, isCalm }, state) {
      const isLedger = bucket === LEDGER.bucket && key === LEDGER.key;
      if (!isLedger && bucket !== MIGRATIONS && bucket !== VMIS) return undefined;
      const after = ledgerIn(isLedger ? object : state.get(LEDGER.bucket, LEDGER.key));
      const knownMs = atMs - (isCalm ? UNHEARD_CALM_MS : UNHEARD_MS);
      const wrong = isLedger && after ? passedOver(ledgerIn(previous), after, standings, knownMs) : undefined;
      standings = standingsIn(state, after, standings, atMs);
      return wrong;
    },
  };
}

function standingsIn(
  state: State,
  ledger: SlotLedger | undefined,
  before: ReadonlyMap<string, Standing>,
  atMs: number,
): Map<string, Standing> {
  const migrations = migrationsOf(state);
  const all = migrations.filter((each) => !isFinalMigration(each));
  const found = new Map<string, Standing>();
  for (const migration of all) {
    const { uid = '', name = '' } = migration.metadata;
    const isAlone = all.every((each) => each === migration || guestKeyOf(each) !== guestKeyOf(migration));
    const isInLine = isAlone && !ledger?.holders.has(uid) && !waitsLonger(migration, migrations);
    const sourceNode = isInLine ? sourceOf(migration, state) : undefined;
    const rank = rankOf(migration, state);
    const old = before.get(uid);
    const isRanked = old !== undefined && deepEqual(old.rank, rank);
    found.set(uid, {
      name,
      rank,
      rankedMs: isRanked ? old.rankedMs : atMs,
      past: old && !isRanked ? [...old.past, { rank: old.rank, untilMs: atMs }] : (old?.past ?? []),
      sourceNode,
      waitingMs: old !== undefined && old.sourceNode === sourceNode ? old.waitingMs : atMs,
    });
  }
  return found;
}

/** Whether it is one of the cluster's own tries, which stand aside for a while after one that failed. */
function waitsLonger(
  migration: VirtualMachineInstanceMigration,
  all: readonly VirtualMachineInstanceMigration[],
): boolean {
  const others = all.filter((each) => guestKeyOf(each) === guestKeyOf(migration));
  return backoffUntilMs(migration, others, undefined) !== undefined;
}

/** The node that its guest could leave now; undefined where it is not so far, or cannot leave. */
function sourceOf(migration: VirtualMachineInstanceMigration, state: State): string | undefined {
  const { metadata, status: { phase } = {} } = migration;
  const guest = state.get(VMIS, guestKeyOf(migration)) as VirtualMachineInstance | undefined;
  const { phase: guestPhase, nodeName, rightToRun } = guest?.status ?? {};
  const isWanted = phase === 'Pending' && metadata.deletionTimestamp === undefined;
  const canLeave =
    guestPhase === 'Running' &&
    guest?.metadata.deletionTimestamp === undefined &&
    rightToRun?.successor === undefined &&
    rightToRun?.holder?.node === nodeName;
  return isWanted && canLeave ? nodeName : undefined;
}

function passedOver(
  before: SlotLedger | undefined,
  after: SlotLedger,
  standings: ReadonlyMap<string, Standing>,
  knownMs: number,
): string | undefined {
  const leaving = (node: string): number =>
    [...after.holders.values()].filter(({ sourceNode }) => sourceNode === node).length;
  for (const { uid, sourceNode } of after.holders.values()) {
    const favoured = before?.holders.has(uid) ? undefined : standings.get(uid);
    if (!favoured) continue;
    const late = favoured.past.filter(({ untilMs }) => untilMs > knownMs).map(({ rank }) => rank);
    for (const [other, each] of standings) {
      if (each.sourceNode === undefined || after.holders.has(other)) continue;
      if (Math.max(each.waitingMs, each.rankedMs) > knownMs) continue;
      const hasRoom = each.sourceNode === sourceNode || leaving(each.sourceNode) < after.limits.outboundPerNode;
      if (hasRoom && [favoured.rank, ...late].every((rank) => comesBefore(each.rank, rank)))
        return `migration ${favoured.name} got a slot, though ${each.name} goes before it`;
    }
  }
  return undefined;
}

function rankOf(migration: VirtualMachineInstanceMigration, state: State): Rank {
  const { metadata, spec, status } = migration;
  const guest = state.get(VMIS, guestKeyOf(migration)) as VirtualMachineInstance | undefined;
  return {
    uid: metadata.uid ?? '',
    priority: effectivePriority(spec.priority, status?.causes),
    // By the guest itself: what its migration says of that was written by whoever gives slots.
    deadlineMs: guest && isMarked(guest) ? earliestDeadlineMs(causesOf(guest)) : undefined,
    createdMs: Date.parse(metadata.creationTimestamp ?? ''),
  };
}
