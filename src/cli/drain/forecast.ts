import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { EvictionStrategy } from '../../api/kubevirt/eviction-strategy.ts';
import { evictionStrategyOf } from '../../api/kubevirt/eviction-strategy.ts';
import { pods as allPods } from '../../cluster/resources.ts';
import { configurationOf } from '../../control/context.ts';
import { nodesOfGuest } from '../../control/evacuation/draining.ts';
import { TargetFitness } from '../../control/migration/target-fitness.ts';
import type { Env } from '../../env/ports.ts';
import type { Client } from '../../kube/client.ts';
import { virtualMachineInstances } from '../../kube/kubevirt-resources.ts';
import { keyOf } from '../../kube/resource.ts';
import type { Pod } from '../../migration/fit/objects.ts';
import { withInformers } from '../seen/with-informers.ts';
import { forecastOf } from './drained-machines.ts';
import { decidePod, launchedGuestUid, type PodRules } from './drained-pods.ts';

/** What a drain would do, looked at without changing anything. */

export interface Forecast {
  readonly machines: readonly {
    readonly machine: string;
    readonly strategy: EvictionStrategy;
    readonly verdict: 'moves' | 'stops' | 'blocks';
    readonly why: string;
  }[];
  readonly pods: readonly {
    readonly pod: string;
    readonly kind: 'evict' | 'leave' | 'refuse';
    readonly why: string;
  }[];
}

interface ForecastOptions extends PodRules {
  readonly client: Client;
  readonly env: Env;
  readonly node: string;
}

/** Looks at the cluster as it is. Rejects where it cannot. */
export async function forecast({ client, env, node, ...rules }: ForecastOptions): Promise<Forecast> {
  return withInformers({ client, env }, (informers) => {
    const [guests, pods] = [informers.of(virtualMachineInstances, { onNode: nodesOfGuest }), informers.of(allPods)];
    const configuration = configurationOf(informers);
    const fitness = new TargetFitness(informers);
    return () => {
      const here = [...pods.list()].filter((pod) => pod.spec?.nodeName === node);
      const roomFor = (guest: VirtualMachineInstance): string | undefined => {
        const pod = here.find((each) => launchedGuestUid(each) === guest.metadata.uid);
        return pod && fitness.unfitness(guest, anywhere(pod));
      };
      return {
        machines: guests
          .byIndex('onNode', node)
          .filter(
            ({ status, metadata }) =>
              !['Succeeded', 'Failed'].includes(status?.phase ?? '') && !metadata.deletionTimestamp,
          )
          .map((guest) => ({
            machine: keyOf(guest),
            strategy: evictionStrategyOf(guest, configuration()),
            ...forecastOf(guest, configuration(), roomFor(guest)),
          })),
        pods: here
          .filter((pod) => launchedGuestUid(pod) === undefined)
          .map((pod) => {
            const decision = decidePod(pod, rules);
            return { pod: keyOf(pod), kind: decision.kind, why: decision.kind === 'evict' ? '' : decision.why };
          }),
      };
    };
  });
}

/** The same pod, as one that could be placed on any node. */
function anywhere(pod: Pod): Pod {
  const { nodeName: _, ...spec } = pod.spec ?? {};
  return { ...pod, spec } as Pod;
}

const VERDICTS = { moves: 'would be moved', stops: 'would be shut down', blocks: 'would stay' } as const;
const PODS = { evict: 'would be evicted', leave: 'would stay', refuse: 'may not go' } as const;

/** What would keep a node from becoming empty, of those that a forecast speaks of. */
export function stayersOf({ machines, pods }: Forecast): readonly string[] {
  return [
    ...machines.filter(({ verdict }) => verdict === 'blocks').map(({ machine }) => machine),
    ...pods.filter(({ kind }) => kind === 'refuse').map(({ pod }) => `pod ${pod}`),
  ];
}

/** A forecast for people. */
export function forecastLines(node: string, { machines, pods }: Forecast): readonly string[] {
  const told = machines
    .toSorted((a, b) => (a.machine < b.machine ? -1 : 1))
    .map(({ machine, strategy, verdict, why }) => [machine, strategy, VERDICTS[verdict], why]);
  const others = pods.map(({ pod, kind, why }) => [`pod ${pod}`, '', PODS[kind], why]);
  const all = [...told, ...others];
  const widths = [0, 1, 2].map((column) => Math.max(0, ...all.map((row) => row[column]?.length ?? 0)));
  const lines = all.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
  const count = (verdict: string): number => machines.filter((each) => each.verdict === verdict).length;
  const sum = `${node}: ${count('moves')} virtual machines would be moved, ${count('stops')} shut down, ${count('blocks')} would stay (dry run)`;
  return [...lines, sum];
}
