import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../../../test/support/eventually.ts';
import { InProcessApi } from '../../../test/support/in-process.ts';
import { customResourceDefinitionOf } from './custom-kind.ts';
import type { RightToRun, Runner } from './right-to-run.ts';
import { type RightTransition, rightTransition } from './right-to-run-transition.ts';
import { virtualMachineInstance } from './virtual-machine-instance.ts';

/** Every record of a small world, and every change from one to another: our code and the API server must agree. */

const GUESTS = '/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances';
const EPOCH = 4;
const runner = (node: string): Runner => ({ node, nodeUID: `uid-${node}`, podUID: `pod-${node}` });
const A = runner('a');
const B = runner('b');
const C = runner('c');
/** The same node and pod, registered anew. */
const AGAIN: Runner = { ...A, nodeUID: 'uid-again' };

function record(epoch: number, holder?: Runner, successor?: Runner): RightToRun {
  return { epoch, ...(holder ? { holder } : {}), ...(successor ? { successor } : {}) };
}

const across = (to: RightToRun): RightToRun => ({ ...to, across: true });

const FROM = [
  record(EPOCH),
  record(EPOCH, A),
  record(EPOCH, A, B),
  record(EPOCH, A, AGAIN),
  record(EPOCH, B),
  record(EPOCH, B, A),
  across(record(EPOCH, A, B)),
  across(record(EPOCH, B)),
];
const TO = [EPOCH - 1, EPOCH, EPOCH + 1, EPOCH + 2]
  .flatMap((epoch) =>
    [undefined, A, B, AGAIN].flatMap((holder) =>
      [undefined, A, B, C, AGAIN].map((successor) => record(epoch, holder, successor)),
    ),
  )
  .flatMap((to) => [to, across(to)]);

let api: InProcessApi;
beforeAll(async () => {
  api = await InProcessApi.start();
  const body = customResourceDefinitionOf(virtualMachineInstance);
  (await api.request('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', { body })).expect(201);
  await eventually(async () => void (await api.request('GET', GUESTS)).expect(200));
});
afterAll(() => api.stop());

const merge = { 'content-type': 'application/merge-patch+json' };

async function makeGuest(name: string, rightToRun: RightToRun): Promise<void> {
  const body = {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { name },
    spec: { domain: { devices: {} } },
  };
  (await api.request('POST', GUESTS, { body })).expect(201);
  (await api.request('PATCH', `${GUESTS}/${name}/status`, { body: { status: { rightToRun } }, headers: merge })).expect(
    200,
  );
}

describe('the right to run', () => {
  it.each(FROM.map((from, index) => [index, from] as const))(
    'changes from %s, %j, only along transitions',
    async (index, from) => {
      const name = `guest-${index}`;
      await makeGuest(name, from);
      const seen = new Set<RightTransition>();
      for (const to of TO) {
        const body = { status: { rightToRun: { holder: null, successor: null, across: null, ...to } } };
        const { status } = await api.request('PATCH', `${GUESTS}/${name}/status?dryRun=All`, { body, headers: merge });
        const transition = rightTransition(from, to);
        if (transition) seen.add(transition);
        expect([to, status]).toEqual([to, transition ? 200 : 422]);
      }
      expect(seen.size).toBeGreaterThan(1);
    },
  );
  it.each<[RightTransition | undefined, from: RightToRun | undefined, to: RightToRun]>([
    ['start', undefined, record(1, A)],
    ['start', undefined, record(9, A)],
    [undefined, undefined, record(1)],
    [undefined, undefined, record(1, A, B)],
    ['start', record(EPOCH), record(EPOCH + 1, A)],
    ['reserve', record(EPOCH, A), record(EPOCH, A, B)],
    ['abort', record(EPOCH, A, B), record(EPOCH, A)],
    ['take', record(EPOCH, A, B), record(EPOCH + 1, B)],
    ['refuse', record(EPOCH, A, B), record(EPOCH + 1, A)],
    ['seize', record(EPOCH, A, B), record(EPOCH + 1)],
    ['raise', record(EPOCH, A), record(EPOCH + 7, A)],
    ['raise', record(EPOCH, A), record(EPOCH + 1, A)],
    ['keep', record(EPOCH, A, B), record(EPOCH, A, B)],
    [undefined, record(EPOCH, A), record(EPOCH + 1, AGAIN)],
    [undefined, record(EPOCH, A), record(EPOCH, A, A)],
    [undefined, record(EPOCH, A, B), record(EPOCH, A, C)],
    ['reserve', record(EPOCH, A), across(record(EPOCH, A, B))],
    ['abort', across(record(EPOCH, A, B)), record(EPOCH, A)],
    ['refuse', across(record(EPOCH, A, B)), record(EPOCH + 1, A)],
    ['give', across(record(EPOCH, A, B)), across(record(EPOCH + 1, B))],
    ['give', undefined, across(record(5, B))],
    ['give', record(EPOCH), across(record(EPOCH + 1, B))],
    ['seize', across(record(EPOCH, B)), record(EPOCH + 1)],
    ['raise', across(record(EPOCH, B)), across(record(EPOCH + 3, B))],
    [undefined, across(record(EPOCH, A, B)), record(EPOCH + 1, B)],
    [undefined, record(EPOCH, A, B), across(record(EPOCH + 1, B))],
    [undefined, across(record(EPOCH, B)), record(EPOCH + 1, B)],
    [undefined, across(record(EPOCH, B)), across(record(EPOCH, B, A))],
    [undefined, across(record(EPOCH, A, B)), record(EPOCH, A, B)],
    [undefined, record(EPOCH, A), across(record(EPOCH + 1, A))],
    [undefined, record(EPOCH), across(record(EPOCH + 1))],
  ])('knows %s', (transition, from, to) => {
    expect(rightTransition(from, to)).toBe(transition);
  });
});
