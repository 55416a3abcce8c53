import type { Invariant } from '../invariant.ts';

/** No guest is ever executed by two machines at once, whatever dies, is cut off or comes back. */
export function runsOnce(): Invariant {
  return {
    name: 'runs-once',
    executed(machines) {
      const nodes = new Map<string, string>();
      for (const { guest, node, podUID, isExecuting } of machines) {
        if (!isExecuting) continue;
        const where = `${node} for pod ${podUID}`;
        const other = nodes.get(guest);
        if (other !== undefined) return `${guest} is executed twice: on ${other}, and on ${where}`;
        nodes.set(guest, where);
      }
      return undefined;
    },
  };
}
