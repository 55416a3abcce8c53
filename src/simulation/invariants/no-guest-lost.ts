import type { Pod } from '../../migration/fit/objects.ts';
import { controllerOf } from '../../kube/owner.ts';
import type { Invariant, ObservedMachine } from '../invariant.ts';
import { guestsOf } from '../moves.ts';
import type { State } from '../observer.ts';

/**
 * No guest is ended that nobody wanted ended: a machine that goes by an agent's will, with a guest in it that has run, has
 * its guest elsewhere, as far as it was executed; or somebody deleted the guest or its pod, or it ended by itself, or what
 * it was in was destroyed.
 */
export function noGuestLost(): Invariant {
  const seen = new Set<string>();
  /** Boots that something from outside has ended, or part of whose memory it took. */
  const destroyed = new Set<string>();
  /** Pods that somebody wants gone, also those that are. */
  const unwanted = new Set<string>();
  /** UIDs of guests by those of their pods. */
  const guests = new Map<string, string>();
  const judge = (machine: ObservedMachine, all: readonly ObservedMachine[], state: State): string | undefined => {
    const { guest, node, podUID, bootId, executedMs, isStruck, hasGuestEnded } = machine;
    if (isStruck || hasGuestEnded) destroyed.add(bootId);
    if (destroyed.has(bootId) || executedMs === 0 || unwanted.has(podUID)) return undefined;
    const found = guestsOf(state).find(({ metadata }) => metadata.uid === guests.get(podUID));
    if (!found || found.metadata.deletionTimestamp !== undefined) return undefined;
    const isElsewhere = all.some((each) => each.isAlive && each.bootId === bootId && each.executedMs >= executedMs);
    return isElsewhere ? undefined : `${guest} was ended on ${node} for pod ${podUID}, and nobody wanted that`;
  };
  return {
    name: 'no-guest-lost',
    observe({ bucket, object, previous }) {
      if (bucket !== 'pods') return undefined;
      const pod = (object ?? previous) as Pod | undefined;
      const { uid = '', deletionTimestamp } = pod?.metadata ?? {};
      const owner = pod && controllerOf(pod);
      if (owner) guests.set(uid, owner.uid);
      if (!object || deletionTimestamp !== undefined) unwanted.add(uid);
      return undefined;
    },
    executed(machines, state) {
      for (const machine of machines) {
        const id = `${machine.podUID} ${machine.bootId}`;
        if (machine.isAlive || seen.has(id)) continue;
        seen.add(id);
        const wrong = judge(machine, machines, state);
        if (wrong !== undefined) return wrong;
      }
      return undefined;
    },
  };
}
