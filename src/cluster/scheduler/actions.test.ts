import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../api/meta.ts';
import { testEnv } from '../../env/test.ts';
import { Client } from '../../kube/client.ts';
import { TransportError, type TransportRequest } from '../../kube/transport.ts';
import { makePod } from '../../migration/fit/cluster.fixture.ts';
import type { Pod } from '../../migration/fit/objects.ts';
import { podInfoOf } from '../../migration/fit/pod-info.ts';
import { Actions } from './actions.ts';

type Answer = readonly [code: number, body: object] | 'lost';

/** Actions against a server that answers as told, and what was asked of it. */
function scripted(...answers: Answer[]) {
  const requests: string[] = [];
  const bodies: JsonObject[] = [];
  const events: string[] = [];
  const env = testEnv();
  // Waiting takes no time here.
  const clock = {
    now: () => env.clock.now(),
    setTimer: (callback: () => void) => {
      queueMicrotask(callback);
      return { cancel: () => undefined };
    },
  };
  const transport = {
    async send({ method, path, body = '{}' }: TransportRequest) {
      requests.push(`${method} ${path.split('?')[0]}`);
      bodies.push(JSON.parse(body) as JsonObject);
      const answer = answers.shift();
      if (answer === undefined || answer === 'lost') throw new TransportError('lost');
      const [status, object] = answer;
      return {
        status,
        headers: {},
        body: (async function* () {
          yield JSON.stringify(object);
        })(),
      };
    },
    close: () => undefined,
  };
  const recorder = {
    event: (_: unknown, type: string, reason: string, message: string) =>
      void events.push(`${type} ${reason}: ${message}`),
  };
  const actions = new Actions({ env: { ...env, clock }, client: new Client(transport, 'test'), recorder });
  return { actions, requests, bodies, events, left: () => answers.length };
}

const refusal = (code: number, reason: string): Answer => [
  code,
  { kind: 'Status', status: 'Failure', code, reason, message: reason },
];
const ok: Answer = [201, { kind: 'Status', status: 'Success' }];
const pod = makePod('p', { schedulerName: 'default-scheduler' }, { uid: 'u', resourceVersion: '7' });
const info = podInfoOf(pod);
const bound = (node: string): Answer => [200, { ...pod, spec: { ...pod.spec, nodeName: node } }];
const signal = new AbortController().signal;

describe('binding', () => {
  const cases: [string, Answer[], string | undefined][] = [
    ['accepted', [ok], undefined],
    ['accepted, and the answer lost', ['lost', bound('n')], undefined],
    ['lost on its way', ['lost', bound(''), ok], undefined],
    [
      'lost twice, and the pod hard to read',
      ['lost', 'lost', refusal(503, 'ServiceUnavailable'), bound(''), 'lost', bound('n')],
      undefined,
    ],
    ['refused because it was accepted', ['lost', bound(''), refusal(409, 'Conflict'), bound('n')], undefined],
    ['refused because another was faster', [refusal(409, 'Conflict'), bound('m')], 'Conflict'],
    ['refused for good', [refusal(403, 'Forbidden'), bound('')], 'Forbidden'],
    ['the pod gone', [refusal(404, 'NotFound'), refusal(404, 'NotFound')], 'NotFound'],
    [
      'another pod of its name',
      [refusal(409, 'Conflict'), [200, { ...pod, metadata: { ...pod.metadata, uid: 'x' } }]],
      'Conflict',
    ],
    [
      'a server that never can',
      Array.from({ length: 5 }, () => [refusal(500, 'InternalError'), bound('')]).flat(),
      'InternalError',
    ],
  ];
  it.each(cases)('%s', async (_, answers, expected) => {
    const { actions, events, left } = scripted(...answers);
    expect(await actions.bind(info, 'n', signal)).toBe(expected);
    expect(left()).toBe(0);
    expect(events).toEqual(expected === undefined ? ['Normal Scheduled: Successfully assigned default/p to n'] : []);
  });

  it('names the very pod', async () => {
    const { actions, requests, bodies } = scripted(ok);
    await actions.bind(info, 'n', signal);
    expect(requests).toEqual(['POST /api/v1/namespaces/default/pods/p/binding']);
    expect(bodies[0]).toMatchObject({ metadata: { uid: 'u' }, target: { kind: 'Node', name: 'n' } });
  });
});

describe('marking', () => {
  const mark = { reason: 'Unschedulable', message: 'no room', nominatedNode: undefined } as const;
  const condition = { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: 'no room' };

  it('writes the condition for the version that was looked at', async () => {
    const { actions, bodies, events } = scripted([200, pod]);
    await actions.mark(info, { ...mark, nominatedNode: 'n' }, signal);
    expect(bodies).toEqual([
      {
        metadata: { uid: 'u', resourceVersion: '7' },
        status: {
          conditions: [{ ...condition, lastTransitionTime: '2026-01-01T00:00:00Z' }],
          nominatedNodeName: 'n',
        },
      },
    ]);
    expect(events).toEqual(['Warning FailedScheduling: no room']);
  });

  it('keeps the time of a transition that is none', async () => {
    const before: Pod = { ...pod, status: { conditions: [{ ...condition, message: 'less room' }] } };
    const { actions, bodies } = scripted([200, pod]);
    await actions.mark(podInfoOf(before), mark, signal);
    expect(bodies[0]?.status).toEqual({ conditions: [condition] });
  });

  it('writes nothing that is there already', async () => {
    const before: Pod = { ...pod, status: { conditions: [condition], nominatedNodeName: 'n' } };
    const { actions, requests, events } = scripted();
    await actions.mark(podInfoOf(before), { ...mark, nominatedNode: 'n' }, signal);
    expect(requests).toEqual([]);
    expect(events.length).toBe(1);
  });

  it('looks again where the pod was changed meanwhile', async () => {
    const newer = { ...pod, metadata: { ...pod.metadata, resourceVersion: '8' } };
    const { actions, bodies, left } = scripted(refusal(409, 'Conflict'), [200, newer], [200, newer]);
    expect(await actions.mark(info, mark, signal)).toBe(true);
    expect(bodies[2]?.metadata).toEqual({ uid: 'u', resourceVersion: '8' });
    expect(left()).toBe(0);
  });

  it.each([
    ['bound', bound('n')],
    ['gone', refusal(404, 'NotFound')],
  ])('leaves a pod alone that is %s meanwhile', async (_, answer) => {
    const { actions, requests } = scripted(refusal(409, 'Conflict'), answer);
    expect(await actions.mark(info, mark, signal)).toBe(false);
    expect(requests.length).toBe(2);
  });

  it('cuts messages that no event could carry', async () => {
    const { actions, events, bodies } = scripted([200, pod]);
    const message = 'x'.repeat(2000);
    await actions.mark(info, { ...mark, message }, signal);
    expect(events[0]?.length).toBe('Warning FailedScheduling: '.length + 1024);
    expect(events[0]).toMatch(/x \.\.\.$/);
    expect(bodies[0]).toMatchObject({ status: { conditions: [{ message }] } });
  });

  it('clears a nomination', async () => {
    const { actions, bodies } = scripted([200, pod]);
    await actions.clearNomination(podInfoOf({ ...pod, status: { nominatedNodeName: 'n' } }), signal);
    expect(bodies[0]?.status).toEqual({ nominatedNodeName: null });
  });
});

describe('evicting', () => {
  const victim = podInfoOf(makePod('victim', {}, { uid: 'v', resourceVersion: '3' }));

  it('says why before it deletes, with the grace that the pod has', async () => {
    const { actions, requests, bodies, events } = scripted([200, pod], [200, pod]);
    expect(await actions.evict(victim, info, 'n', signal)).toBe(true);
    expect(requests).toEqual([
      'PATCH /api/v1/namespaces/default/pods/victim/status',
      'DELETE /api/v1/namespaces/default/pods/victim',
    ]);
    expect(bodies[0]).toMatchObject({
      status: {
        conditions: [
          {
            type: 'DisruptionTarget',
            status: 'True',
            reason: 'PreemptionByScheduler',
            message: 'default-scheduler: preempting to accommodate a higher priority pod',
          },
        ],
      },
    });
    expect(bodies[1]).toEqual({ apiVersion: 'v1', kind: 'DeleteOptions', preconditions: { uid: 'v' } });
    expect(events).toEqual(['Normal Preempted: Preempted by pod u on node n']);
  });

  it.each([
    ['before it is told', [refusal(404, 'NotFound')]],
    ['before it is deleted', [[200, pod], refusal(404, 'NotFound')]],
    ['and another has its name', [[200, pod], refusal(409, 'Conflict')]],
  ] satisfies [string, Answer[]][])('does nothing to a pod that is gone %s', async (_, answers) => {
    const { actions, events } = scripted(...(answers as Answer[]));
    expect(await actions.evict(victim, info, 'n', signal)).toBe(false);
    expect(events).toEqual([]);
  });

  it('leaves a pod alone that is on another node by now', async () => {
    const moved = makePod('victim', { nodeName: 'other' }, { uid: 'v', resourceVersion: '4' });
    const { actions, requests, events } = scripted(refusal(409, 'Conflict'), [200, moved]);
    expect(await actions.evict(victim, info, 'n', signal)).toBe(false);
    expect(requests.length).toBe(2);
    expect(events).toEqual([]);
  });
});
