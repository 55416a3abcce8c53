import { keyOf } from '../../kube/resource.ts';
import type { Pod } from '../../migration/fit/objects.ts';
import type { Invariant } from '../invariant.ts';
import type { Observation } from '../observer.ts';

/**
 * Whoever the scheduler pushes out makes way for a pod of higher priority that its node was nominated for, and is
 * deleted with all the grace that it asks for. That pod may be gone, or wait for another node, when the victim is told:
 * what counts is that it once waited for this one.
 */

const SCHEDULER = 'system:kube-scheduler';

export function preemptionIsFair(): Invariant {
  /** The highest priority of all pods that each node was ever nominated for. */
  const nominated = new Map<string, number>();
  return {
    name: 'preemption-is-fair',
    observe(observation) {
      if (observation.bucket !== 'pods') return undefined;
      const pod: Pod | undefined = observation.object;
      const node = pod?.status?.nominatedNodeName ?? '';
      if (pod && node !== '')
        nominated.set(node, Math.max(nominated.get(node) ?? Number.NEGATIVE_INFINITY, priorityOf(pod)));
      return unfairChoice(observation, nominated) ?? hurriedEnd(observation);
    },
  };
}

/** What is wrong with pushing out this pod rather than another. */
function unfairChoice({ object, previous }: Observation, nominated: ReadonlyMap<string, number>): string | undefined {
  if (!object || !isPushedOut(object) || (previous && isPushedOut(previous))) return undefined;
  const pod: Pod = object;
  const node = pod.spec?.nodeName ?? '';
  // A pod whose binding is still on its way is pushed out of a node that nobody but the scheduler knows of yet.
  const waited = node === '' ? [...nominated.values()] : [nominated.get(node) ?? Number.NEGATIVE_INFINITY];
  const highest = Math.max(...waited);
  if (highest > priorityOf(pod)) return undefined;
  return `pod ${keyOf(pod)} of priority ${priorityOf(pod)} is pushed out of ${node || 'its node'}, for which nobody more important waits`;
}

/** What is wrong with how the scheduler deletes a pod; what others do at the same time is their affair. */
function hurriedEnd({ object, previous, deleters }: Observation): string | undefined {
  if (!previous || !isPushedOut(previous) || previous.metadata.deletionTimestamp !== undefined) return undefined;
  if (object && object.metadata.deletionTimestamp === undefined) return undefined;
  if (deleters.length === 0 || deleters.some((user) => user !== SCHEDULER)) return undefined;
  const pod: Pod = previous;
  const hasEnded = pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed';
  // What runs nowhere has nothing to end.
  const wantedSeconds =
    hasEnded || (pod.spec?.nodeName ?? '') === '' ? 0 : (pod.spec?.terminationGracePeriodSeconds ?? 0);
  const givenSeconds = object?.metadata.deletionGracePeriodSeconds ?? 0;
  if (givenSeconds >= wantedSeconds) return undefined;
  return `pod ${keyOf(pod)} is pushed out within ${givenSeconds} s, though it may take ${wantedSeconds} s to end`;
}

function isPushedOut(pod: Pod): boolean {
  return (
    pod.status?.conditions?.some(
      ({ type, status, reason }) =>
        type === 'DisruptionTarget' && status === 'True' && reason === 'PreemptionByScheduler',
    ) ?? false
  );
}

function priorityOf(pod: Pod): number {
  return pod.spec?.priority ?? 0;
}
