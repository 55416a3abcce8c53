import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { VirtualMachineInstanceMigration } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { keyOf } from '../../kube/resource.ts';
import type { Node, Pod } from '../../migration/fit/objects.ts';
import { MIGRATIONS, VMIS } from '../buckets.ts';
import type { Invariant, ObservedMachine } from '../invariant.ts';
import { guestKeyOf, guestsOf } from '../moves.ts';
import type { Observation, State } from '../observer.ts';
import { configurationIn, disruptionReason, guestOfPod, isLeaving, outcomeIn } from '../protection.ts';

/**
 * A guest that is to be moved, and whose pod is preempted or tainted away, is not ended for as long as it may be held: it
 * has moved by then, or there was nothing that could have saved it. Where nothing fails, somebody has tried at least.
 *
 * What is not judged: guests of nodes that are not well, since nobody can move from there; and whoever somebody deletes.
 */

/** Clocks may be wrong, and steps of theirs come on top. */
const CLOCKS_MS_MAX = 60_000;
/** A reason that was given so long before is not that of the deletion; who knows in between. */
const FRESH_MS = 60_000;
const CLEANUP_MS = 15_000;
const HOLD_SECONDS = 300;
const OF_BROKEN_NODES = /^node\.kubernetes\.io\/(?:not-ready|unreachable|out-of-service)$/;

interface Disrupted {
  readonly pod: string;
  readonly guest: string;
  readonly guestUid: string;
  readonly atMs: number;
  readonly holdMs: number;
  readonly isCalm: boolean;
}

export function protectedGuestsGoOn(): Invariant {
  /** When a reason was first seen on a pod, by its UID. */
  const reasons = new Map<string, { readonly reason: string; readonly atMs: number }>();
  const disrupted = new Map<string, Disrupted>();
  /** Guests that a migration was asked for, and when last, by key. */
  const tried = new Map<string, number>();
  const seen = new Set<string>();

  const aboutPod = ({ object, previous, atMs, isCalm, isEviction }: Observation, state: State): void => {
    const pod = (object ?? previous) as Pod;
    const { uid = '' } = pod.metadata;
    const reason = disruptionReason(pod);
    if (reason === undefined) reasons.delete(uid);
    else if (reasons.get(uid)?.reason !== reason) reasons.set(uid, { reason, atMs });
    // Whoever deletes it once more, in less time, means that.
    if (!object || isHurried(object)) return void disrupted.delete(uid);
    if (isEviction || !isLeaving(object, previous)) return;
    const guest = guestOfPod(pod, state);
    const since = reasons.get(uid);
    if (!guest || !since || atMs - since.atMs > FRESH_MS || !isProtected(pod, guest, state)) return;
    const holdMs = holdMsOf(pod, guest, state);
    const key = keyOf(guest);
    disrupted.set(uid, { pod: keyOf(pod), guest: key, guestUid: guest.metadata.uid ?? '', atMs, holdMs, isCalm });
  };

  const judge = (machine: ObservedMachine, all: readonly ObservedMachine[], state: State, atMs: number) => {
    const { podUID, bootId, executedMs, isStruck, hasGuestEnded, node } = machine;
    const record = disrupted.get(podUID);
    if (!record || isStruck || hasGuestEnded || executedMs === 0) return undefined;
    const guest = guestsOf(state).find(({ metadata }) => metadata.uid === record.guestUid);
    if (!guest || guest.metadata.deletionTimestamp !== undefined) return undefined;
    if (all.some((each) => each.isAlive && each.bootId === bootId && each.executedMs >= executedMs)) return undefined;
    const heldMs = atMs - record.atMs;
    if (heldMs < record.holdMs - CLOCKS_MS_MAX)
      return `${record.guest} was ended on ${node} ${Math.round(heldMs / 1000)} s after its pod ${record.pod} was driven away, and could have been held for ${Math.round(record.holdMs / 1000)} s`;
    const isTried = (tried.get(record.guest) ?? Number.NEGATIVE_INFINITY) > record.atMs - CLOCKS_MS_MAX;
    return record.isCalm && !isTried ? `${record.guest} was ended on ${node}, and nobody tried to move it` : undefined;
  };

  return {
    name: 'protected-guests-go-on',
    observe(observation, state) {
      const { bucket, object, atMs } = observation;
      if (bucket === 'pods') aboutPod(observation, state);
      if (bucket === MIGRATIONS && object) tried.set(guestKeyOf(object as VirtualMachineInstanceMigration), atMs);
      if (bucket === VMIS && object && outcomeIn(state, object as VirtualMachineInstance) !== 'Migrate')
        forget(disrupted, ({ guestUid }) => guestUid === object.metadata.uid);
      if (bucket === 'nodes' && !isWell(object as Node | undefined))
        forget(disrupted, ({ pod }) => isOn(state.get('pods', pod), observation.key));
      return undefined;
    },
    executed(machines, state, atMs) {
      for (const machine of machines) {
        const id = `${machine.podUID} ${machine.bootId}`;
        if (machine.isAlive || seen.has(id)) continue;
        seen.add(id);
        const wrong = judge(machine, machines, state, atMs);
        if (wrong !== undefined) return wrong;
      }
      return undefined;
    },
  };
}

function forget(records: Map<string, Disrupted>, isOver: (record: Disrupted) => boolean): void {
  for (const [uid, record] of records) if (isOver(record)) records.delete(uid);
}

function isOn(pod: Pod | undefined, node: string): boolean {
  return pod?.spec?.nodeName === node;
}

function isHurried({ metadata, spec }: Pod): boolean {
  if (metadata.deletionTimestamp === undefined) return false;
  return metadata.deletionGracePeriodSeconds !== spec?.terminationGracePeriodSeconds;
}

/** Whether the guest runs in this pod, on a node that is well, and is to be moved. */
function isProtected(pod: Pod, guest: VirtualMachineInstance, state: State): boolean {
  const { rightToRun, phase } = guest.status ?? {};
  const node = state.get('nodes', pod.spec?.nodeName ?? '') as Node | undefined;
  return (
    phase === 'Running' &&
    guest.metadata.deletionTimestamp === undefined &&
    rightToRun?.holder?.podUID === pod.metadata.uid &&
    outcomeIn(state, guest) === 'Migrate' &&
    isWell(node)
  );
}

function isWell(node: Node | undefined): boolean {
  if (!node || (node.spec?.taints ?? []).some(({ key }) => OF_BROKEN_NODES.test(key))) return false;
  return node.status?.conditions?.find(({ type }) => type === 'Ready')?.status === 'True';
}

function holdMsOf(pod: Pod, guest: VirtualMachineInstance, state: State): number {
  const totalMs = (pod.metadata.deletionGracePeriodSeconds ?? 0) * 1000;
  const graceMs = (guest.spec.terminationGracePeriodSeconds ?? 30) * 1000;
  const holdMs = (configurationIn(state).migrations?.disruptionHoldSeconds ?? HOLD_SECONDS) * 1000;
  return Math.min(holdMs, totalMs - graceMs - CLEANUP_MS);
}
