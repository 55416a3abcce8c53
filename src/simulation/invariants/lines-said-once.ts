import type { SaidLines } from '../../hypervisor/model/model-guest.ts';
import type { Invariant, ObservedMachine } from '../invariant.ts';

/** No line of any guest is said twice: boots have ids of their own, and what was executed is not executed again. */
export function linesSaidOnce(): Invariant {
  return {
    name: 'lines-said-once',
    executed: (machines) => saidTwice(machines),
    unsettled({ machines }) {
      const what = saidTwice(machines);
      return what === undefined ? [] : [{ key: '', what }];
    },
  };
}

function saidTwice(machines: readonly ObservedMachine[]): string | undefined {
  const said = new Map<string, { readonly lines: SaidLines; readonly node: string }[]>();
  for (const { guest, node, said: all } of machines) {
    for (const lines of all) {
      const others = said.get(lines.bootId) ?? [];
      const other = others.find((each) => overlap(each.lines, lines));
      if (other) return `${guest} says lines of boot ${lines.bootId} on ${node} that were said on ${other.node}`;
      said.set(lines.bootId, [...others, { lines, node }]);
    }
  }
  return undefined;
}

function overlap(one: SaidLines, other: SaidLines): boolean {
  return one.firstCount <= other.lastCount && other.firstCount <= one.lastCount;
}
