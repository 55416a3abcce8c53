import { afterAll, beforeAll, expect, it } from 'vitest';
import { seededRandom } from '../../src/env/test.ts';
import type { Anything } from '../support/api.ts';
import { Godwit } from '../support/godwit.ts';
import { HttpClient } from '../support/http-client.ts';
import { Follower } from './follower.ts';
import { COLLECTION, Writer } from './writers.ts';

/** kill -9 of the whole server, again and again, under load: nothing acknowledged is lost, no watch misses or repeats. */

const seed = Number(process.env['GODWIT_TEST_SEED'] ?? 1);
const ROUNDS = process.env['GODWIT_TEST_FULL'] === '1' ? 40 : 8;
const WRITERS = 6;
const FOLLOWERS = 3;
const LAST = 'the-last-one';

let godwit: Godwit;
const clients: HttpClient[] = [];

beforeAll(async () => {
  godwit = await Godwit.start();
});
afterAll(async () => {
  for (const client of clients) client.close();
  await godwit?.remove();
});

function client(token?: string): HttpClient {
  const { url, ca, certificate, key } = godwit.access();
  const made = new HttpClient(token === undefined ? { url, ca, certificate, key } : { url, ca, token });
  clients.push(made);
  return made;
}

async function list(api: HttpClient): Promise<{ revision: number; objects: Map<string, Anything> }> {
  const { metadata, items } = (await api.request('GET', COLLECTION)).expect(200).json;
  return {
    revision: Number(metadata.resourceVersion),
    objects: new Map(items.map((item: Anything) => [item.metadata.name, item])),
  };
}

it('keeps every acknowledged write, and lets every watch resume without a gap', async () => {
  const random = seededRandom(seed);
  const { ca } = godwit.access();
  const admin = client();
  await admin.request('POST', '/api/v1/namespaces/default/serviceaccounts', {
    body: { metadata: { name: 'survivor' } },
  });
  const { status } = (
    await admin.request('POST', '/api/v1/namespaces/default/serviceaccounts/survivor/token', { body: { spec: {} } })
  ).expect(201).json;

  const writers = Array.from(
    { length: WRITERS },
    (_unused, index) => new Writer(index, client(), seededRandom(seed + index)),
  );
  const start = await list(admin);
  const followers = Array.from({ length: FOLLOWERS }, () => new Follower(client(), start.revision));
  const following = Promise.all(followers.map((follower) => follower.runUntil(LAST)));
  let { revision } = start;
  for (let round = 0; round < ROUNDS; round++) {
    const stop = new AbortController();
    const writing = Promise.all(writers.map((writer) => writer.run(stop.signal)));
    await new Promise((resolve) => setTimeout(resolve, 50 + random.number() * 700));
    await godwit.kill();
    stop.abort();
    await writing;
    await godwit.start();
    const after = await list(admin);
    for (const writer of writers) writer.check(after.objects);
    expect(after.revision).toBeGreaterThanOrEqual(revision);
    revision = after.revision;
  }
  expect(godwit.access().ca).toBe(ca);
  (await client(status.token).request('GET', '/version')).expect(200);

  (await admin.request('POST', COLLECTION, { body: { metadata: { name: LAST } } })).expect(201);
  await following;
  checkStreams(writers, followers, (await list(admin)).objects);
}, 600_000);

function checkStreams(
  writers: readonly Writer[],
  followers: readonly Follower[],
  objects: ReadonlyMap<string, Anything>,
): void {
  const [first, ...others] = followers.map(({ seen }) => seen);
  if (!first) throw new Error('nobody followed');
  for (const seen of others) expect(seen).toEqual(first);
  for (const [index, { revision }] of first.entries())
    if (index > 0) expect(revision).toBeGreaterThan(first[index - 1]?.revision ?? 0);
  // Every acknowledged write was told once; deletions are not told their revision, so they are counted.
  const byRevision = new Map(first.map((each) => [each.revision, each]));
  const acknowledged = writers.flatMap((writer) => writer.acknowledged);
  expect(acknowledged.length).toBeGreaterThan(ROUNDS);
  for (const { name, type, revision } of acknowledged) {
    if (revision !== undefined) expect(byRevision.get(revision)).toEqual({ name, type, revision });
  }
  const deletions = (events: readonly { readonly name: string; readonly type: string }[], name: string): number =>
    events.filter((each) => each.name === name && each.type === 'DELETED').length;
  for (const name of new Set(acknowledged.map((each) => each.name)))
    expect(deletions(first, name)).toBeGreaterThanOrEqual(deletions(acknowledged, name));
  const folded = new Map<string, number>();
  for (const { name, type, revision } of first) {
    if (type === 'DELETED') folded.delete(name);
    else folded.set(name, revision);
  }
  expect([...folded].sort()).toEqual(
    [...objects].map(([name, object]) => [name, Number(object.metadata.resourceVersion)]).sort(),
  );
}
