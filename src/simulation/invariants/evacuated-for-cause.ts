import { causesOf } from '../../api/kubevirt/evacuation.ts';
import type { EvacuationCause } from '../../api/kubevirt/evacuation-cause.ts';
import { evictionStrategyOf } from '../../api/kubevirt/eviction-strategy.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { VirtualMachineInstanceMigration } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { unreachable } from '../../api/unreachable.ts';
import { EVACUATION_ANNOTATION } from '../../api/kubevirt/well-known.ts';
import { controllerOf } from '../../kube/owner.ts';
import { hasDrainTaint } from '../../migration/eviction/drain-taint.ts';
import type { Node, Pod } from '../../migration/fit/objects.ts';
import { MIGRATIONS, VMIS } from '../buckets.ts';
import type { Invariant } from '../invariant.ts';
import { guestKeyOf } from '../moves.ts';
import type { Observation, State } from '../observer.ts';
import { configurationIn, disruptionReason } from '../protection.ts';

/**
 * Nothing is evacuated that nobody asked to: a guest is marked because its pod was to be evicted, or was driven away, or
 * because its node has the taint; and a migration to empty a node is made for guests alone that were marked for that
 * node, and that we are to move.
 */

/** A controller may hear late that a taint is gone. */
const LATELY_MS = 10 * 60_000;

export function evacuatedForCause(): Invariant {
  /** Names of the pods of each guest, by the guest's UID. */
  const pods = new Map<string, Set<string>>();
  /** UIDs of pods that were driven away. */
  const disrupted = new Set<string>();
  /** Until when nodes had the drain taint. */
  const tainted = new Map<string, number>();
  /** Nodes that guests were marked for, by key. */
  const marks = new Map<string, Set<string>>();

  const hasReason = ({ cause, podUID }: EvacuationCause, guest: VirtualMachineInstance, seen: Observation): boolean => {
    switch (cause) {
      case 'APIEviction':
      case 'Descheduler':
        return [...(pods.get(guest.metadata.uid ?? '') ?? [])].some((pod) => seen.askedToGo(pod));
      case 'DrainTaint':
        return (tainted.get(guest.status?.nodeName ?? '') ?? Number.NEGATIVE_INFINITY) > seen.atMs - LATELY_MS;
      case 'Preemption':
      case 'NoExecuteTaint':
        return podUID !== undefined && disrupted.has(podUID);
      case 'User':
      case 'WorkloadUpdate':
      case 'CrossCluster':
        // Nobody has to leave a node for these.
        return false;
      default:
        return unreachable(cause);
    }
  };

  const aboutGuest = (seen: Observation, state: State): string | undefined => {
    const guest = seen.object as VirtualMachineInstance;
    const before = (seen.previous as VirtualMachineInstance | undefined)?.status?.evacuationNodeName;
    const { evacuationNodeName: node } = guest.status ?? {};
    if (!node) return undefined;
    const known = marks.get(seen.key) ?? new Set();
    marks.set(seen.key, known.add(node));
    const causes = causesOf(guest);
    if (before !== node && causes.length === 0) return `${seen.key} has to leave ${node}, and nobody says why`;
    if (before !== node && evictionStrategyOf(guest, configurationIn(state)) === 'None')
      return `${seen.key} has to leave ${node}, and wants to be evicted`;
    const told = seen.previous ? causesOf(seen.previous as VirtualMachineInstance) : [];
    const unasked = causes.find(
      (each) => !told.some(({ cause }) => cause === each.cause) && !hasReason(each, guest, seen),
    );
    return unasked && `${seen.key} has to leave ${node} for ${unasked.cause}, and nobody asked for that`;
  };

  const aboutMigration = (migration: VirtualMachineInstanceMigration, state: State): string | undefined => {
    const node = migration.metadata.annotations?.[EVACUATION_ANNOTATION];
    if (node === undefined) return undefined;
    const key = guestKeyOf(migration);
    if (!marks.get(key)?.has(node)) return `${key} is moved off ${node}, and nobody asked for that`;
    const guest = state.get(VMIS, key) as VirtualMachineInstance | undefined;
    const isOthers = guest && evictionStrategyOf(guest, configurationIn(state)) === 'External';
    return isOthers ? `${key} is moved off ${node}, and is not ours to move` : undefined;
  };

  return {
    name: 'evacuated-for-cause',
    observe(seen, state) {
      const { bucket, object, previous, key, atMs } = seen;
      if (!object) return undefined;
      if (bucket === 'pods') notePod(object, key, pods, disrupted);
      if (bucket === 'nodes' && hasDrainTaint(object as Node, configurationIn(state)))
        tainted.set(key, Number.POSITIVE_INFINITY);
      else if (bucket === 'nodes' && tainted.get(key) === Number.POSITIVE_INFINITY) tainted.set(key, atMs);
      if (bucket === VMIS) return aboutGuest(seen, state);
      if (bucket === MIGRATIONS && !previous) return aboutMigration(object as VirtualMachineInstanceMigration, state);
      return undefined;
    },
  };
}

function notePod(pod: Pod, key: string, pods: Map<string, Set<string>>, disrupted: Set<string>): void {
  const owner = controllerOf(pod);
  if (owner?.kind !== 'VirtualMachineInstance') return;
  pods.set(owner.uid, (pods.get(owner.uid) ?? new Set()).add(key));
  if (pod.metadata.deletionTimestamp !== undefined && disruptionReason(pod) !== undefined)
    disrupted.add(pod.metadata.uid ?? '');
}
