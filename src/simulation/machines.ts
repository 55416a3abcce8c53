import type { Machine } from './kubelet.ts';
import type { Scenario } from './scenario.ts';
import { oneOf, Streams } from './streams.ts';

const CPUS = ['2', '4', '8'];
const ZONES = ['a', 'b'];

/** The machines of a scenario: of several sizes and zones, the same ones in every run. */
export function machinesOf(scenario: Scenario): Machine[] {
  const random = new Streams(0).of(scenario.name);
  return Array.from({ length: scenario.nodes }, (_, index) => ({
    name: `node-${index}`,
    cpu: oneOf(random, CPUS) ?? '',
    memory: '16Gi',
    podsMax: 10,
    labels: { zone: oneOf(random, ZONES) ?? '' },
    startsMs: new Map(),
    endsMs: new Map(),
  }));
}
