import { beforeEach, describe, expect, it } from 'vitest';
import type { OwnerReference } from '../../api/meta.ts';
import type { Resource } from '../../kube/resource.ts';
import { type NodeMetadata, OwnerGraph } from './graph.ts';

const resource = (plural: string, kind: string, namespaced = true): Resource => ({
  group: '',
  version: 'v1',
  plural,
  kind,
  namespaced,
});
const OWNERS = resource('owners', 'Owner');
const NODES = resource('nodes', 'Node', false);
const THINGS = resource('things', 'Thing');

const to = (uid: string, more: Partial<OwnerReference> = {}): OwnerReference => ({
  apiVersion: 'v1',
  kind: 'Owner',
  name: uid,
  uid,
  ...more,
});
const object = (uid: string, ownerReferences: OwnerReference[] = [], more: NodeMetadata = {}): NodeMetadata => ({
  name: uid,
  namespace: 'room',
  uid,
  ownerReferences,
  ...more,
});
const ending = (finalizer: string): NodeMetadata => ({ deletionTimestamp: 'now', finalizers: [finalizer] });

let graph: OwnerGraph;
let noticed: string[];

beforeEach(() => {
  noticed = [];
  graph = new OwnerGraph({
    check: (uid) => noticed.push(uid),
    onInvalidNamespace: ({ metadata }, { uid }) => noticed.push(`${metadata.uid} is not in the room of ${uid}`),
  });
});

/** What was noticed since it was last asked for, each once. */
function news(): string[] {
  return [...new Set(noticed.splice(0))];
}

const doubts = (uid: string): boolean | undefined => {
  const node = graph.get(uid);
  return node && graph.isInDoubt(node);
};

describe('owners that are seen', () => {
  it('raise no question, whoever comes first', () => {
    graph.observe(OWNERS, object('o'));
    graph.observe(THINGS, object('a', [to('o')]));
    expect(news()).toEqual([]);
    graph.observe(THINGS, object('b', [to('p')]));
    expect(news()).toEqual(['p']);
    graph.observe(OWNERS, object('p'));
    expect(news()).toEqual([]);
    expect(['a', 'b'].map(doubts)).toEqual([false, false]);
  });

  it('may have no namespace', () => {
    graph.observe(NODES, { name: 'n', uid: 'n' });
    graph.observe(THINGS, object('a', [to('n', { kind: 'Node' })]));
    expect([news(), doubts('a')]).toEqual([[], false]);
  });

  it.each<[string, Partial<OwnerReference>]>([
    ['name', { name: 'x' }],
    ['kind', { kind: 'X' }],
    ['version', { apiVersion: 'v2' }],
  ])('are not where a reference says that has another %s', (_what, more) => {
    graph.observe(OWNERS, object('o'));
    graph.observe(THINGS, object('before', [to('o', more)]));
    expect([news(), doubts('before')]).toEqual([['before'], true]);
    graph.observe(THINGS, object('after', [to('p', more)]));
    expect(news()).toEqual(['p']);
    graph.observe(OWNERS, object('p'));
    expect(news()).toEqual(['after']);
  });

  it('do not count in another namespace', () => {
    graph.observe(OWNERS, object('o', [], { namespace: 'elsewhere' }));
    graph.observe(THINGS, object('a', [to('o')]));
    expect(news()).toEqual(['a is not in the room of o', 'a']);
    graph.observe(THINGS, object('b', [to('p')]));
    graph.observe(OWNERS, object('p', [], { namespace: 'elsewhere' }));
    expect(news()).toEqual(['p', 'b is not in the room of p', 'b']);
    expect(doubts('b')).toBe(true);
  });
});

describe('owners that are not seen', () => {
  it('are asked for once, however many speak of them', () => {
    for (const uid of ['a', 'b', 'c']) graph.observe(THINGS, object(uid, [to('o')]));
    expect(news()).toEqual(['o']);
  });

  it('are not where others say', () => {
    graph.observe(THINGS, object('a', [to('o')]));
    graph.observe(THINGS, object('b', [to('o', { name: 'other' })]));
    graph.observe(THINGS, object('c', [to('o')], { namespace: 'elsewhere' }));
    expect(news()).toEqual(['o', 'b', 'c']);
  });

  it('are told of to all dependents when there are none, and to those who come later', () => {
    graph.observe(THINGS, object('a', [to('o')]));
    graph.observe(THINGS, object('b', [to('o')]));
    news();
    graph.settle(graph.get('o')!, true);
    expect(news()).toEqual(['a', 'b']);
    graph.observe(THINGS, object('c', [to('o')]));
    expect(news()).toEqual(['c']);
  });

  it('are forgotten with their last dependent', () => {
    graph.observe(THINGS, object('a', [to('o')]));
    graph.observe(THINGS, object('b', [to('o')]));
    graph.observe(THINGS, object('a'));
    graph.remove(THINGS, object('b'), 'deleted');
    expect(graph.get('o')).toBeUndefined();
    expect(graph.size).toBe(1);
  });
});

describe('an owner that goes', () => {
  it('is asked for before its dependents are, and leaves nothing', () => {
    graph.observe(OWNERS, object('o'));
    graph.observe(THINGS, object('a', [to('o')]));
    graph.remove(OWNERS, object('o'), 'deleted');
    expect([news(), doubts('a')]).toEqual([['o'], true]);
    expect(graph.get('o')?.state).toMatchObject({ wasDeleted: true, presumed: { name: 'o', namespace: 'room' } });
    graph.settle(graph.get('o')!, true);
    expect(news()).toEqual(['a']);
    graph.remove(THINGS, object('a'), 'deleted');
    expect(graph.size).toBe(0);
  });

  it('is not gone when it only is not watched any more, and may come back', () => {
    graph.observe(OWNERS, object('o'));
    graph.observe(THINGS, object('a', [to('o')]));
    graph.remove(OWNERS, object('o'), 'unwatched');
    expect(graph.get('o')?.state).toMatchObject({ wasDeleted: false });
    graph.observe(OWNERS, object('o'));
    expect(doubts('a')).toBe(false);
    news();
    graph.remove(OWNERS, object('o'), 'deleted');
    expect(news()).toEqual(['o']);
  });

  it('has not gone from where it is not any more', () => {
    const newer = { ...OWNERS, version: 'v2' };
    graph.observe(OWNERS, object('o'));
    graph.observe(newer, object('o'));
    graph.remove(OWNERS, object('o'), 'unwatched');
    expect(graph.get('o')?.state).toMatchObject({ resource: newer });
  });
});

describe('an owner that waits for its dependents', () => {
  beforeEach(() => {
    graph.observe(OWNERS, object('o'));
    graph.observe(THINGS, object('blocking', [to('o', { blockOwnerDeletion: true })]));
    graph.observe(THINGS, object('other', [to('o')]));
    graph.observe(OWNERS, object('o', [], ending('foregroundDeletion')));
  });

  it('calls for all of them, once', () => {
    expect(news()).toEqual(['o', 'blocking', 'other']);
    expect(['blocking', 'other'].map(doubts)).toEqual([true, true]);
    graph.observe(OWNERS, object('o', [], { ...ending('foregroundDeletion'), name: 'o' }));
    expect(news()).toEqual([]);
  });

  it('calls for those who come late', () => {
    news();
    graph.observe(THINGS, object('late', [to('o')]));
    expect(news()).toEqual(['late']);
  });

  it.each<[string, () => void]>([
    ['goes', () => graph.remove(THINGS, object('blocking'), 'deleted')],
    ['finds another owner', () => graph.observe(THINGS, object('blocking', [to('p')]))],
    ['no longer blocks', () => graph.observe(THINGS, object('blocking', [to('o', { blockOwnerDeletion: false })]))],
  ])('is looked at when one of them %s', (_what, happen) => {
    expect(graph.get('o')?.blockers).toBe(1);
    news();
    happen();
    expect(news()).toContain('o');
    expect(graph.get('o')?.blockers).toBe(0);
  });

  it('is looked at once, however many there were', () => {
    for (let index = 0; index < 100; index++)
      graph.observe(THINGS, object(`t${index}`, [to('o', { blockOwnerDeletion: true })]));
    graph.remove(THINGS, object('blocking'), 'deleted');
    graph.remove(THINGS, object('other'), 'deleted');
    noticed.length = 0;
    for (let index = 0; index < 100; index++) graph.remove(THINGS, object(`t${index}`), 'deleted');
    expect(noticed).toEqual(['o']);
  });

  it('does not wait for itself', () => {
    const self = [to('self', { blockOwnerDeletion: true })];
    graph.observe(OWNERS, object('self', self, ending('foregroundDeletion')));
    expect(graph.get('self')?.blockers).toBe(0);
    graph.remove(OWNERS, object('self', self), 'deleted');
    expect(graph.get('self')).toBeUndefined();
  });
});

it('notices when dependents are to be let go', () => {
  graph.observe(OWNERS, object('o'));
  graph.observe(THINGS, object('a', [to('o')]));
  graph.observe(OWNERS, object('o', [], ending('orphan')));
  expect(news()).toEqual(['o']);
  graph.observe(OWNERS, object('o', [], { ...ending('orphan'), name: 'o' }));
  expect(news()).toEqual([]);
});

it('takes in what was going on before it began', () => {
  graph.observe(THINGS, object('a', [to('o')]));
  graph.observe(OWNERS, object('o', [], ending('foregroundDeletion')));
  expect(news()).toEqual(['o', 'a']);
});

it('keeps nothing of what has no UID, and bears two references to one owner', () => {
  graph.observe(THINGS, { name: 'x', namespace: 'room' });
  expect(graph.size).toBe(0);
  graph.observe(OWNERS, object('o'));
  graph.observe(THINGS, object('a', [to('o'), to('o', { name: 'wrong' })]));
  expect(news()).toEqual(['a']);
  graph.observe(THINGS, object('a', [to('o')]));
  expect(doubts('a')).toBe(false);
  graph.observe(THINGS, object('a'));
  expect(graph.get('o')?.dependents?.size).toBe(0);
});

it('costs no more for each of many dependents than for one', () => {
  graph.observe(OWNERS, object('o'));
  const references = Array.from({ length: 20_000 }, (_, index) => to(`o${index}`, { blockOwnerDeletion: true }));
  graph.observe(THINGS, object('many', references));
  graph.observe(THINGS, object('many', references.slice(1)));
  expect(graph.get('o1')?.blockers).toBe(1);
  for (let index = 0; index < 50_000; index++) graph.observe(THINGS, object(`t${index}`, [to('o')]));
  expect(graph.get('o')?.dependents?.size).toBe(50_000);
});
