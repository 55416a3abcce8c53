import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { makeNode, makePod } from './cluster.fixture.ts';
import { ClusterState } from './cluster-state.ts';
import { Demand } from './fit.ts';
import { nodeInfoOf, type NodeState } from './node-state.ts';
import type { Pod, PodAffinityTerm, PodSpec } from './objects.ts';
import { type PodInfo, podInfoOf } from './pod-info.ts';

/** The counts that are kept must say what looking at every pod would. */

const NAMESPACES: Record<string, Record<string, string>> = { x: { team: 'red' }, y: { team: 'blue' }, z: {} };
const NODES = ['n0', 'n1', 'n2', 'n3'];
const nodeObjects = NODES.map((name, index) =>
  makeNode(name, { labels: index === 3 ? {} : { zone: `z${index % 2}` } }),
);

const label = fc.constantFrom('a', 'b', 'c');
const labels = fc.dictionary(fc.constantFrom('app', 'tier', 'constructor'), label, { maxKeys: 3 });
const expression = fc.oneof(
  fc.record({
    key: fc.constantFrom('app', 'tier', 'constructor'),
    operator: fc.constantFrom('In', 'NotIn'),
    values: fc.uniqueArray(label, { minLength: 1, maxLength: 2 }),
  }),
  fc.record({
    key: fc.constantFrom('app', 'tier', 'constructor'),
    operator: fc.constantFrom('Exists', 'DoesNotExist'),
  }),
);
const selector = fc.option(
  fc.record({ matchLabels: labels, matchExpressions: fc.array(expression, { maxLength: 2 }) }, { requiredKeys: [] }),
  { nil: undefined, freq: 8 },
);
const topologyKey = fc.constantFrom('zone', 'kubernetes.io/hostname');
const term: fc.Arbitrary<PodAffinityTerm> = fc.record(
  {
    topologyKey,
    labelSelector: selector,
    namespaces: fc.uniqueArray(fc.constantFrom(...Object.keys(NAMESPACES)), { maxLength: 2 }),
    namespaceSelector: fc.constantFrom({}, { matchLabels: { team: 'red' } }),
  },
  { requiredKeys: ['topologyKey', 'labelSelector'] },
);
const affinity = fc.record({
  requiredDuringSchedulingIgnoredDuringExecution: fc.array(term, { maxLength: 2 }),
});
const spec: fc.Arbitrary<PodSpec> = fc.record(
  {
    affinity: fc.record({ podAffinity: affinity, podAntiAffinity: affinity }, { requiredKeys: [] }),
    topologySpreadConstraints: fc.array(
      fc.record({
        topologyKey,
        maxSkew: fc.integer({ min: 1, max: 2 }),
        whenUnsatisfiable: fc.constant('DoNotSchedule'),
        labelSelector: selector,
        minDomains: fc.constantFrom(1, 3),
      }),
      { maxLength: 2 },
    ),
  },
  { requiredKeys: [] },
);
const pod = fc.record({
  namespace: fc.constantFrom(...Object.keys(NAMESPACES)),
  labels,
  spec,
  isTerminating: fc.boolean(),
  node: fc.constantFrom(...NODES, 'unknown'),
});
type Draw = typeof pod extends fc.Arbitrary<infer T> ? T : never;

function podOf({ namespace, labels, spec, isTerminating }: Draw, index: number): Pod {
  const deletionTimestamp = isTerminating ? '2026-01-01T00:00:00Z' : undefined;
  return makePod(`p${index}`, spec, { namespace, labels, deletionTimestamp });
}

function stateOf(placed: readonly { readonly pod: PodInfo; readonly node: string }[]): ClusterState {
  const state = new ClusterState({
    namespaceLabels: (name) => NAMESPACES[name],
    claim: () => undefined,
    volume: () => undefined,
    storageClass: () => undefined,
    unboundVolumes: () => [],
  });
  for (const node of nodeObjects) state.setNode(nodeInfoOf(node));
  for (const { pod, node } of placed) state.addPod(pod, node);
  return state;
}

const verdicts = (demand: Demand, state: ClusterState) =>
  [...state.nodes.values()].map((node) => demand.reasons(node).map(({ message }) => message));

it('agrees with looking at every pod', () => {
  fc.assert(
    fc.property(pod, fc.array(pod, { maxLength: 8 }), (draw, others) => {
      const incoming = podInfoOf(podOf({ ...draw, isTerminating: false }, 99));
      const placed = others.map((other, index) => ({ pod: podInfoOf(podOf(other, index)), node: other.node }));
      const state = stateOf(placed);
      const naive = [...state.nodes.values()].map((node) => naiveVerdict(incoming, node, placed));
      expect(verdicts(new Demand(incoming, state), state).map(([first]) => first)).toEqual(naive);
    }),
    { numRuns: 1000 },
  );
});

it('imagines pods as if they were added and removed', () => {
  fc.assert(
    fc.property(pod, fc.array(pod, { maxLength: 8 }), fc.nat(8), (draw, others, split) => {
      const incoming = podInfoOf(podOf({ ...draw, isTerminating: false }, 99));
      const placed = others
        .map((other, index) => ({ pod: podInfoOf(podOf(other, index)), node: other.node }))
        .filter(({ node }) => node !== 'unknown');
      const [gone, rest] = [placed.slice(0, split), placed.slice(split)];
      const full = stateOf(placed);
      const demand = new Demand(incoming, full);
      const before = verdicts(demand, full);
      for (const { pod, node } of gone) demand.imagine(pod, full.nodes.get(node) as NodeState, -1);
      const reduced = stateOf(rest);
      expect(verdicts(demand, full)).toEqual(verdicts(new Demand(incoming, reduced), reduced));
      for (const { pod, node } of gone) demand.imagine(pod, full.nodes.get(node) as NodeState, 1);
      expect(verdicts(demand, full)).toEqual(before);
    }),
    { numRuns: 1000 },
  );
});

it('forgets what was taken away', () => {
  fc.assert(
    fc.property(fc.array(pod, { maxLength: 8 }), pod, (draws, draw) => {
      const placed = draws.map((each, index) => ({ pod: podInfoOf(podOf(each, index)), node: each.node }));
      const state = stateOf(placed);
      for (const { pod } of placed) state.removePod(pod.uid);
      const incoming = podInfoOf(podOf({ ...draw, isTerminating: false }, 99));
      const empty = stateOf([]);
      expect(verdicts(new Demand(incoming, state), state)).toEqual(verdicts(new Demand(incoming, empty), empty));
      expect([...state.groups.namespaces()]).toEqual([]);
    }),
  );
});

interface Placed {
  readonly pod: PodInfo;
  readonly node: string;
}

const objectOf = (name: string) => nodeObjects.find(({ metadata }) => metadata.name === name);
const valueOf = (node: string, key: string): string | undefined => objectOf(node)?.metadata.labels?.[key];

function means(terms: PodInfo['affinity']['required'][number], pod: PodInfo): boolean {
  const isNamed = terms.namespaces.has(pod.namespace) || terms.namespaceSelector.matches(NAMESPACES[pod.namespace]);
  return isNamed && terms.selector.matches(pod.labels);
}

function naiveVerdict(pod: PodInfo, node: NodeState, placed: readonly Placed[]): string | undefined {
  return naiveSpread(pod, node, placed) ?? naiveAffinity(pod, node, placed);
}

function naiveSpread(pod: PodInfo, node: NodeState, placed: readonly Placed[]): string | undefined {
  const eligible = NODES.filter((name) =>
    pod.spread.every(({ topologyKey }) => valueOf(name, topologyKey) !== undefined),
  );
  for (const { topologyKey, selector, skewMax, domainsMin } of pod.spread) {
    const own = valueOf(node.name, topologyKey);
    if (own === undefined) return "node(s) didn't match pod topology spread constraints (missing required label)";
    const domains = [...new Set(eligible.map((name) => valueOf(name, topologyKey)))];
    const count = (domain: string | undefined) =>
      placed.filter(
        (other) =>
          selector.requirements.length > 0 &&
          eligible.includes(other.node) &&
          valueOf(other.node, topologyKey) === domain &&
          other.pod.namespace === pod.namespace &&
          !other.pod.isTerminating &&
          selector.matches(other.pod.labels),
      ).length;
    const least = domains.length < domainsMin || domains.length === 0 ? 0 : Math.min(...domains.map(count));
    const self = selector.matches(pod.labels) ? 1 : 0;
    if (count(own) + self - least > skewMax) return "node(s) didn't match pod topology spread constraints";
  }
  return undefined;
}

function naiveAffinity(pod: PodInfo, node: NodeState, placed: readonly Placed[]): string | undefined {
  const { affinity, antiAffinity } = pod;
  const isTogether = (other: Placed, key: string) => {
    const value = valueOf(node.name, key);
    return value !== undefined && valueOf(other.node, key) === value;
  };
  const company = placed.filter((other) => affinity.required.every((each) => means(each, other.pod)));
  const hasTopology = affinity.required.every(({ topologyKey }) => valueOf(node.name, topologyKey) !== undefined);
  const hasCompany = affinity.required.every(({ topologyKey }) =>
    company.some((other) => isTogether(other, topologyKey)),
  );
  const isAnywhere = company.some((other) =>
    affinity.required.some(({ topologyKey }) => valueOf(other.node, topologyKey) !== undefined),
  );
  const isFirst = !isAnywhere && affinity.required.every((each) => means(each, pod));
  if (!hasTopology || !(hasCompany || isFirst)) return "node(s) didn't match pod affinity rules";
  for (const each of antiAffinity.required) {
    if (placed.some((other) => means(each, other.pod) && isTogether(other, each.topologyKey)))
      return "node(s) didn't match pod anti-affinity rules";
  }
  for (const other of placed) {
    if (other.pod.antiAffinity.required.some((each) => means(each, pod) && isTogether(other, each.topologyKey)))
      return "node(s) didn't satisfy existing pods anti-affinity rules";
  }
  return undefined;
}
