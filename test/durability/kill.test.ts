import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { seededRandom } from '../../src/env/test.ts';
import type { Anything, WatchEvent } from '../support/api.ts';
import { type Running, startCli } from '../support/cli.ts';
import { ROOT_CERTIFICATE } from '../support/cluster.ts';
import { eventually } from '../support/eventually.ts';
import { type Access, Godwit } from '../support/godwit.ts';
import { HttpClient } from '../support/http-client.ts';
import { configMap, namespace } from '../support/objects.ts';
import { IS_FULL, SEED } from '../support/sample.ts';
import { Counter } from './counter.ts';
import { believe, Watcher } from './watcher.ts';
import { type Attempt, Writer } from './writer.ts';

/**
 * kill -9 under load, over and over, through TLS as clients see it: every acknowledged write is there, nothing is
 * there by half, and every watch that resumes sees every event once and in order.
 */

const ROUNDS = IS_FULL ? 60 : 4;
const FIRST_STARTS = IS_FULL ? 20 : 3;
const LOAD_MS_MAX = 1500;
const START_MS_MAX = 1200;
const random = seededRandom(SEED);

const PATH = '/api/v1/namespaces/load/configmaps';
const COUNTER = '/api/v1/namespaces/default/configmaps/counter';
const WRITERS = 12;
const COUNTERS = 3;

const sleep = (delayMs: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, delayMs));

let godwit: Godwit | undefined;
const clients: HttpClient[] = [];

afterEach(async () => {
  for (const client of clients.splice(0)) client.close();
  await godwit?.remove();
  godwit = undefined;
});

function connect(access: Access, token?: string): HttpClient {
  const { url, ca, certificate, key } = access;
  const client = new HttpClient(token === undefined ? { url, ca, certificate, key } : { url, ca, token });
  clients.push(client);
  return client;
}

/** A token of a service account that may look at namespaces. */
async function makeToken(client: HttpClient): Promise<string> {
  const accounts = '/api/v1/namespaces/default/serviceaccounts';
  (await client.request('POST', accounts, { body: { metadata: { name: 'looker' } } })).expect(201);
  const body = {
    metadata: { name: 'looker' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'view' },
    subjects: [{ kind: 'ServiceAccount', name: 'looker', namespace: 'default' }],
  };
  (await client.request('POST', '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', { body })).expect(201);
  return (await client.request('POST', `${accounts}/looker/token`, { body: { spec: {} } })).expect(201).json.status
    .token;
}

/** What the writers have written; one more is in every namespace. */
const byName = (items: Anything[]): Map<string, Anything> =>
  new Map(
    items
      .filter((item) => item.metadata.name !== ROOT_CERTIFICATE)
      .map((item) => [item.metadata.name, { apiVersion: 'v1', kind: 'ConfigMap', ...item }]),
  );

/** Starts again; sometimes is killed while starting, which must not matter either. */
async function restart(server: Godwit): Promise<void> {
  if (random.number() < 0.3) {
    const starting = server.start().catch(() => undefined);
    await sleep(random.number() * START_MS_MAX);
    await server.kill();
    await starting;
  }
  await server.start();
}

/** What the events say was written, in the words of the writers. */
function marksOf(events: readonly WatchEvent[]): Set<string> {
  return new Set(events.filter(({ type }) => type !== 'DELETED').map(({ object }) => object.data.mark));
}

const short = ({ type, object }: WatchEvent): string =>
  `${type} ${object.metadata.name} ${object.metadata.uid} ${object.metadata.resourceVersion} ${object.data.mark}`;

describe('kill -9', () => {
  it('under load loses nothing that was acknowledged, and no event', async () => {
    const server = await Godwit.start();
    godwit = server;
    const access = server.access();
    const admin = connect(access);
    (await admin.request('POST', '/api/v1/namespaces', { body: namespace('load') })).expect(201);
    await eventually(async () => (await admin.request('GET', `${PATH}/${ROOT_CERTIFICATE}`)).expect(200));
    (await admin.request('POST', COUNTER.replace('/counter', ''), { body: configMap('counter') })).expect(201);
    const token = await makeToken(admin);
    const { resourceVersion: revision } = (await admin.request('GET', PATH)).json.metadata;

    const writers = Array.from(
      { length: WRITERS },
      (_, index) =>
        new Writer({
          name: `writer-${index}`,
          path: PATH,
          client: connect(access),
          random: seededRandom(random.number() * 2 ** 32),
          objects: 4,
        }),
    );
    const counters = Array.from(
      { length: COUNTERS },
      (_, index) => new Counter({ name: `counter-${index}`, target: COUNTER, client: connect(access) }),
    );
    // Two that watch alike must see the same; one comes back every few seconds, from bookmarks; one sees a part only.
    const queries = [{}, {}, { timeoutSeconds: '3' }, { labelSelector: 'parity=1' }] as Record<string, string>[];
    const watchers = queries.map((query) => new Watcher({ client: connect(access), path: PATH, query, revision }));
    const watching = Promise.all(watchers.map((watcher) => watcher.run()));

    let newest = Number(revision);
    for (let round = 0; round < ROUNDS; round++) {
      const load = [...writers, ...counters].map((each) => each.run());
      await Promise.race([sleep(100 + random.number() * LOAD_MS_MAX), ...load]);
      await server.kill();
      await Promise.all(load);
      await restart(server);

      expect(server.access()).toEqual(access);
      const list = (await admin.request('GET', PATH)).expect(200).json;
      const { resourceVersion } = list.metadata;
      // Whatever anybody has been told of is not in the future.
      const told = [
        newest,
        ...watchers.map((watcher) => watcher.revision),
        ...writers.flatMap(({ acknowledged }) => acknowledged.map((each) => each.revision)),
      ];
      expect(Number(resourceVersion)).toBeGreaterThanOrEqual(Math.max(...told));
      newest = Number(resourceVersion);
      const stored = byName(list.items);
      for (const writer of writers) writer.verify(stored);
      const counter = (await admin.request('GET', COUNTER)).expect(200).json;
      for (const each of counters) each.verify(counter);
      expect((await connect(access, token).request('GET', '/api/v1/namespaces/load')).status).toBe(200);
    }

    await Promise.race([watching, eventually(() => expect(watchers[2]?.bookmarks).toBeGreaterThan(0))]);
    // A last write that every watcher sees tells that it has seen all before.
    const last = {
      metadata: { name: 'last', labels: { parity: '1' } },
      data: { mark: 'last', payload: '', sum: 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855' },
    };
    (await admin.request('POST', PATH, { body: last })).expect(201);
    await Promise.race([
      watching,
      eventually(() => {
        for (const { events } of watchers) expect(events.at(-1)?.object.metadata.name).toBe('last');
      }),
    ]);
    for (const watcher of watchers) watcher.stop();
    await watching;

    const [all, same, bookmarked, part] = watchers.map(({ events }) => events);
    expect(same?.map(short)).toEqual(all?.map(short));
    expect(bookmarked?.map(short)).toEqual(all?.map(short));
    for (const watcher of watchers) expect(watcher.resumed).toBeGreaterThan(1);

    const { items } = (await admin.request('GET', PATH)).json;
    expect(believe(all ?? [])).toEqual(byName(items));
    const odd = items.filter((item: Anything) => item.metadata.labels?.parity === '1');
    expect([...believe(part ?? []).keys()].sort()).toEqual([...byName(odd).keys()].sort());

    checkAgainstWriters(all ?? [], writers);
  }, 600_000);

  /** Every acknowledged write is among the events as it was answered, and every event is of a write that somebody made. */
  function checkAgainstWriters(events: readonly WatchEvent[], writers: readonly Writer[]): void {
    const acknowledged = writers.flatMap((writer) => writer.acknowledged);
    const discovered = writers.flatMap((writer) => writer.discovered);
    const byRevision = new Map(events.map((event) => [Number(event.object.metadata.resourceVersion), event]));
    for (const { kind, revision, object } of acknowledged) {
      if (kind === 'delete') continue;
      const event = byRevision.get(revision);
      expect([event?.type, event?.object]).toEqual([kind === 'create' ? 'ADDED' : 'MODIFIED', object]);
    }
    const isDeletion = ({ kind }: Attempt): boolean => kind === 'delete';
    const deletions = acknowledged.filter(isDeletion).length + discovered.filter(isDeletion).length;
    expect(events.filter(({ type }) => type === 'DELETED')).toHaveLength(deletions);
    const written = [...acknowledged, ...discovered].filter((each) => !isDeletion(each)).map(({ mark }) => mark);
    expect([...marksOf(events)].sort()).toEqual([...written, 'last'].sort());
    expect(acknowledged.length).toBeGreaterThan(ROUNDS);
  }
});

describe('kill -9 during the very first start', () => {
  it('leaves a directory that the next start completes', async () => {
    for (let round = 0; round < FIRST_STARTS; round++) {
      const directory = mkdtempSync(join(tmpdir(), 'godwit-test-'));
      const start = (): Running => startCli(['up', '--nodes', '0', '--data-dir', directory, '--listen', '127.0.0.1:0']);
      try {
        const first = start();
        await sleep(random.number() * 2 * START_MS_MAX);
        first.child.kill('SIGKILL');
        await first.finished;
        const second = start();
        await second.printed('kubectl get namespaces');
        second.child.kill('SIGTERM');
        expect((await second.finished).code).toBe(0);
      } finally {
        rmSync(directory, { recursive: true, force: true });
      }
    }
  }, 300_000);
});
