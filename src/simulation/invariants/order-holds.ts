import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import {
  isFinalMigration,
  type VirtualMachineInstanceMigration,
} from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import type { SlotLedger } from '../../migration/slots/ledger.ts';
import { comesBefore, effectivePriority, type Rank } from '../../migration/slots/order.ts';
import { MIGRATIONS, VMIS } from '../buckets.ts';
import type { Invariant } from '../invariant.ts';
import { guestKeyOf, LEDGER, ledgerIn, migrationsOf } from '../moves.ts';
import type { State } from '../observer.ts';

/** One that could have a slot, and has none. */
interface Waiting {
  readonly migration: VirtualMachineInstanceMigration;
  readonly sourceNode: string;
  readonly sinceMs: number;
}

/** Who gives slots may not know yet of one that waits for less than this: longer than anybody is cut off, or behind. */
const UNHEARD_MS = 300_000;
/** The same where nothing fails. */
const UNHEARD_CALM_MS = 15_000;

/** Nobody gets a slot while another one could have it that goes before it: by class, then by age. */
export function orderHolds(): Invariant {
  let waiting = new Map<string, Waiting>();
  return {
    name: 'order-holds',
    observe({ bucket, key, object, previous, atMs, isCalm }, state) {
      const isLedger = bucket === LEDGER.bucket && key === LEDGER.key;
      if (!isLedger && bucket !== MIGRATIONS && bucket !== VMIS) return undefined;
      const after = ledgerIn(isLedger ? object : state.get(LEDGER.bucket, LEDGER.key));
      const knownMs = atMs - (isCalm ? UNHEARD_CALM_MS : UNHEARD_MS);
      const wrong = isLedger && after ? passedOver(ledgerIn(previous), after, waiting, knownMs, state) : undefined;
      waiting = waitingIn(state, after, waiting, atMs);
      return wrong;
    },
  };
}

function waitingIn(
  state: State,
  ledger: SlotLedger | undefined,
  before: ReadonlyMap<string, Waiting>,
  atMs: number,
): Map<string, Waiting> {
  const all = migrationsOf(state).filter((each) => !isFinalMigration(each));
  const found = new Map<string, Waiting>();
  for (const migration of all) {
    const { uid = '' } = migration.metadata;
    const isAlone = all.every((each) => each === migration || guestKeyOf(each) !== guestKeyOf(migration));
    const sourceNode = isAlone && !ledger?.holders.has(uid) ? sourceOf(migration, state) : undefined;
    const old = before.get(uid);
    if (sourceNode !== undefined)
      found.set(uid, { migration, sourceNode, sinceMs: old?.sourceNode === sourceNode ? old.sinceMs : atMs });
  }
  return found;
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
  waiting: ReadonlyMap<string, Waiting>,
  knownMs: number,
  state: State,
): string | undefined {
  const migrations = new Map(migrationsOf(state).map((each) => [each.metadata.uid ?? '', each]));
  const leaving = (node: string): number =>
    [...after.holders.values()].filter(({ sourceNode }) => sourceNode === node).length;
  for (const { uid, sourceNode } of after.holders.values()) {
    const favoured = before?.holders.has(uid) ? undefined : migrations.get(uid);
    if (!favoured) continue;
    for (const [other, each] of waiting) {
      if (after.holders.has(other) || each.sinceMs > knownMs) continue;
      const hasRoom = each.sourceNode === sourceNode || leaving(each.sourceNode) < after.limits.outboundPerNode;
      if (hasRoom && comesBefore(rankOf(each.migration), rankOf(favoured)))
        return `migration ${favoured.metadata.name} got a slot, though ${each.migration.metadata.name} goes before it`;
    }
  }
  return undefined;
}

function rankOf({ metadata, spec, status }: VirtualMachineInstanceMigration): Rank {
  return {
    uid: metadata.uid ?? '',
    priority: effectivePriority(spec.priority, status?.causes),
    deadlineMs: undefined,
    createdMs: Date.parse(metadata.creationTimestamp ?? ''),
  };
}
