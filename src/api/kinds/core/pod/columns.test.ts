import { describe, expect, it } from 'vitest';
import type { JsonObject, ObjectMeta } from '../../../meta.ts';
import { cells, object } from '../kinds.fixture.ts';
import { podDefinition } from './definition.ts';

const NOW = Date.parse('2026-01-01T01:00:00Z');
const FIVE_MINUTES_AGO = '2026-01-01T00:55:00Z';

/** READY, STATUS and RESTARTS of a pod. */
function row(spec: JsonObject, status: JsonObject, metadata: ObjectMeta = {}): unknown[] {
  return cells(podDefinition, object('Pod', { spec, status }, metadata), NOW).slice(1, 4);
}

const two = { containers: [{ name: 'a' }, { name: 'b' }] };
const running = { ready: true, restartCount: 0, state: { running: {} } };
const waiting = (reason: string): JsonObject => ({ ready: false, restartCount: 0, state: { waiting: { reason } } });
const ended = (terminated: JsonObject): JsonObject => ({ ready: false, restartCount: 0, state: { terminated } });
const ready = [{ type: 'Ready', status: 'True' }];

describe('kubectl get pods', () => {
  const cases: [what: string, spec: JsonObject, status: JsonObject, row: unknown[]][] = [
    ['pending', two, { phase: 'Pending' }, ['0/2', 'Pending', '0']],
    ['running', two, { phase: 'Running', containerStatuses: [running, running] }, ['2/2', 'Running', '0']],
    ['evicted', two, { phase: 'Failed', reason: 'Evicted' }, ['0/2', 'Evicted', '0']],
    [
      'gated',
      two,
      { phase: 'Pending', conditions: [{ type: 'PodScheduled', status: 'False', reason: 'SchedulingGated' }] },
      ['0/2', 'SchedulingGated', '0'],
    ],
    [
      'crashing',
      two,
      {
        phase: 'Running',
        containerStatuses: [
          running,
          {
            ...waiting('CrashLoopBackOff'),
            restartCount: 3,
            lastState: { terminated: { exitCode: 1, finishedAt: FIVE_MINUTES_AGO } },
          },
        ],
      },
      ['1/2', 'CrashLoopBackOff', '3 (5m ago)'],
    ],
    [
      'done',
      two,
      {
        phase: 'Succeeded',
        containerStatuses: [ended({ exitCode: 0, reason: 'Completed' }), ended({ reason: 'Completed' })],
      },
      ['0/2', 'Completed', '0'],
    ],
    [
      'half done and ready',
      two,
      { phase: 'Running', conditions: ready, containerStatuses: [ended({ reason: 'Completed' }), running] },
      ['1/2', 'Running', '0'],
    ],
    [
      'half done and not ready',
      two,
      { phase: 'Running', containerStatuses: [ended({ reason: 'Completed' }), running] },
      ['1/2', 'NotReady', '0'],
    ],
    ['failed', two, { phase: 'Failed', containerStatuses: [ended({ exitCode: 2 })] }, ['0/2', 'ExitCode:2', '0']],
    [
      'killed',
      two,
      { phase: 'Failed', containerStatuses: [ended({ exitCode: 137, signal: 9 })] },
      ['0/2', 'Signal:9', '0'],
    ],
    [
      'first container speaks last',
      two,
      { phase: 'Pending', containerStatuses: [waiting('ErrImagePull'), waiting('ContainerCreating')] },
      ['0/2', 'ErrImagePull', '0'],
    ],
  ];
  it.each(cases)('%s', (_what, spec, status, expected) => {
    expect(row(spec, status)).toEqual(expected);
  });

  const init = { ...two, initContainers: [{ name: 'x' }, { name: 'y' }] };
  it.each<[what: string, statuses: JsonObject[], status: string]>([
    [
      'the first runs',
      [
        { name: 'x', state: { running: {} } },
        { name: 'y', ...waiting('PodInitializing') },
      ],
      'Init:0/2',
    ],
    [
      'the second runs',
      [
        { name: 'x', ...ended({ exitCode: 0 }) },
        { name: 'y', state: { running: {} } },
      ],
      'Init:1/2',
    ],
    ['one crashes', [{ name: 'x', ...waiting('CrashLoopBackOff') }], 'Init:CrashLoopBackOff'],
    ['one failed', [{ name: 'x', ...ended({ exitCode: 1 }) }], 'Init:ExitCode:1'],
    ['one was killed', [{ name: 'x', ...ended({ exitCode: 1, signal: 9 }) }], 'Init:Signal:9'],
    ['one has an error', [{ name: 'x', ...ended({ exitCode: 1, reason: 'Error' }) }], 'Init:Error'],
  ])('init containers: %s', (_what, initContainerStatuses, status) => {
    const containerStatuses = [waiting('PodInitializing'), waiting('PodInitializing')];
    expect(row(init, { phase: 'Pending', initContainerStatuses, containerStatuses })[1]).toBe(status);
  });

  it('counts sidecars among the containers', () => {
    const spec = { ...two, initContainers: [{ name: 'x', restartPolicy: 'Always' }] };
    const initContainerStatuses = [{ name: 'x', started: true, ...running, restartCount: 2 }];
    expect(row(spec, { phase: 'Running', initContainerStatuses, containerStatuses: [running, running] })).toEqual([
      '3/3',
      'Running',
      '2',
    ]);
  });

  it.each<[status: JsonObject, text: string]>([
    [{ phase: 'Running', containerStatuses: [running, running] }, 'Terminating'],
    [{ phase: 'Succeeded' }, 'Succeeded'],
    [{ phase: 'Running', reason: 'NodeLost' }, 'Unknown'],
  ])('being deleted: %j is %s', (status, text) => {
    expect(row(two, status, { deletionTimestamp: FIVE_MINUTES_AGO })[1]).toBe(text);
  });

  it('shows more with -o wide', () => {
    const names = podDefinition.columns.map((column) => [column.name, column.priority ?? 0]);
    expect(names).toEqual([
      ['Name', 0],
      ['Ready', 0],
      ['Status', 0],
      ['Restarts', 0],
      ['Age', 0],
      ['IP', 1],
      ['Node', 1],
      ['Nominated Node', 1],
      ['Readiness Gates', 1],
    ]);
    const pod = object(
      'Pod',
      {
        spec: { ...two, nodeName: 'n', readinessGates: [{ conditionType: 'x/a' }, { conditionType: 'x/b' }] },
        status: { phase: 'Running', podIPs: [{ ip: '10.0.0.1' }], conditions: [{ type: 'x/a', status: 'True' }] },
      },
      { creationTimestamp: FIVE_MINUTES_AGO },
    );
    expect(cells(podDefinition, pod, NOW)).toEqual([
      'a',
      '0/2',
      'Running',
      '0',
      '5m',
      '10.0.0.1',
      'n',
      '<none>',
      '1/2',
    ]);
    expect(cells(podDefinition, object('Pod', {}), NOW).slice(4)).toEqual([
      '<unknown>',
      '<none>',
      '<none>',
      '<none>',
      '<none>',
    ]);
  });
});
