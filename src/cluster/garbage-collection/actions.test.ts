import { beforeEach, describe, expect, it } from 'vitest';
import type { ObjectMeta, OwnerReference } from '../../api/meta.ts';
import { Client } from '../../kube/client.ts';
import { failure, type ScriptedAnswer, ScriptedTransport } from '../../kube/scripted-transport.fixture.ts';
import { Actions, type Item } from './actions.ts';

const { signal } = new AbortController();
const ITEM: Item = {
  resource: { group: '', version: 'v1', plural: 'things', kind: 'Thing', namespaced: true },
  metadata: { name: 't', namespace: 'room', uid: 'u' },
};
const REFERENCE: OwnerReference = { apiVersion: 'v1', kind: 'Owner', name: 'o', uid: 'o' };
const SEEN: ObjectMeta = { ...ITEM.metadata, resourceVersion: '1', ownerReferences: [REFERENCE] };
const CONFLICT = failure(409, 'Conflict');
const MISSING = failure(404, 'NotFound', { name: 't' });
const is = (metadata: ObjectMeta): ScriptedAnswer => ({ body: { metadata } });

let transport: ScriptedTransport;
let answers: ScriptedAnswer[];
let actions: Actions;

beforeEach(() => {
  answers = [];
  transport = new ScriptedTransport(() => answers.shift() ?? failure(500, 'InternalError'));
  actions = new Actions(new Client(transport, 'test'));
});

/** What was asked, with the body of writes. */
const asked = (): unknown[] =>
  transport.requests.map(({ method, body }) => (body === undefined ? method : [method, JSON.parse(body)]));
const deletion = (resourceVersion: string) => [
  'DELETE',
  {
    apiVersion: 'v1',
    kind: 'DeleteOptions',
    propagationPolicy: 'Background',
    preconditions: { uid: 'u', resourceVersion },
  },
];

describe('reading', () => {
  it('finds that very object, or none', async () => {
    answers = [is(SEEN), is({ ...SEEN, uid: 'other' }), MISSING, failure(404, 'NotFound')];
    expect(await actions.read(ITEM, signal)).toEqual(SEEN);
    expect(await actions.read(ITEM, signal)).toBeUndefined();
    expect(await actions.read(ITEM, signal)).toBeUndefined();
    await expect(actions.read(ITEM, signal)).rejects.toMatchObject({ code: 404 });
  });
});

describe('deleting', () => {
  const act = () => actions.delete(ITEM, SEEN, 'Background', signal);

  it('means the very state that was looked at', async () => {
    answers = [{ body: {} }];
    await act();
    expect(asked()).toEqual([deletion('1')]);
  });

  it('is done when it is gone', async () => {
    answers = [MISSING, CONFLICT, MISSING, CONFLICT, is({ ...SEEN, uid: 'other' })];
    await act();
    await act();
    await act();
    expect(answers).toEqual([]);
  });

  it('does not mind changes that leave its owners alone', async () => {
    answers = [CONFLICT, is({ ...SEEN, resourceVersion: '2' }), { body: {} }];
    await act();
    expect(asked()).toEqual([deletion('1'), 'GET', deletion('2')]);
  });

  it.each<[string, ObjectMeta]>([
    ['has another owner', { ...SEEN, ownerReferences: [REFERENCE, { ...REFERENCE, uid: 'p' }] }],
    ['has none any more', { ...SEEN, ownerReferences: [] }],
    ['is on its way out', { ...SEEN, deletionTimestamp: 'now' }],
  ])('is thought over when it %s', async (_what, now) => {
    answers = [CONFLICT, is({ ...now, resourceVersion: '2' }), { body: {} }];
    await expect(act()).rejects.toMatchObject({ code: 409 });
    expect(asked()).toHaveLength(2);
  });

  it('is given up for now when it changes all the time', async () => {
    transport.script = ({ method }) => (method === 'GET' ? is(SEEN) : CONFLICT);
    await expect(act()).rejects.toMatchObject({ code: 409 });
    expect(transport.requests).toHaveLength(9);
  });
});

describe('references', () => {
  const patch = (...last: object[]) => [
    [
      'PATCH',
      [
        { op: 'test', path: '/metadata/uid', value: 'u' },
        { op: 'test', path: '/metadata/ownerReferences', value: [REFERENCE] },
        ...last,
      ],
    ],
  ];

  it('are replaced if they are those that were seen', async () => {
    const other = { ...REFERENCE, uid: 'p' };
    answers = [is({ ...SEEN, resourceVersion: '5' })];
    expect(await actions.setReferences(ITEM, SEEN, [other], signal)).toMatchObject({ resourceVersion: '5' });
    expect(asked()).toEqual(patch({ op: 'replace', path: '/metadata/ownerReferences', value: [other] }));
  });

  it('are removed with the last one, of whatever is there', async () => {
    answers = [MISSING, failure(422, 'Invalid')];
    expect(await actions.setReferences(ITEM, SEEN, [], signal)).toBeUndefined();
    expect(asked()).toEqual(patch({ op: 'remove', path: '/metadata/ownerReferences' }));
    await expect(actions.setReferences(ITEM, SEEN, [], signal)).rejects.toMatchObject({ code: 422 });
  });
});

describe('a finalizer', () => {
  const ending = (...finalizers: string[]) => is({ ...SEEN, deletionTimestamp: 'now', finalizers });
  const act = () => actions.removeFinalizer(ITEM, 'orphan', signal);

  it('is taken away, and the others left', async () => {
    answers = [ending('a', 'orphan'), is(SEEN)];
    await act();
    expect(asked()[1]).toEqual([
      'PATCH',
      [
        { op: 'test', path: '/metadata/uid', value: 'u' },
        { op: 'test', path: '/metadata/finalizers', value: ['a', 'orphan'] },
        { op: 'replace', path: '/metadata/finalizers', value: ['a'] },
      ],
    ]);
  });

  it('is tried again when somebody else changes them', async () => {
    answers = [ending('a', 'orphan'), failure(422, 'Invalid'), ending('orphan'), is(SEEN)];
    await act();
    expect(asked()).toHaveLength(4);
  });

  it.each<[string, ScriptedAnswer]>([
    ['of what is gone', MISSING],
    ['of another object', is({ ...SEEN, uid: 'other' })],
    ['that is gone', ending('a')],
    ['of what is not being deleted', is({ ...SEEN, finalizers: ['orphan'] })],
  ])('%s needs nothing', async (_what, answer) => {
    answers = [answer];
    await act();
    expect(asked()).toEqual(['GET']);
  });
});
