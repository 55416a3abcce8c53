import { beforeEach, describe, expect, it } from 'vitest';
import type { OwnerReference } from '../../api/meta.ts';
import { Client } from '../../kube/client.ts';
import type { Resource } from '../../kube/resource.ts';
import { failure, type ScriptedAnswer, ScriptedTransport } from '../../kube/scripted-transport.fixture.ts';
import { Owners, UnknownKindError } from './owners.ts';

const { signal } = new AbortController();
const OWNERS: Resource = { group: 'e.com', version: 'v1', plural: 'owners', kind: 'Owner', namespaced: true };
const RACKS: Resource = { group: '', version: 'v1', plural: 'racks', kind: 'Rack', namespaced: false };
const REFERENCE: OwnerReference = { apiVersion: 'e.com/v1', kind: 'Owner', name: 'o', uid: 'u' };
const MISSING = failure(404, 'NotFound', { name: 'o', kind: 'owners' });

let transport: ScriptedTransport;
let owners: Owners;
let answer: ScriptedAnswer;
let doubts: number;

beforeEach(() => {
  doubts = 0;
  answer = { body: { metadata: { name: 'o', uid: 'u' } } };
  transport = new ScriptedTransport(() => answer);
  const resourceOf = (apiVersion: string, kind: string): Resource | undefined =>
    apiVersion === 'e.com/v1' && kind === 'Owner' ? OWNERS : kind === 'Rack' ? RACKS : undefined;
  owners = new Owners({
    client: new Client(transport, 'test').metadataOnly(),
    kinds: { resourceOf, doubt: () => doubts++ },
  });
});

const judge = (more: Partial<OwnerReference> = {}, namespace = 'room', wasDeleted = false) =>
  owners.judge({ ...REFERENCE, ...more }, namespace, wasDeleted, signal);

describe('an owner', () => {
  it('is asked for where the reference says', async () => {
    expect(await judge()).toBe('solid');
    answer = { body: { metadata: { uid: 'n' } } };
    expect(await judge({ apiVersion: 'v1', kind: 'Rack', name: 'r', uid: 'n' })).toBe('solid');
    expect(await judge({ apiVersion: 'v1', kind: 'Rack', name: 'r', uid: 'n' }, '')).toBe('solid');
    expect(transport.paths).toEqual(['/apis/e.com/v1/namespaces/room/owners/o', '/api/v1/racks/r', '/api/v1/racks/r']);
    expect(transport.requests[0]?.headers['accept']).toContain('PartialObjectMetadata');
  });

  it('may wait for its dependents', async () => {
    const metadata = { uid: 'u', deletionTimestamp: 'now', finalizers: ['foregroundDeletion'] };
    answer = { body: { metadata } };
    expect(await judge()).toBe('waiting');
    answer = { body: { metadata: { ...metadata, finalizers: ['orphan'] } } };
    expect(await judge()).toBe('solid');
    answer = { body: { metadata: { ...metadata, deletionTimestamp: undefined } } };
    expect(await judge()).toBe('solid');
  });

  it.each<[string, ScriptedAnswer]>([
    ['there is none of that name', MISSING],
    ['another one has its name', { body: { metadata: { name: 'o', uid: 'other' } } }],
  ])('does not exist where %s, which is asked once', async (_why, given) => {
    answer = given;
    expect(await judge()).toBe('dangling');
    answer = { status: 500 };
    expect(await judge()).toBe('dangling');
    expect(transport.requests).toHaveLength(1);
    await expect(judge({}, 'elsewhere')).rejects.toMatchObject({ code: 500 });
    await expect(judge({ name: 'p' })).rejects.toMatchObject({ code: 500 });
    await expect(judge({ uid: 'v' })).rejects.toMatchObject({ code: 500 });
  });

  it.each<[string, ScriptedAnswer]>([
    ['may not be read', failure(403, 'Forbidden')],
    ['cannot be read', failure(500, 'InternalError')],
    ['has a server that is overloaded', failure(429, 'TooManyRequests')],
  ])('is not given up when it %s', async (_why, given) => {
    answer = given;
    await expect(judge({}, 'room', true)).rejects.toThrow();
  });

  it('is not given up because its kind is not served where it was', async () => {
    answer = failure(404, 'NotFound', {});
    await expect(judge()).rejects.toThrow(UnknownKindError);
    await expect(judge({ kind: 'Unknown' })).rejects.toThrow('nobody serves e.com/v1/Unknown');
    expect(() => owners.expectKnown({ ...REFERENCE, kind: 'Unknown' }, false)).toThrow(UnknownKindError);
    owners.expectKnown({ ...REFERENCE, kind: 'Unknown' }, true);
    owners.expectKnown(REFERENCE, false);
    expect(doubts).toBe(4);
    expect(transport.requests).toHaveLength(1);
  });

  it('whose end was seen is believed gone with its kind', async () => {
    expect(await judge({ kind: 'Unknown' }, 'room', true)).toBe('dangling');
    answer = failure(404, 'NotFound');
    expect(await judge({}, 'room', true)).toBe('dangling');
    answer = { body: { metadata: { uid: 'u' } } };
    expect(await judge({}, 'room', true)).toBe('solid');
  });

  it.each<[string, Partial<OwnerReference>, string]>([
    ['the dependent has no namespace to look in', {}, ''],
    ['no object has such a name', { name: '..' }, 'room'],
    ['a name is a path', { name: 'a/b' }, 'room'],
    ['a name is encoded', { name: 'a%2Fb' }, 'room'],
    ['there is no name', { name: '' }, 'room'],
  ])('can be nowhere where %s', async (_why, more, namespace) => {
    expect(await judge(more, namespace)).toBe('unresolvable');
    expect(transport.requests).toEqual([]);
  });
});
