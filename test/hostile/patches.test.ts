import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  APPLY_PATCH,
  bad,
  GADGETS,
  invalid,
  JSON_PATCH,
  JSON_TYPE,
  MERGE_PATCH,
  type Refusal,
  ROOT,
  STRATEGIC_PATCH,
  VICTIM,
  Victim,
} from './victim.ts';

/** Changes that cannot be made: each is refused, and nothing else happens. */

let victim: Victim;
beforeAll(async () => {
  victim = await Victim.start();
});
afterAll(() => victim.close());

describe('patches that do not apply, or explode', () => {
  const copies = (count: number, path: string): object[] =>
    Array.from({ length: count }, () => ({ op: 'copy', from: '/data', path }));
  const doubling = [
    { op: 'add', path: '/spec/any', value: { a: 'x'.repeat(1000) } },
    ...Array.from({ length: 30 }, (_, index) => ({ op: 'copy', from: '/spec/any', path: `/spec/any/b${index}` })),
  ];
  const deepening = [
    { op: 'add', path: '/spec/any', value: {} },
    ...Array.from({ length: 2000 }, () => [
      { op: 'move', from: '/spec/any', path: '/spec/tmp' },
      { op: 'add', path: '/spec/any', value: {} },
      { op: 'move', from: '/spec/tmp', path: '/spec/any/a' },
    ]).flat(),
  ];
  /** As much as kube-apiserver tells. */
  const rejected = invalid('the server rejected our request due to an error in our request');

  it.each<[string, string, unknown, Refusal]>([
    ['an object', VICTIM, {}, bad(/error decoding patch|cannot unmarshal object/)],
    ['a list of numbers', VICTIM, [1], bad(/error decoding patch|cannot unmarshal number/)],
    ['an operation without a path', VICTIM, [{ op: 'add' }], rejected],
    ['an operation that is none', VICTIM, [{ op: 'explode', path: '/a' }], rejected],
    ['a test that fails', VICTIM, [{ op: 'test', path: '/data/key', value: 'other' }], rejected],
    ['removal of what is not there', VICTIM, [{ op: 'remove', path: '/data/absent' }], rejected],
    ['a path through text', VICTIM, [{ op: 'add', path: '/data/key/deeper', value: 1 }], rejected],
    ['an index beyond the list', `${ROOT}/pods/pod`, [{ op: 'remove', path: '/spec/containers/7' }], rejected],
    ['an index that is no number', `${ROOT}/pods/pod`, [{ op: 'remove', path: '/spec/containers/x' }], rejected],
    [
      'another kind',
      VICTIM,
      [{ op: 'replace', path: '/kind', value: 'Pod' }],
      bad(/cannot be handled as a ConfigMap|does not match/),
    ],
    ['another name', VICTIM, [{ op: 'replace', path: '/metadata/name', value: 'other' }], bad(/other/)],
    ['the whole document by text', VICTIM, [{ op: 'replace', path: '', value: 'x' }], rejected],
    ['a prototype', VICTIM, [{ op: 'add', path: '/__proto__/polluted', value: 1 }], rejected],
    ['labels by a list', VICTIM, [{ op: 'replace', path: '/metadata/labels', value: [] }], invalid(/labels/)],
    [
      '10 001 operations',
      VICTIM,
      Array.from({ length: 10_001 }, () => ({ op: 'test', path: '/kind', value: 'ConfigMap' })),
      {
        status: 413,
        reason: 'RequestEntityTooLarge',
        message: /allowed maximum operations in a JSON patch is 10000, got 10001/,
      },
    ],
    ['copies that double each time', `${GADGETS}/gadget`, doubling, rejected],
    ['moves that nest ever deeper', `${GADGETS}/gadget`, deepening, rejected],
    ['copies into the copied', VICTIM, copies(3, '/data/key2'), invalid(/of type string/)],
  ])('JSON patch: %s', (_name, path, patch, expected) => victim.refuses('PATCH', path, patch, JSON_PATCH, expected));

  it.each<[string, string, unknown, string, Refusal]>([
    ['a list', VICTIM, [], MERGE_PATCH, bad(/./)],
    ['null', VICTIM, 'null', MERGE_PATCH, bad(/./)],
    ['a number', VICTIM, '5', STRATEGIC_PATCH, bad(/./)],
    ['labels by text', VICTIM, { metadata: { labels: 'x' } }, STRATEGIC_PATCH, invalid(/labels/)],
    ['an unknown directive', VICTIM, { $patch: 'explode' }, STRATEGIC_PATCH, bad(/unknown patch type|explode/i)],
    ['a directive of the wrong type', VICTIM, { $patch: {} }, STRATEGIC_PATCH, bad(/unknown patch type/i)],
    ['retained keys that are no list', VICTIM, { data: { $retainKeys: 5 } }, STRATEGIC_PATCH, bad(/retainKeys/)],
    [
      'an order that is no list',
      `${ROOT}/pods/pod`,
      { spec: { '$setElementOrder/containers': 'x' } },
      STRATEGIC_PATCH,
      bad(/setElementOrder/),
    ],
    [
      'an order of items without keys',
      `${ROOT}/pods/pod`,
      { spec: { '$setElementOrder/containers': [{}], containers: [{ name: 'main', image: 'x' }] } },
      STRATEGIC_PATCH,
      bad(/merge key/),
    ],
    [
      'a list item without its key',
      `${ROOT}/pods/pod`,
      { spec: { containers: [{ image: 'x' }] } },
      STRATEGIC_PATCH,
      bad(/does not contain declared merge key: name/),
    ],
    ['a list of lists', `${ROOT}/pods/pod`, { spec: { containers: [[]] } }, STRATEGIC_PATCH, invalid(/./)],
    ['everything deleted', VICTIM, { $patch: 'delete' }, STRATEGIC_PATCH, bad(/name must be provided/)],
    ['all metadata deleted', VICTIM, { metadata: null }, MERGE_PATCH, bad(/name must be provided/)],
    [
      'all metadata replaced',
      VICTIM,
      { metadata: { $patch: 'replace' } },
      STRATEGIC_PATCH,
      bad(/name must be provided/),
    ],
  ])('merge patches: %s', (_name, path, patch, contentType, expected) =>
    victim.refuses('PATCH', path, patch, contentType, expected),
  );
});

describe('objects that cannot be applied', () => {
  const apply = `${VICTIM}?fieldManager=me`;
  it.each<[string, string, unknown, Refusal]>([
    ['nothing', apply, '', bad(/./)],
    ['a list', apply, '[]', bad(/./)],
    ['without a manager', VICTIM, { apiVersion: 'v1', kind: 'ConfigMap' }, invalid(/fieldManager: Required value/)],
    [
      'with managed fields of its own',
      apply,
      { apiVersion: 'v1', kind: 'ConfigMap', metadata: { managedFields: [{ manager: 'x' }] } },
      bad(/managedFields must be nil/),
    ],
    ['with another name', apply, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'other' } }, bad(/other/)],
    [
      'with two items of one key',
      `${GADGETS}/gadget?fieldManager=me`,
      { apiVersion: 'wild.example.com/v1', kind: 'Gadget', spec: { list: [{ key: 'a' }, { key: 'a' }] } },
      bad(/duplicate entries for key/),
    ],
    [
      'with an item without its key',
      `${GADGETS}/gadget?fieldManager=me`,
      { apiVersion: 'wild.example.com/v1', kind: 'Gadget', spec: { list: [{ value: 'a' }] } },
      bad(/key/),
    ],
    [
      'against another manager',
      apply,
      { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'victim' }, data: { key: 'mine' } },
      { status: 409, reason: 'Conflict', message: 'Apply failed with 1 conflict' },
    ],
  ])('%s', (_name, path, body, expected) => victim.refuses('PATCH', path, body, APPLY_PATCH, expected));
});

describe('delete options that are none', () => {
  it.each<[string, unknown, RegExp]>([
    ['a list', [], /./],
    ['of another kind', { kind: 'ConfigMap' }, /DeleteOptions/],
    ['a dry run that is text', { dryRun: 'All' }, /dryRun/],
    ['a dry run of nonsense', { dryRun: ['Some'] }, /dryRun/],
    ['preconditions that are text', { preconditions: 'x' }, /preconditions/],
    ['a precondition that is a number', { preconditions: { uid: 1 } }, /preconditions\.uid/],
    ['a grace period that is text', { gracePeriodSeconds: '1' }, /gracePeriodSeconds/],
    ['a grace period that is a fraction', { gracePeriodSeconds: 1.5 }, /gracePeriodSeconds/],
    ['a policy of nonsense', { propagationPolicy: 'Nuke' }, /propagationPolicy/],
    ['a policy that is an object', { propagationPolicy: {} }, /propagationPolicy/],
    ['two policies', { propagationPolicy: 'Orphan', orphanDependents: true }, /orphanDependents/],
  ])('%s', async (_name, body, message) => {
    for (const path of [VICTIM, `${ROOT}/configmaps`]) {
      const answer = await victim.cluster.api.request('DELETE', path, { body });
      expect([400, 422]).toContain(answer.status);
      expect(answer.json).toMatchObject({ kind: 'Status', status: 'Failure' });
      expect(answer.json.message).toMatch(message);
    }
    await victim.isUnchanged();
  });
  it('of an object that has changed meanwhile', () =>
    victim.refuses('DELETE', VICTIM, { preconditions: { resourceVersion: '1' } }, JSON_TYPE, {
      status: 409,
      reason: 'Conflict',
      message: 'the ResourceVersion in the precondition',
    }));
});
