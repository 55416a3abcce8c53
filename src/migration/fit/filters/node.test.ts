import { describe, expect, it } from 'vitest';
import { asking, makeCluster, makeNode, makePod, refusals } from '../cluster.fixture.ts';
import type { Affinity, NodeSelectorTerm, PodSpec, Taint, Toleration } from '../objects.ts';

/** What the node itself says. Cases and wording as in kube-scheduler's plugins of the same names. */

const onNode = (spec: PodSpec, node: Parameters<typeof makeNode>[1]) =>
  refusals(makePod('p', spec), makeCluster({ nodes: [makeNode('n', node)] })).n;

describe('NodeName', () => {
  it.each([
    ['no name', {}, []],
    ['its name', { nodeName: 'n' }, []],
    ['another name', { nodeName: 'm' }, ["node(s) didn't match the requested node name"]],
  ])('%s', (_, spec, expected) => {
    expect(onNode(spec, {})).toEqual(expected);
  });
});

describe('NodeUnschedulable', () => {
  const cordoned = { spec: { unschedulable: true } };
  it.each([
    ['nothing tolerated', [], ['node(s) were unschedulable']],
    ['the taint tolerated', [{ key: 'node.kubernetes.io/unschedulable', operator: 'Exists' }], []],
    ['everything tolerated', [{ operator: 'Exists' }], []],
    [
      'another effect tolerated',
      [{ key: 'node.kubernetes.io/unschedulable', effect: 'NoExecute' }],
      ['node(s) were unschedulable'],
    ],
  ])('%s', (_, tolerations, expected) => {
    expect(onNode({ tolerations }, cordoned)).toEqual(expected);
  });
});

describe('TaintToleration', () => {
  const gpu: Taint = { key: 'dedicated', value: 'gpu', effect: 'NoSchedule' };
  const cases: [string, Taint[], Toleration[], string[]][] = [
    ['no taints', [], [], []],
    ['not tolerated', [gpu], [], ['node(s) had untolerated taint {dedicated: gpu}']],
    ['no value', [{ key: 'k', effect: 'NoExecute' }], [], ['node(s) had untolerated taint {k: }']],
    ['equal', [gpu], [{ key: 'dedicated', operator: 'Equal', value: 'gpu', effect: 'NoSchedule' }], []],
    ['equal by default', [gpu], [{ key: 'dedicated', value: 'gpu' }], []],
    ['another value', [gpu], [{ key: 'dedicated', value: 'x' }], ['node(s) had untolerated taint {dedicated: gpu}']],
    ['exists', [gpu], [{ key: 'dedicated', operator: 'Exists' }], []],
    [
      'another effect',
      [gpu],
      [{ key: 'dedicated', operator: 'Exists', effect: 'NoExecute' }],
      ['node(s) had untolerated taint {dedicated: gpu}'],
    ],
    [
      'an unknown operator',
      [gpu],
      [{ key: 'dedicated', operator: 'Like' }],
      ['node(s) had untolerated taint {dedicated: gpu}'],
    ],
    ['a mere wish', [{ key: 'k', effect: 'PreferNoSchedule' }], [], []],
    [
      'the first of several',
      [{ key: 'a', effect: 'NoSchedule' }, gpu],
      [{ key: 'a', operator: 'Exists' }],
      ['node(s) had untolerated taint {dedicated: gpu}'],
    ],
  ];
  it.each(cases)('%s', (_, taints, tolerations, expected) => {
    expect(onNode({ tolerations }, { spec: { taints } })).toEqual(expected);
  });
});

describe('NodeAffinity', () => {
  const no = ["node(s) didn't match Pod's node affinity/selector"];
  const labels = { zone: 'a', cores: '16' };
  const require = (...nodeSelectorTerms: NodeSelectorTerm[]): { affinity: Affinity } => ({
    affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } },
  });
  const expression = (key: string, operator: string, ...values: string[]): NodeSelectorTerm => ({
    matchExpressions: [{ key, operator, values }],
  });
  const cases: [string, PodSpec, string[]][] = [
    ['selector', { nodeSelector: { zone: 'a' } }, []],
    ['selector of another value', { nodeSelector: { zone: 'b' } }, no],
    ['selector of a label it lacks', { nodeSelector: { constructor: 'a' } }, no],
    ['In', require(expression('zone', 'In', 'b', 'a')), []],
    ['NotIn', require(expression('zone', 'NotIn', 'a')), no],
    ['NotIn of a label it lacks', require(expression('disk', 'NotIn', 'a')), []],
    ['Exists', require(expression('zone', 'Exists')), []],
    ['DoesNotExist', require(expression('zone', 'DoesNotExist')), no],
    ['Gt', require(expression('cores', 'Gt', '8')), []],
    ['Gt of as much', require(expression('cores', 'Gt', '16')), no],
    ['Lt', require(expression('cores', 'Lt', '8')), no],
    ['Gt of no number', require(expression('zone', 'Gt', '8')), no],
    ['an unknown operator', require(expression('zone', 'Like', 'a')), no],
    ['any term', require(expression('zone', 'In', 'b'), expression('cores', 'Exists')), []],
    [
      'all of a term',
      require({
        matchExpressions: [
          { key: 'zone', operator: 'In', values: ['a'] },
          { key: 'disk', operator: 'Exists' },
        ],
      }),
      no,
    ],
    ['no terms', require(), no],
    ['an empty term', require({}), no],
    ['selector and affinity', { nodeSelector: { zone: 'a' }, ...require(expression('zone', 'In', 'b')) }, no],
    ['its name', require({ matchFields: [{ key: 'metadata.name', operator: 'In', values: ['n'] }] }), []],
    ['not its name', require({ matchFields: [{ key: 'metadata.name', operator: 'NotIn', values: ['n'] }] }), no],
    [
      'another name',
      require({ matchFields: [{ key: 'metadata.name', operator: 'In', values: ['m'] }] }),
      ["node(s) didn't satisfy plugin(s) [NodeAffinity]"],
    ],
    [
      'names that exclude each other',
      require({
        matchFields: [
          { key: 'metadata.name', operator: 'In', values: ['n'] },
          { key: 'metadata.name', operator: 'In', values: ['m'] },
        ],
      }),
      ['pod affinity terms conflict'],
    ],
  ];
  it.each(cases)('%s', (_, spec, expected) => {
    expect(onNode(spec, { labels })).toEqual(expected);
  });
});

describe('NodePorts', () => {
  const no = ["node(s) didn't have free ports for the requested pod ports"];
  const port = (hostPort: number, hostIP?: string, protocol?: string): PodSpec => ({
    containers: [{ ports: [{ hostPort, hostIP, protocol }] }],
  });
  const cases: [string, PodSpec, PodSpec, string[]][] = [
    ['none', {}, port(80), []],
    ['another', port(81), port(80), []],
    ['the same', port(80), port(80), no],
    ['another protocol', port(80, undefined, 'UDP'), port(80), []],
    ['another address', port(80, '10.0.0.1'), port(80, '10.0.0.2'), []],
    ['the same address', port(80, '10.0.0.1'), port(80, '10.0.0.1'), no],
    ['any address', port(80), port(80, '10.0.0.1'), no],
    ['any address, the other way', port(80, '10.0.0.1'), port(80, '0.0.0.0'), no],
    ['no port of the host', { containers: [{ ports: [{}] }] }, { containers: [{ ports: [{}] }] }, []],
    ['a sidecar', { initContainers: [{ restartPolicy: 'Always', ports: [{ hostPort: 80 }] }] }, port(80), no],
    ['an init container', { initContainers: [{ ports: [{ hostPort: 80 }] }] }, port(80), []],
  ];
  it.each(cases)('%s', (_, wanted, taken, expected) => {
    const cluster = makeCluster({ nodes: [makeNode('n')], pods: { n: [makePod('other', taken)] } });
    expect(refusals(makePod('p', wanted), cluster).n).toEqual(expected);
  });

  it('frees what a pod had when it goes', () => {
    const cluster = makeCluster({ nodes: [makeNode('n')], pods: { n: [makePod('a', port(80))] } });
    cluster.removePod('uid-default-a');
    expect(refusals(makePod('p', port(80)), cluster).n).toEqual([]);
  });
});

describe('NodeResourcesFit', () => {
  const allocatable = { cpu: '2', memory: '4Gi', pods: '2', 'ephemeral-storage': '10Gi', 'example.com/gpu': '1' };
  const cases: [string, PodSpec, PodSpec, string[]][] = [
    ['all that is left', asking({ cpu: '1500m', memory: '3Gi' }), asking({ cpu: '500m', memory: '1Gi' }), []],
    ['a little more', asking({ cpu: '1501m' }), asking({ cpu: '500m' }), ['Insufficient cpu']],
    ['too much of several', asking({ cpu: '3', memory: '5Gi' }), {}, ['Insufficient cpu', 'Insufficient memory']],
    ['storage', asking({ 'ephemeral-storage': '11Gi' }), {}, ['Insufficient ephemeral-storage']],
    [
      'an extended resource',
      asking({ 'example.com/gpu': '1' }),
      asking({ 'example.com/gpu': '1' }),
      ['Insufficient example.com/gpu'],
    ],
    ['one that the node lacks', asking({ 'example.com/fpga': '1' }), {}, ['Insufficient example.com/fpga']],
    ['nothing of one that it lacks', asking({ 'example.com/fpga': '0' }), {}, []],
    [
      'an init container that needs more',
      {
        ...asking({ cpu: '1' }),
        initContainers: [{ resources: { requests: { cpu: '3' } } }],
      },
      {},
      ['Insufficient cpu'],
    ],
    [
      'sidecars',
      {
        ...asking({ cpu: '1' }),
        initContainers: [{ restartPolicy: 'Always', resources: { requests: { cpu: '1001m' } } }],
      },
      {},
      ['Insufficient cpu'],
    ],
    ['overhead', { ...asking({ cpu: '2' }), overhead: { cpu: '1m' } }, {}, ['Insufficient cpu']],
    ['rounded up', asking({ cpu: '1500.1m' }), asking({ cpu: '500m' }), ['Insufficient cpu']],
  ];
  it.each(cases)('%s', (_, wanted, used, expected) => {
    const cluster = makeCluster({ nodes: [makeNode('n', { allocatable })], pods: { n: [makePod('other', used)] } });
    expect(refusals(makePod('p', wanted), cluster).n).toEqual(expected);
  });

  it('counts pods', () => {
    const pods = { n: [makePod('a'), makePod('b')] };
    const cluster = makeCluster({ nodes: [makeNode('n', { allocatable })], pods });
    expect(refusals(makePod('p', asking({ cpu: '3' })), cluster).n).toEqual(['Too many pods', 'Insufficient cpu']);
    cluster.removePod('uid-default-a');
    expect(refusals(makePod('p'), cluster).n).toEqual([]);
  });

  it('takes no pods on a node that has not said what it has', () => {
    const cluster = makeCluster({ nodes: [makeNode('n', { allocatable: {} })] });
    expect(refusals(makePod('p'), cluster).n).toEqual(['Too many pods']);
  });
});
