import type { InvariantAcross } from '../invariant.ts';
import { placeOf } from '../places.ts';

/** No boot of a guest is ever executed by two machines at once, whichever objects they are of, in whichever clusters. */
export function bootsRunOnce(): InvariantAcross {
  return {
    name: 'boots-run-once',
    executedAcross(machines) {
      const places = new Map<string, string>();
      for (const { cluster, guest, node, podUID, bootId, isExecuting } of machines) {
        if (!isExecuting) continue;
        const where = `as ${guest} on ${placeOf(cluster, node)} for pod ${podUID}`;
        const other = places.get(bootId);
        if (other !== undefined) return `a guest is executed twice: ${other}, and ${where}`;
        places.set(bootId, where);
      }
      return undefined;
    },
  };
}
