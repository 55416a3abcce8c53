import { VMIS } from '../buckets.ts';
import type { Invariant, ObservedMachine } from '../invariant.ts';
import type { State } from '../observer.ts';
import { controllerOf } from '../../kube/owner.ts';

/** A guest whose object is gone is executed nowhere: its finalizer waits for the word of whoever executed it. */
export function goneGuestsEnd(): Invariant {
  /** UIDs of guests by those of their pods, also of pods that are gone. */
  const guests = new Map<string, string>();
  let machines: readonly ObservedMachine[] = [];
  const judge = (state: State): string | undefined => {
    const known = new Set([...state.list(VMIS)].map(({ metadata }) => metadata.uid));
    for (const { guest, node, podUID, isExecuting } of machines) {
      const uid = guests.get(podUID);
      if (isExecuting && uid !== undefined && !known.has(uid))
        return `${guest} (${uid}) is gone, and ${node} executes it for pod ${podUID}`;
    }
    return undefined;
  };
  return {
    name: 'gone-guests-end',
    executed(all, state) {
      machines = all.filter(({ isExecuting }) => isExecuting);
      return judge(state);
    },
    observe({ bucket, object }, state) {
      const owner = bucket === 'pods' && object ? controllerOf(object) : undefined;
      if (object && owner?.kind === 'VirtualMachineInstance') guests.set(object.metadata.uid ?? '', owner.uid);
      return bucket === VMIS && !object ? judge(state) : undefined;
    },
  };
}
