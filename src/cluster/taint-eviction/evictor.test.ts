import { describe, expect, it } from 'vitest';
import { testEnv } from '../../env/test.ts';
import { Client } from '../../kube/client.ts';
import { failure, type ScriptedAnswer, ScriptedTransport } from '../../kube/scripted-transport.fixture.ts';
import { TransportError } from '../../kube/transport.ts';
import { makeNode, makePod } from '../../migration/fit/cluster.fixture.ts';
import type { Pod } from '../../migration/fit/objects.ts';
import { Evictor } from './evictor.ts';

const pod = (resourceVersion: string, more: Pick<Pod, 'status'> = {}): Pod => ({
  ...makePod('p', { nodeName: 'n' }, { uid: 'u', resourceVersion }),
  ...more,
});
const told = { conditions: [{ type: 'DisruptionTarget', status: 'True', reason: 'PreemptionByScheduler' }] };
const isTainted = { spec: { taints: [{ key: 'k', effect: 'NoExecute' }] } };
const node: ScriptedAnswer = { body: makeNode('n', isTainted) };
const status: ScriptedAnswer = { body: { kind: 'Status', status: 'Success' } };
const signal = new AbortController().signal;

/** Evicts a pod on a server that answers so; tells what was asked of it, and what was said about the pod. */
async function evict(...answers: (ScriptedAnswer | 'lost')[]) {
  const events: string[] = [];
  const transport = new ScriptedTransport(() => {
    const answer = answers.shift() ?? 'lost';
    if (answer === 'lost') throw new TransportError('lost');
    return answer;
  });
  const recorder = { event: (_: object, type: string, reason: string) => void events.push(`${type} ${reason}`) };
  const evictor = new Evictor({ env: testEnv(), client: new Client(transport, 'test'), recorder });
  const hasToGo = (_: Pod, on: { spec?: { taints?: readonly object[] } }): boolean => on.spec?.taints !== undefined;
  const outcome = await evictor.evict(pod('1'), hasToGo, signal).catch((error: Error) => error.message);
  const requests = transport.requests.map(
    ({ method, path }) => `${method} ${path.replace(/^.*\/(p|n)(?=[/?]|$)|\?.*/g, '$1')}`,
  );
  const bodies = transport.requests.filter(({ body }) => body).map(({ body }) => JSON.parse(body ?? ''));
  return { outcome, requests, bodies, events };
}

const WHOLE = ['GET p', 'GET n', 'PATCH p/status', 'DELETE p'];

describe('an eviction', () => {
  it('is written for the pod that was looked at', async () => {
    const { outcome, requests, bodies, events } = await evict({ body: pod('5') }, node, { body: pod('6') }, status);
    expect([outcome, requests, events]).toEqual([true, WHOLE, ['Normal TaintManagerEviction']]);
    expect(bodies).toMatchObject([
      { metadata: { uid: 'u', resourceVersion: '5' } },
      { preconditions: { uid: 'u', resourceVersion: '6' } },
    ]);
    expect(bodies[1].gracePeriodSeconds).toBeUndefined();
  });

  it('changes the reason of a disruption, and not since when there is one', async () => {
    const { bodies } = await evict({ body: pod('5', { status: told }) }, node, { body: pod('6') }, status);
    expect(bodies[0].status.conditions).toEqual([
      {
        type: 'DisruptionTarget',
        status: 'True',
        reason: 'DeletionByTaintManager',
        message: 'Taint manager: deleting due to NoExecute taint',
      },
    ]);
  });

  const goneFor = (name: string) => failure(404, 'NotFound', { name });
  const gone = goneFor('p');
  const conflict = failure(409, 'Conflict');
  it.each<[string, boolean | string, (ScriptedAnswer | 'lost')[], string[]]>([
    ['of one that is gone', true, [gone], ['GET p']],
    ['of another that has its name', true, [{ body: makePod('p', {}, { uid: 'x' }) }], ['GET p']],
    ['on a node that is gone', false, [{ body: pod('5') }, goneFor('n')], ['GET p', 'GET n']],
    ['of one that need not go any more', false, [{ body: pod('5') }, { body: makeNode('n') }], ['GET p', 'GET n']],
    ['of one that goes meanwhile', true, [{ body: pod('5') }, node, gone], WHOLE.slice(0, 3)],
    ['of one that goes when it is told', true, [{ body: pod('5') }, node, { body: pod('6') }, gone], WHOLE],
    [
      'of one that changes meanwhile',
      true,
      [{ body: pod('5') }, node, conflict, { body: pod('6') }, node, { body: pod('7') }, status],
      [...WHOLE.slice(0, 3), ...WHOLE],
    ],
    [
      'of one that becomes tolerant before it is deleted',
      false,
      [{ body: pod('5') }, node, { body: pod('6') }, conflict, { body: pod('7') }, { body: makeNode('n') }],
      [...WHOLE, 'GET p', 'GET n'],
    ],
    ['that nobody answers', 'lost', [{ body: pod('5') }, node, { body: pod('6') }, 'lost'], WHOLE],
    ['that is not allowed', '403', [{ body: pod('5') }, node, failure(403, 'Forbidden')], WHOLE.slice(0, 3)],
  ])('%s', async (_, outcome, answers, requests) => {
    const evicted = await evict(...answers);
    expect(evicted).toMatchObject({ outcome, requests });
    expect(evicted.events.length).toBe(requests.length > 2 ? 1 : 0);
  });
});
