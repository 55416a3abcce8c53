import type { Invariant } from '../invariant.ts';

/** No boot of a guest is ever executed by two machines at once, whichever objects they are of. */
export function bootsRunOnce(): Invariant {
  return {
    name: 'boots-run-once',
    executed(machines) {
      const places = new Map<string, string>();
      for (const { guest, node, podUID, bootId, isExecuting } of machines) {
        if (!isExecuting) continue;
        const where = `as ${guest} on ${node} for pod ${podUID}`;
        const other = places.get(bootId);
        if (other !== undefined) return `a guest is executed twice: ${other}, and ${where}`;
        places.set(bootId, where);
      }
      return undefined;
    },
  };
}
