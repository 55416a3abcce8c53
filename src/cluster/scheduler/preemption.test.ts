import { describe, expect, it } from 'vitest';
import { unreachable } from '../../api/unreachable.ts';
import { seededRandom } from '../../env/test.ts';
import { asking, type Contents, makeCluster, makeNode, makePod } from '../../migration/fit/cluster.fixture.ts';
import { Demand } from '../../migration/fit/fit.ts';
import type { Pod, PodSpec } from '../../migration/fit/objects.ts';
import { podInfoOf } from '../../migration/fit/pod-info.ts';
import type { PodDisruptionBudget } from '../disruption-budgets/objects.ts';
import { Budgets } from './budgets.ts';
import { type Decision, decide } from './decide.ts';
import { Nominations } from './nominations.ts';
import { selectVictims } from './preemption.ts';

/** Cases as in kube-scheduler's DefaultPreemption. */

const small = { cpu: '4', memory: '8Gi', pods: '110' };

interface Options {
  readonly priority?: number;
  readonly labels?: Record<string, string>;
  readonly startTime?: string;
  readonly spec?: PodSpec;
  readonly status?: Pod['status'];
  readonly deletionTimestamp?: string;
}

function pod(name: string, cpu: string, options: Options = {}): Pod {
  const { priority = 0, labels, startTime, spec, status, deletionTimestamp } = options;
  return makePod(
    name,
    { ...asking({ cpu }), priority, ...spec },
    { labels, deletionTimestamp },
    { startTime, ...status },
  );
}

function budget(name: string, app: string, disruptionsAllowed: number, disrupted: string[] = []): PodDisruptionBudget {
  return {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name, namespace: 'default' },
    spec: { selector: { matchLabels: { app } } },
    status: { disruptionsAllowed, disruptedPods: Object.fromEntries(disrupted.map((each) => [each, ''])) },
  };
}

interface Situation extends Omit<Contents, 'nodes'> {
  readonly nodes?: Contents['nodes'];
  readonly budgets?: readonly PodDisruptionBudget[];
  /** Pods that wait for a node. */
  readonly nominated?: { readonly [node: string]: readonly Pod[] };
}

function run(incoming: Pod, situation: Situation): Decision {
  const { budgets: objects = [], nominated = {}, nodes, pods = {} } = situation;
  const names = Object.keys(pods);
  const cluster = makeCluster({
    ...situation,
    nodes: nodes ?? names.map((name) => makeNode(name, { allocatable: small })),
  });
  const nominations = new Nominations();
  for (const [node, waiting] of Object.entries(nominated)) {
    for (const each of waiting) nominations.set(podInfoOf(each), node);
  }
  const budgets = new Budgets();
  for (const each of objects) budgets.set(each);
  return decide(podInfoOf(incoming), { cluster, nominations, budgets }, seededRandom(1));
}

/** `node: victims`, or what is said where nobody has to go. */
function outcome(decision: Decision): string {
  switch (decision.type) {
    case 'bind':
      return `bound to ${decision.node}`;
    case 'preempt':
      return `${decision.node}: ${decision.victims.map(({ key }) => key.split('/')[1]).join(' ')}`;
    case 'wait':
      return decision.message;
    default:
      return unreachable(decision);
  }
}

const vip = (cpu = '4', more: Options = {}) => pod('vip', cpu, { priority: 100, ...more });

describe('who has to go', () => {
  const early = { startTime: '2026-01-01T00:00:00Z' };
  const late = { startTime: '2026-01-02T00:00:00Z' };
  const cases: [string, Pod, Situation, string][] = [
    ['room without anybody', vip('1'), { pods: { n: [pod('a', '3')] } }, 'bound to n'],
    ['the one that is in the way', vip('3'), { pods: { n: [pod('a', '3'), pod('b', '1')] } }, 'n: a'],
    ['as few as possible', vip('2'), { pods: { n: [pod('a', '2'), pod('b', '1'), pod('c', '1')] } }, 'n: b c'],
    [
      'the less important',
      vip('2'),
      {
        pods: { n: [pod('a', '2', { priority: 50 }), pod('b', '2', { priority: 10 })] },
      },
      'n: b',
    ],
    ['the one that started last', vip('2'), { pods: { n: [pod('a', '2', late), pod('b', '2', early)] } }, 'n: a'],
    ['one that has not started', vip('2'), { pods: { n: [pod('a', '2'), pod('b', '2', early)] } }, 'n: a'],
    [
      'nobody of the same priority',
      vip('2'),
      { pods: { n: [pod('a', '4', { priority: 100 })] } },
      '0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.',
    ],
    [
      'nobody where it would not help',
      vip('2'),
      {
        pods: { n: [pod('a', '3', { priority: 100 }), pod('b', '1')] },
      },
      '0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: 1 Insufficient cpu.',
    ],
    [
      'nobody on a node that is too small',
      vip('5'),
      { pods: { n: [pod('a', '4')] } },
      '0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.',
    ],
    [
      'nobody for a pod that pushes nobody out',
      vip('4', { spec: { preemptionPolicy: 'Never' } }),
      {
        pods: { n: [pod('a', '4')] },
      },
      '0/1 nodes are available: 1 Insufficient cpu. preemption: not eligible due to preemptionPolicy=Never.',
    ],
    [
      'the holder of a port',
      vip('1', { spec: { containers: [{ ports: [{ hostPort: 80 }] }] } }),
      {
        pods: { n: [pod('a', '1', { spec: { containers: [{ ports: [{ hostPort: 80 }] }] } }), pod('b', '1')] },
      },
      'n: a',
    ],
    [
      'one whose anti-affinity keeps the pod away',
      vip('1', { labels: { app: 'web' } }),
      {
        pods: {
          n: [
            pod('guard', '1', {
              spec: {
                affinity: {
                  podAntiAffinity: {
                    requiredDuringSchedulingIgnoredDuringExecution: [
                      { topologyKey: 'kubernetes.io/hostname', labelSelector: { matchLabels: { app: 'web' } } },
                    ],
                  },
                },
              },
            }),
          ],
        },
      },
      'n: guard',
    ],
    [
      'those that make the spread uneven',
      vip('1', {
        labels: { app: 'web' },
        spec: {
          topologySpreadConstraints: [
            {
              maxSkew: 1,
              topologyKey: 'kubernetes.io/hostname',
              whenUnsatisfiable: 'DoNotSchedule',
              labelSelector: { matchLabels: { app: 'web' } },
            },
          ],
        },
      }),
      {
        pods: {
          n: [pod('a', '1', { labels: { app: 'web' } }), pod('b', '1', { labels: { app: 'web' } })],
          full: [pod('c', '4', { priority: 100 })],
        },
      },
      'n: a b',
    ],
  ];
  it.each(cases)('%s', (_, incoming, situation, expected) => {
    expect(outcome(run(incoming, situation))).toBe(expected);
  });
});

describe('budgets', () => {
  const web = { labels: { app: 'web' } };
  const db = { labels: { app: 'db' } };
  const cases: [string, Situation, string][] = [
    [
      'spare whom they protect',
      {
        pods: { n: [pod('a', '4', web)], m: [pod('b', '4', { ...db, priority: 50 })] },
        budgets: [budget('x', 'web', 0)],
      },
      'm: b',
    ],
    [
      'are broken where there is no other way',
      { pods: { n: [pod('a', '4', web)] }, budgets: [budget('x', 'web', 0)] },
      'n: a',
    ],
    [
      'let go of as many as they allow',
      {
        pods: { n: [pod('a', '4', web)], m: [pod('b', '4', { ...db, priority: 50 })] },
        budgets: [budget('x', 'web', 1)],
      },
      'n: a',
    ],
    [
      'protect nobody where they select everybody, as upstream',
      {
        pods: { n: [pod('a', '2'), pod('b', '2')], m: [pod('c', '4', { priority: 1 })] },
        budgets: [{ ...budget('x', 'web', 0), spec: { selector: {} } }],
      },
      'n: a b',
    ],
    [
      'do not count those twice that the eviction API let go',
      {
        pods: { n: [pod('a', '4', web)], m: [pod('b', '4', { ...db, priority: 50 })] },
        budgets: [budget('x', 'web', 0, ['a'])],
      },
      'n: a',
    ],
    [
      'protect on a node whom they can',
      {
        pods: { n: [pod('a', '4', { ...web, priority: 10 })], m: [pod('b', '2', web), pod('c', '2', web)] },
        budgets: [budget('x', 'web', 1)],
      },
      'n: a',
    ],
    [
      'select nothing with an empty selector',
      {
        pods: { n: [pod('a', '4', web)], m: [pod('b', '4', { priority: 50 })] },
        budgets: [{ ...budget('x', 'web', 0), spec: { selector: {} } }],
      },
      'n: a',
    ],
  ];
  it.each(cases)('%s', (_, situation, expected) => {
    expect(outcome(run(vip(), situation))).toBe(expected);
  });

  it('spares a protected pod before a more important one', () => {
    const pods = { n: [pod('a', '2', { ...web, priority: 1 }), pod('b', '2', { priority: 50 })] };
    expect(outcome(run(vip('2'), { pods, budgets: [budget('x', 'web', 0)] }))).toBe('n: b');
  });

  it('follows changes of a budget', () => {
    const budgets = new Budgets();
    const info = podInfoOf(pod('a', '1', web));
    budgets.set(budget('x', 'web', 0));
    expect(budgets.violatedBy([info]).size).toBe(1);
    budgets.set(budget('x', 'web', 1));
    expect(budgets.violatedBy([info]).size).toBe(0);
    budgets.set(budget('x', 'db', 0));
    expect(budgets.violatedBy([info]).size).toBe(0);
    budgets.delete(budget('x', 'db', 0));
    expect(budgets.violatedBy([podInfoOf(pod('a', '1', db))]).size).toBe(0);
  });
});

describe('which node', () => {
  const early = { startTime: '2026-01-01T00:00:00Z' };
  const late = { startTime: '2026-01-02T00:00:00Z' };
  const cases: [string, Situation['pods'], string][] = [
    [
      'lowest highest priority',
      {
        n: [pod('a', '2', { priority: 50 }), pod('b', '2', { priority: 1 })],
        m: [pod('c', '2', { priority: 49 }), pod('d', '2', { priority: 49 })],
      },
      'm: c d',
    ],
    [
      'then the lowest sum',
      {
        n: [pod('a', '2', { priority: 50 }), pod('b', '2', { priority: 2 })],
        m: [pod('c', '2', { priority: 50 }), pod('d', '2', { priority: 1 })],
      },
      'm: c d',
    ],
    [
      'then the fewest, also where priorities are negative',
      {
        n: [pod('a', '2', { priority: -50 }), pod('b', '2', { priority: -50 })],
        m: [pod('c', '4', { priority: -50 })],
      },
      'm: c',
    ],
    ['then the latest start', { n: [pod('a', '4', early)], m: [pod('b', '4', late)] }, 'm: b'],
    ['then the first', { n: [pod('a', '4', early)], m: [pod('b', '4', early)] }, 'n: a'],
  ];
  it.each(cases)('%s', (_, pods, expected) => {
    expect(outcome(run(vip(), { pods }))).toBe(expected);
  });

  it('passes over nodes that preemption cannot help, and says so', () => {
    const nodes = [
      makeNode('tainted', { spec: { taints: [{ key: 'k', value: 'v', effect: 'NoSchedule' }] } }),
      makeNode('cordoned', { spec: { unschedulable: true } }),
      makeNode('n', { allocatable: small }),
    ];
    const pods = { n: [pod('a', '4')] };
    expect(outcome(run(vip(), { nodes, pods }))).toBe('n: a');
    expect(outcome(run(pod('p', '4'), { nodes, pods }))).toBe(
      '0/3 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint {k: v}, 1 node(s) were unschedulable. ' +
        'preemption: 0/3 nodes are available: 1 No preemption victims found for incoming pod, 2 Preemption is not helpful for scheduling.',
    );
  });
});

describe('nominations', () => {
  const gone = {
    deletionTimestamp: '2026-01-01T00:00:00Z',
    status: { conditions: [{ type: 'DisruptionTarget', status: 'True', reason: 'PreemptionByScheduler' }] },
  };
  it('push nobody out again while the first victims are on their way', () => {
    const pods = { n: [pod('a', '4', gone)], m: [pod('b', '4')] };
    expect(outcome(run(vip(), { pods, nominated: { n: [vip()] } }))).toBe(
      '0/2 nodes are available: 2 Insufficient cpu. preemption: not eligible due to a terminating pod on the nominated node.',
    );
  });

  it('count only pods that were pushed out', () => {
    const leaving = { deletionTimestamp: '2026-01-01T00:00:00Z', priority: 10 };
    const pods = { n: [pod('a', '4', leaving)], m: [pod('b', '4')] };
    expect(outcome(run(vip(), { pods, nominated: { n: [vip()] } }))).toBe('m: b');
  });

  it('are given up where their node no longer does', () => {
    const nodes = [makeNode('n', { spec: { unschedulable: true } }), makeNode('m', { allocatable: small })];
    const pods = { n: [pod('a', '4', gone)], m: [pod('b', '4')] };
    expect(outcome(run(vip(), { nodes, pods, nominated: { n: [vip()] } }))).toBe('m: b');
  });

  it('keep the room from lesser pods, and from equal ones', () => {
    const nodes = [makeNode('n', { allocatable: small })];
    for (const priority of [50, 100]) {
      expect(outcome(run(pod('p', '2', { priority }), { nodes, nominated: { n: [vip('3')] } }))).toMatch(
        /^0\/1 nodes are available: 1 Insufficient cpu\. preemption: /,
      );
    }
    expect(outcome(run(pod('p', '2', { priority: 101 }), { nodes, nominated: { n: [vip('3')] } }))).toBe('bound to n');
    expect(outcome(run(vip('3'), { nodes, nominated: { n: [vip('3')] } }))).toBe('bound to n');
  });

  it('are tried first', () => {
    const nodes = [makeNode('empty', { allocatable: { cpu: '64', memory: '64Gi', pods: '9' } }), makeNode('n')];
    expect(outcome(run(vip('1'), { nodes, pods: { n: [pod('a', '1')] }, nominated: { n: [vip('1')] } }))).toBe(
      'bound to n',
    );
  });
});

it('asks for company that is only expected no more than for one that is there', () => {
  const near: PodSpec = {
    affinity: {
      podAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: [
          { topologyKey: 'kubernetes.io/hostname', labelSelector: { matchLabels: { app: 'web' } } },
        ],
      },
    },
  };
  const expected = vip('1', { labels: { app: 'web' } });
  const nodes = [makeNode('n', { allocatable: small })];
  expect(outcome(run(pod('p', '1', { spec: near }), { nodes, nominated: { n: [expected] } }))).toMatch(
    /didn't match pod affinity rules/,
  );
});

it('says that there are no nodes', () => {
  expect(outcome(run(vip(), { nodes: [] }))).toBe('no nodes available to schedule pods');
});

it('says what keeps a pod from every node once', () => {
  const incoming = vip('1', { spec: { volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'data' } }] } });
  expect(outcome(run(incoming, { pods: { n: [pod('a', '4')], m: [] } }))).toBe(
    '0/2 nodes are available: persistentvolumeclaim "data" not found. ' +
      'preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.',
  );
});

it('leaves the demand as it was', () => {
  const cluster = makeCluster({
    nodes: [makeNode('n', { allocatable: small })],
    pods: { n: [pod('a', '2', { labels: { app: 'web' } }), pod('b', '2')] },
  });
  const incoming = podInfoOf(
    vip('2', {
      spec: {
        topologySpreadConstraints: [
          {
            maxSkew: 1,
            topologyKey: 'kubernetes.io/hostname',
            whenUnsatisfiable: 'DoNotSchedule',
            labelSelector: { matchLabels: { app: 'web' } },
          },
        ],
      },
    }),
  );
  const demand = new Demand(incoming, cluster);
  const [node] = [...cluster.nodes.values()];
  if (!node) throw new Error('there is a node');
  const context = { demand, nominations: new Nominations(), budgets: new Budgets() };
  const before = demand.reasons(node);
  const first = selectVictims(context, node);
  expect(demand.reasons(node)).toEqual(before);
  expect(selectVictims(context, node)).toEqual(first);
  expect(node.pods.size).toBe(2);
});
