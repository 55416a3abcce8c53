import type { Pod } from '../../migration/fit/objects.ts';
import { controllerOf } from '../../kube/owner.ts';
import { VMIS } from '../buckets.ts';
import type { Invariant, InvariantAcross, ObservedMachine } from '../invariant.ts';
import type { Observation } from '../observer.ts';

/**
 * No guest is ended that nobody wanted ended: a machine that goes by an agent's will, with a guest in it that has run, has
 * its guest elsewhere, as far as it was executed; or somebody deleted the guest or its pod, or it ended by itself, or what
 * it was in was destroyed.
 */
export function noGuestLost(): Invariant & InvariantAcross {
  const seen = new Set<string>();
  /** Boots that something from outside has ended, or part of whose memory it took. */
  const destroyed = new Set<string>();
  /** Pods that somebody wants gone, also those that are. */
  const unwanted = new Set<string>();
  /** UIDs of guests by those of their pods. */
  const guests = new Map<string, string>();
  /** UIDs of guests that are there, and that nobody wants gone. */
  const wanted = new Set<string>();
  const judge = (machine: ObservedMachine, all: readonly ObservedMachine[]): string | undefined => {
    const { guest, node, podUID, bootId, executedMs, isStruck, hasGuestEnded } = machine;
    if (isStruck || hasGuestEnded) destroyed.add(bootId);
    if (destroyed.has(bootId) || executedMs === 0 || unwanted.has(podUID)) return undefined;
    if (!wanted.has(guests.get(podUID) ?? '')) return undefined;
    const isElsewhere = all.some((each) => each.isAlive && each.bootId === bootId && each.executedMs >= executedMs);
    return isElsewhere ? undefined : `${guest} was ended on ${node} for pod ${podUID}, and nobody wanted that`;
  };
  const observe = ({ bucket, object, previous }: Observation): undefined => {
    if (bucket !== 'pods' && bucket !== VMIS) return;
    const { uid = '' } = (object ?? previous)?.metadata ?? {};
    const isThere = object !== undefined && object.metadata.deletionTimestamp === undefined;
    if (bucket === VMIS) {
      if (isThere) wanted.add(uid);
      else wanted.delete(uid);
      return;
    }
    const owner = controllerOf((object ?? previous) as Pod);
    if (owner) guests.set(uid, owner.uid);
    if (!isThere) unwanted.add(uid);
  };
  const executed = (machines: readonly ObservedMachine[]): string | undefined => {
    for (const machine of machines) {
      const id = `${machine.podUID} ${machine.bootId}`;
      if (machine.isAlive || seen.has(id)) continue;
      seen.add(id);
      const wrong = judge(machine, machines);
      if (wrong !== undefined) return wrong;
    }
    return undefined;
  };
  return { name: 'no-guest-lost', observe, executed, observeAcross: observe, executedAcross: executed };
}
