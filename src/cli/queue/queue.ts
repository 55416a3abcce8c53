import { migrationRole, pairKeyOf } from '../../api/kubevirt/validate-migration.ts';
import {
  isFinalMigration,
  type VirtualMachineInstanceMigration,
} from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { type HeldUp, heldUp } from '../../control/migration/held-up.ts';
import { guestKeyOf } from '../../control/migration/keys.ts';
import { newestRules, slotRules } from '../../control/migration/ledger-rules.ts';
import { type Halves, type LocalPair, localPair } from '../../control/migration/local-pair.ts';
import { requestOfHalf, requestWithin } from '../../control/migration/slot-requests.ts';
import { isConditionTrue } from '../../kube/conditions.ts';
import { type SlotLedger, usageOf } from '../../migration/slots/ledger.ts';
import { agedPriority, comesBefore, isOlder, type Rank } from '../../migration/slots/order.ts';
import { isCommittable, isEligible, poolOf, type SlotHolder, type SlotRequest } from '../../migration/slots/request.ts';
import type { SlotRules } from '../../migration/slots/slot-book.ts';
import { indexOf, type SeenIndex } from '../seen/index-of.ts';
import type { SeenCluster } from '../seen/seen-cluster.ts';

/**
 * Who moves, who waits, and for what. Pure. It is the controller's own reckoning of the same objects: what a migration
 * needs, what holds it up, what is taken and who comes first are the functions that give slots.
 */

/** Slots of which none is free. */
export type FullSlots =
  | { readonly of: 'cluster'; readonly limit: number; readonly takenBy: readonly string[] }
  | {
      readonly of: 'leaving' | 'arriving';
      readonly node: string;
      readonly limit: number;
      readonly takenBy: readonly string[];
    };

export interface Waiting {
  readonly migration: VirtualMachineInstanceMigration;
  /** The guest, by namespace and name. */
  readonly machine: string;
  /** In line, from 1; undefined for whoever stands in none. */
  readonly place: number | undefined;
  /** What it is ordered by, with what waiting has added. */
  readonly priority: number;
  /** Slots that it needs, and that others have. */
  readonly full: readonly FullSlots[];
  /** Whoever goes before it and needs some of the same slots, by their machines; the first first. */
  readonly behind: readonly string[];
  /** Why it could not use a slot; it stands in no line meanwhile. */
  readonly heldUp: HeldUp | { readonly kind: 'OtherHalf' } | undefined;
}

export interface Moving {
  readonly migration: VirtualMachineInstanceMigration;
  readonly machine: string;
  readonly sourceNode: string | undefined;
  readonly targetNode: string | undefined;
}

export interface Queue {
  readonly rules: SlotRules;
  readonly moving: readonly Moving[];
  /** Those in line first, in their order. */
  readonly waiting: readonly Waiting[];
}

interface Wish {
  readonly migration: VirtualMachineInstanceMigration;
  readonly request: SlotRequest | undefined;
  readonly held: Waiting['heldUp'];
  readonly holder: SlotHolder | undefined;
}

/** Reckons who waits for what. */
export function queueOf(seen: SeenCluster): Queue {
  const active = seen.migrations.filter((each) => !isFinalMigration(each));
  const own = slotRules(seen.kubeVirt);
  const index = indexOf(seen);
  const bare = active.map((migration) => wishOf(migration, index, seen.nowMs));
  const ledger = seen.ledger ?? ledgerFrom(bare, own);
  const rules = newestRules(own, ledger);
  const holders = holdersByMember(ledger);
  const wishes = bare.map((wish) => ({ ...wish, holder: holders.get(wish.migration.metadata.uid ?? '') }));
  const moving = wishes.filter((wish) => isMoving(wish));
  const line = wishes
    .filter((wish) => !isMoving(wish) && wish.held === undefined && wish.request !== undefined)
    .map((wish) => ({ wish, rank: rankOf(wish.request, rules, seen.nowMs) }))
    .toSorted((a, b) => ((rules.isByPriority ? comesBefore : isOlder)(a.rank, b.rank) ? -1 : 1));
  const waiting = line.map(({ wish, rank }, index): Waiting => {
    const full = fullFor(wish.request, { ...ledger, limits: rules.limits }, moving);
    const before = line.slice(0, index).filter((other) => needsAny(other.wish.request, full));
    return {
      ...common(wish),
      place: index + 1,
      priority: rank.priority,
      full,
      behind: before.map((other) => guestKeyOf(other.wish.migration)),
      heldUp: undefined,
    };
  });
  const aside = wishes.filter((wish) => !isMoving(wish) && (wish.held !== undefined || wish.request === undefined));
  return {
    rules,
    moving: moving.map(movingOf),
    waiting: [...waiting, ...aside.map((wish) => asideOf(wish, rules, seen.nowMs))],
  };
}

function common({ migration }: Wish) {
  return { migration, machine: guestKeyOf(migration) };
}

function asideOf(wish: Wish, rules: SlotRules, nowMs: number): Waiting {
  const heldUpBy = wish.held ?? { kind: migrationRole(wish.migration.spec) === 'local' ? 'NotMovable' : 'OtherHalf' };
  const { priority } = rankOf(wish.request, rules, nowMs);
  return { ...common(wish), place: undefined, priority, full: [], behind: [], heldUp: heldUpBy };
}

function movingOf(wish: Wish): Moving {
  const { sourceNode, targetNode } = wish.migration.status?.migrationState ?? {};
  return {
    ...common(wish),
    sourceNode: sourceNode ?? wish.holder?.sourceNode ?? wish.request?.sourceNode,
    targetNode: targetNode ?? wish.holder?.targetNode ?? wish.request?.targetNode,
  };
}

/** Whether it has its place: one that holds slots, and could use them. */
function isMoving({ holder, held, request }: Wish): boolean {
  if (!holder) return false;
  if (holder.state === 'committed') return true;
  return held === undefined && request !== undefined && (request.kind !== 'receive' || request.peer !== undefined);
}

/** Phases of those that have slots. */
const UNDER_WAY: ReadonlySet<string> = new Set(['Scheduling', 'PreparingTarget', 'TargetReady', 'Running']);

/** Where nobody may read the ledger, or nobody writes one, whoever has begun is taken to have slots. */
function ledgerFrom(wishes: readonly Wish[], { limits, limitsVersion }: SlotRules): SlotLedger {
  const holders = wishes
    .filter(({ migration, held }) => held === undefined && UNDER_WAY.has(migration.status?.phase ?? ''))
    .flatMap(({ request }): [string, SlotHolder][] => {
      if (!request) return [];
      const { uid, kind, members, sourceNode, targetNode } = request;
      const state = isCommittable(request) ? 'committed' : 'reserved';
      return [[uid, { uid, kind, members, sourceNode, targetNode, state, sinceMs: request.createdMs }]];
    });
  return { limits, limitsVersion, holders: new Map(holders) };
}

function holdersByMember({ holders }: SlotLedger): Map<string, SlotHolder> {
  return new Map([...holders.values()].flatMap((holder) => holder.members.map(({ uid }) => [uid, holder] as const)));
}

function wishOf(migration: VirtualMachineInstanceMigration, index: SeenIndex, nowMs: number): Wish {
  const key = guestKeyOf(migration);
  const guest = index.guests.get(key);
  const pair = localPair(migration, guest, halvesIn(index));
  const pod = index.targetPods.get((pair?.target ?? migration).metadata.uid ?? '');
  const request = pair ? requestOfHalf({ migration, guest, pod }, pair) : requestWithin({ migration, guest, pod });
  const held = heldUp({
    migration,
    guest,
    pod,
    isHalf: pair !== undefined,
    others: index.migrationsOf.get(key) ?? [],
    isOverQuota: isOverQuota(pair?.target ?? migration),
    deadlineMs: request?.deadlineMs,
    nowMs,
  });
  return { migration, request, held: held ?? otherHalf(request, pair), holder: undefined };
}

function halvesIn({ migrationsWithKey, migrationsByUid }: SeenIndex): Halves {
  return {
    withKeyOf: ({ spec }) => {
      const key = pairKeyOf(spec);
      return key === undefined ? [] : (migrationsWithKey.get(key) ?? []);
    },
    byUid: (uid) => migrationsByUid.get(uid),
  };
}

/** Of two halves one asks for both, and none before it knows its other one. */
function otherHalf(request: SlotRequest | undefined, pair: LocalPair | undefined): Waiting['heldUp'] {
  const isUnknown = pair !== undefined && (!request || !isEligible(request));
  return isUnknown ? { kind: 'OtherHalf' } : undefined;
}

function isOverQuota({ status }: VirtualMachineInstanceMigration): boolean {
  return isConditionTrue(status?.conditions, 'migrationRejectedByResourceQuota');
}

function rankOf(request: SlotRequest | undefined, rules: SlotRules, nowMs: number): Rank {
  if (!request) return { uid: '', priority: 0, deadlineMs: undefined, createdMs: nowMs };
  const priority = agedPriority(request.priority, nowMs - request.createdMs, rules.ageingMs);
  return { ...request, priority: rules.isByPriority ? priority : request.priority };
}

/** The slots that a migration needs of which none is free. */
function fullFor(request: SlotRequest | undefined, ledger: SlotLedger, moving: readonly Wish[]): FullSlots[] {
  if (!request) return [];
  const usage = usageOf(ledger);
  const { limits } = ledger;
  const { kind, sourceNode, targetNode } = request;
  const takers = (isTaker: (holder: SlotHolder) => boolean): string[] =>
    moving.filter(({ holder }) => holder && isTaker(holder)).map(({ migration }) => guestKeyOf(migration));
  const full: FullSlots[] = [];
  if (!usage.hasRoomInPool(poolOf(kind)))
    full.push({
      of: 'cluster',
      limit: limits.perCluster,
      takenBy: takers((holder) => poolOf(holder.kind) === poolOf(kind)),
    });
  if (sourceNode !== undefined && !usage.hasRoomToLeave(sourceNode))
    full.push({
      of: 'leaving',
      node: sourceNode,
      limit: limits.outboundPerNode,
      takenBy: takers((holder) => holder.sourceNode === sourceNode),
    });
  if (kind !== 'send' && targetNode !== undefined && !usage.hasRoomToArrive(targetNode))
    full.push({
      of: 'arriving',
      node: targetNode,
      limit: limits.inboundPerNode,
      takenBy: takers((holder) => holder.targetNode === targetNode),
    });
  return full;
}

/** Whether a migration wants some of these slots, too. */
function needsAny(request: SlotRequest | undefined, full: readonly FullSlots[]): boolean {
  return full.some((slots) => {
    if (slots.of === 'cluster') return true;
    return slots.node === (slots.of === 'leaving' ? request?.sourceNode : request?.targetNode);
  });
}
