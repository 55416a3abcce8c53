import * as fc from 'fast-check';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { ManualClock } from '../../src/env/test.ts';
import { type Api, type EventStream, type WatchEvent, withQuery } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { InProcessApi } from '../support/in-process.ts';
import { configMap, makeRoom } from '../support/objects.ts';
import { IS_FULL } from '../support/sample.ts';

/** Watches, as kube-apiserver's watch cache answers them. In process: the wire has its own tests. */

const TABLE = { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' };
const PARTIAL = { accept: 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io' };

let api: InProcessApi;
const open: EventStream[] = [];

beforeAll(async () => {
  api = await InProcessApi.start();
});
afterAll(() => api.stop());
afterEach(() => {
  for (const stream of open.splice(0)) stream.close();
});

let sequence = 0;

const room = (on: Api = api): Promise<string> => makeRoom(on);

async function watch(path: string, query: Record<string, string>, headers = {}, on: Api = api): Promise<EventStream> {
  const stream = await on.watch(withQuery(path, { watch: 'true', ...query }), { headers });
  open.push(stream);
  return stream;
}

async function create(path: string, name: string, labels: Record<string, string> = {}, on: Api = api): Promise<string> {
  const { json } = (await on.request('POST', path, { body: configMap(name, { labels }) })).expect(201);
  return json.metadata.resourceVersion as string;
}

async function relabel(path: string, name: string, labels: Record<string, string | null>): Promise<string> {
  const { json } = (
    await api.request('PATCH', `${path}/${name}`, {
      body: { metadata: { labels } },
      headers: { 'content-type': 'application/merge-patch+json' },
    })
  ).expect(200);
  return json.metadata.resourceVersion as string;
}

async function remove(path: string, name: string): Promise<void> {
  (await api.request('DELETE', `${path}/${name}`)).expect(200);
}

async function revision(path: string): Promise<string> {
  return (await api.request('GET', path)).json.metadata.resourceVersion as string;
}

const short = ({ type, object }: WatchEvent): string =>
  `${type} ${object.metadata.name}@${object.metadata.resourceVersion}`;

describe('where a watch begins', () => {
  it('without a resourceVersion, or with "0": at what there is, then what changes', async () => {
    const path = await room();
    const one = await create(path, 'one');
    for (const query of [{}, { resourceVersion: '0' }] as Record<string, string>[]) {
      const stream = await watch(path, query);
      expect((await stream.take(1)).map(short)).toEqual([`ADDED one@${one}`]);
      const two = await create(path, 'two');
      expect((await stream.take(1)).map(short)).toEqual([`ADDED two@${two}`]);
      await remove(path, 'two');
      expect((await stream.take(1))[0]?.type).toBe('DELETED');
    }
  });

  it('with a resourceVersion: right after it, every change once and in order', async () => {
    const path = await room();
    const before = await revision(path);
    const first = await create(path, 'a');
    const second = await relabel(path, 'a', { x: '1' });
    const stream = await watch(path, { resourceVersion: before });
    const third = await create(path, 'b');
    expect((await stream.take(3)).map(short)).toEqual([`ADDED a@${first}`, `MODIFIED a@${second}`, `ADDED b@${third}`]);
    const resumed = await watch(path, { resourceVersion: second });
    expect((await resumed.take(1)).map(short)).toEqual([`ADDED b@${third}`]);
  });

  it('streams the initial state and marks its end with an annotated bookmark', async () => {
    const path = await room();
    await create(path, 'one');
    await create(path, 'two');
    const query = { sendInitialEvents: 'true', resourceVersionMatch: 'NotOlderThan', allowWatchBookmarks: 'true' };
    for (const extra of [{}, { resourceVersion: await revision(path) }] as Record<string, string>[]) {
      const stream = await watch(path, { ...query, ...extra });
      const events = await stream.take(3);
      expect(events.map(({ type }) => type)).toEqual(['ADDED', 'ADDED', 'BOOKMARK']);
      expect(events[2]?.object).toEqual({
        kind: 'ConfigMap',
        apiVersion: 'v1',
        metadata: {
          resourceVersion: String(api.store.revision),
          annotations: { 'k8s.io/initial-events-end': 'true' },
        },
      });
    }
  });

  it('marks the end for legacy watches that take bookmarks too, and sends none to those that do not', async () => {
    const path = await room();
    await create(path, 'one');
    const marked = await watch(path, { allowWatchBookmarks: 'true' });
    expect((await marked.take(2)).map(({ type }) => type)).toEqual(['ADDED', 'BOOKMARK']);
    const unmarked = await watch(path, { sendInitialEvents: 'true', resourceVersionMatch: 'NotOlderThan' });
    await unmarked.take(1);
    await create(path, 'two');
    expect((await unmarked.take(1)).map(({ type }) => type)).toEqual(['ADDED']);
  });

  it('leaves the initial state out when told so', async () => {
    const path = await room();
    await create(path, 'one');
    const stream = await watch(path, { sendInitialEvents: 'false', resourceVersionMatch: 'NotOlderThan' });
    const two = await create(path, 'two');
    expect((await stream.take(1)).map(short)).toEqual([`ADDED two@${two}`]);
  });

  it.each([
    [
      'sendInitialEvents=true',
      'resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan',
    ],
    [
      'resourceVersionMatch=NotOlderThan&resourceVersion=1',
      'resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided',
    ],
    [
      'sendInitialEvents=true&resourceVersionMatch=Exact',
      'resourceVersionMatch: Unsupported value: "Exact": supported values: "NotOlderThan"',
    ],
  ])('refuses %s', async (query, message) => {
    const answer = await api.request('GET', `/api/v1/configmaps?watch=1&${query}`);
    expect(answer.status).toBe(422);
    expect(answer.json.message).toContain('ListOptions.meta.k8s.io "" is invalid');
    expect(answer.json.message).toContain(message);
  });

  it.each([
    ['resourceVersion=abc', 400, 'invalid resource version'],
    ['resourceVersion=-1', 400, 'invalid resource version'],
    ['timeoutSeconds=soon', 400, 'strconv.ParseInt: parsing "soon": invalid syntax'],
    ['labelSelector=a%3D%3D%3Db', 400, ''],
    ['fieldSelector=spec.color%3Dred', 400, '"spec.color" is not a known field selector'],
    ['resourceVersion=900000000', 504, 'Too large resource version'],
  ])('refuses %s with %i', async (query, status, message) => {
    const answer = await api.request('GET', `/api/v1/configmaps?watch=1&${query}`);
    expect(answer.status).toBe(status);
    expect(answer.json).toMatchObject({ kind: 'Status', status: 'Failure' });
    expect(answer.json.message).toContain(message);
  });
});

describe('what a watch sees', () => {
  it('shows objects that come into a selector as added and those that leave it as deleted, in their last matching state', async () => {
    const path = await room();
    const start = await revision(path);
    const live = await watch(path, { resourceVersion: start, labelSelector: 'color=red' });
    await create(path, 'a', { color: 'blue' });
    const added = await relabel(path, 'a', { color: 'red' });
    const modified = await relabel(path, 'a', { size: '1' });
    const left = await relabel(path, 'a', { color: 'green', size: null });
    await relabel(path, 'a', { size: '2' });
    await remove(path, 'a');
    const back = await create(path, 'a', { color: 'red' });
    await remove(path, 'a');
    const gone = String(api.store.revision);
    const expected = [
      `ADDED a@${added}`,
      `MODIFIED a@${modified}`,
      `DELETED a@${left}`,
      `ADDED a@${back}`,
      `DELETED a@${gone}`,
    ];
    const events = await live.take(5);
    expect(events.map(short)).toEqual(expected);
    expect(events[2]?.object.metadata.labels).toEqual({ color: 'red', size: '1' });
    const replayed = await watch(path, { resourceVersion: start, labelSelector: 'color=red' });
    expect(await replayed.take(5)).toEqual(events);
  });

  it('follows one object by its name, and a namespace by its own', async () => {
    const path = await room();
    const other = await room();
    const named = await watch(path, { resourceVersion: await revision(path), fieldSelector: 'metadata.name=b' });
    const scoped = await watch('/api/v1/configmaps', {
      resourceVersion: await revision(path),
      fieldSelector: `metadata.namespace=${other.split('/')[4]}`,
    });
    await create(path, 'a');
    const b = await create(path, 'b');
    const elsewhere = await create(other, 'b');
    expect((await named.take(1)).map(short)).toEqual([`ADDED b@${b}`]);
    expect((await scoped.take(1)).map(short)).toEqual([`ADDED b@${elsewhere}`]);
    expect(named.events).toHaveLength(1);
  });

  it('hears nothing of writes that change nothing, and of rehearsals', async () => {
    const path = await room();
    await create(path, 'a', { x: '1' });
    const stream = await watch(path, { resourceVersion: await revision(path) });
    await relabel(path, 'a', { x: '1' });
    (await api.request('POST', `${path}?dryRun=All`, { body: configMap('b') })).expect(201);
    (await api.request('DELETE', `${path}/a?dryRun=All`)).expect(200);
    const c = await create(path, 'c');
    expect((await stream.take(1)).map(short)).toEqual([`ADDED c@${c}`]);
  });

  it('sends Tables, their columns once', async () => {
    const path = await room();
    await create(path, 'a');
    const stream = await watch(path, { allowWatchBookmarks: 'true' }, TABLE);
    await create(path, 'b');
    const events = await stream.take(3);
    expect(events.map(({ type }) => type)).toEqual(['ADDED', 'BOOKMARK', 'ADDED']);
    for (const { object } of events) expect(object).toMatchObject({ kind: 'Table', apiVersion: 'meta.k8s.io/v1' });
    expect(events[0]?.object.columnDefinitions.map((column: { name: string }) => column.name)).toEqual([
      'Name',
      'Data',
      'Age',
    ]);
    expect(events[0]?.object.rows[0].cells[0]).toBe('a');
    expect(events[0]?.object.rows[0].object).toMatchObject({ kind: 'PartialObjectMetadata', metadata: { name: 'a' } });
    expect(events[1]?.object.rows).toEqual([]);
    expect(events[1]?.object.metadata.resourceVersion).toMatch(/^\d+$/);
    expect(events[2]?.object).toMatchObject({
      columnDefinitions: null,
      rows: [{ cells: ['b', 0, expect.any(String)] }],
    });
  });

  it('sends metadata alone', async () => {
    const path = await room();
    await create(path, 'a');
    const stream = await watch(path, {}, PARTIAL);
    const [event] = await stream.take(1);
    expect(event?.object).toMatchObject({
      kind: 'PartialObjectMetadata',
      apiVersion: 'meta.k8s.io/v1',
      metadata: { name: 'a' },
    });
    expect(Object.keys(event?.object).sort()).toEqual(['apiVersion', 'kind', 'metadata']);
  });
});

describe('how a watch ends', () => {
  it('at its time-out, cleanly, with a last bookmark shortly before', async () => {
    const clock = new ManualClock();
    const own = await InProcessApi.start({ env: { clock } });
    try {
      const path = await room(own);
      const stream = await watch(
        path,
        { resourceVersion: String(own.store.revision), allowWatchBookmarks: 'true', timeoutSeconds: '150' },
        {},
        own,
      );
      // Whatever goes on elsewhere moves the bookmarks of a quiet namespace on.
      const bookmarks: string[] = [];
      for (const advanceMs of [60_000, 60_000, 28_000]) {
        await room(own);
        await eventually(() => expect(stream.events).toHaveLength(bookmarks.length));
        const resourceVersion = String(own.store.revision);
        clock.advance(advanceMs);
        const [event] = await stream.take(1);
        expect(event).toEqual({
          type: 'BOOKMARK',
          object: {
            kind: 'ConfigMap',
            apiVersion: 'v1',
            metadata: { resourceVersion },
          },
        });
        bookmarks.push(event?.object.metadata.resourceVersion);
      }
      clock.advance(2_000);
      expect(await stream.ended()).toBe('clean');
      expect(stream.events).toHaveLength(3);
    } finally {
      await own.stop();
    }
  });

  it('with 410 in the stream when its revision has been compacted', async () => {
    const own = await InProcessApi.start({ historyChangesMax: 20 });
    try {
      const path = await room(own);
      const start = await create(path, 'first', {}, own);
      for (let index = 0; index < 30; index++) await create(path, `filler-${index}`, {}, own);
      const stream = await watch(path, { resourceVersion: start }, {}, own);
      expect(stream.status).toBe(200);
      const [event] = await stream.take(1);
      expect(event).toMatchObject({
        type: 'ERROR',
        object: { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason: 'Expired', code: 410 },
      });
      expect(event?.object.message).toBe(`too old resource version: ${start} (${own.store.oldestRevision})`);
      expect(await stream.ended()).toBe('clean');
      const inside = await watch(path, { resourceVersion: String(own.store.oldestRevision) }, {}, own);
      expect(await inside.take(20)).toHaveLength(20);
    } finally {
      await own.stop();
    }
  });

  it('with 410 when the history overtakes a reader that takes its time', async () => {
    const own = await InProcessApi.start({ historyChangesMax: 1_000 });
    try {
      const path = await room(own);
      const start = String(own.store.revision);
      for (let index = 0; index < 900; index++) await create(path, `early-${index}`, {}, own);
      const response = await own.handle('GET', `${path}?watch=true&resourceVersion=${start}`);
      const chunks = (response.body as AsyncIterable<string>)[Symbol.asyncIterator]();
      const first = (await chunks.next()).value as string;
      expect(first.split('\n').length - 1).toBeLessThan(900);
      for (let index = 0; index < 1_000; index++) await create(path, `late-${index}`, {}, own);
      const last = JSON.parse((await chunks.next()).value as string) as WatchEvent;
      expect(last).toMatchObject({ type: 'ERROR', object: { reason: 'Expired', code: 410 } });
      expect((await chunks.next()).done).toBe(true);
    } finally {
      await own.stop();
    }
  });
});

describe('a watch of custom resources', () => {
  const CRDS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
  const version = (size: object): object => ({
    name: 'v1',
    served: true,
    storage: true,
    schema: { openAPIV3Schema: { type: 'object', properties: { size } } },
  });
  const crd = (plural: string): { metadata: { name: string }; spec: object } => ({
    metadata: { name: `${plural}.example.org` },
    spec: {
      group: 'example.org',
      scope: 'Namespaced',
      names: { plural, kind: plural },
      versions: [version({ type: 'integer' })],
    },
  });

  it('ends, told of every deletion, when their definition is deleted', async () => {
    (await api.request('POST', CRDS, { body: crd('doomed') })).expect(201);
    (await api.request('POST', CRDS, { body: crd('others') })).expect(201);
    const target = '/apis/example.org/v1/namespaces/default';
    for (const name of ['a', 'b'])
      (await api.request('POST', `${target}/doomed`, { body: { metadata: { name } } })).expect(201);
    const stream = await watch(`${target}/doomed`, {});
    const other = await watch(`${target}/others`, {});
    await stream.take(2);
    (await api.request('DELETE', `${CRDS}/doomed.example.org`)).expect(200);
    expect(await stream.ended()).toBe('clean');
    expect(
      stream.events
        .slice(2)
        .map(({ type, object }) => `${type} ${object.metadata.name}`)
        .sort(),
    ).toEqual(['DELETED a', 'DELETED b']);
    (await api.request('POST', `${target}/others`, { body: { metadata: { name: 'c' } } })).expect(201);
    expect((await other.take(1))[0]?.object.metadata.name).toBe('c');
  });

  it('ends when they are served differently, to be resumed from where it was', async () => {
    const made = (await api.request('POST', CRDS, { body: crd('changing') })).expect(201).json;
    const target = '/apis/example.org/v1/namespaces/default/changing';
    (await api.request('POST', target, { body: { metadata: { name: 'a' } } })).expect(201);
    const stream = await watch(target, {});
    const [first] = await stream.take(1);
    expect(first?.object).not.toHaveProperty('size');
    const versions = [version({ type: 'integer', default: 7 })];
    (
      await api.request('PATCH', `${CRDS}/${made.metadata.name}`, {
        headers: { 'content-type': 'application/merge-patch+json' },
        body: { spec: { versions } },
      })
    ).expect(200);
    expect(await stream.ended()).toBe('clean');
    const resumed = await watch(target, { resourceVersion: first?.object.metadata.resourceVersion });
    (await api.request('POST', target, { body: { metadata: { name: 'b' } } })).expect(201);
    expect((await resumed.take(1))[0]?.object).toMatchObject({ metadata: { name: 'b' }, size: 7 });
  });
});

describe('a watcher that does not read', () => {
  it('is cut off, and can resume from where it was', async () => {
    const path = await room();
    const start = await revision(path);
    const response = await api.handle('GET', `${path}?watch=true&resourceVersion=${start}`);
    const chunks = (response.body as AsyncIterable<string>)[Symbol.asyncIterator]();
    const first = chunks.next();
    await create(path, 'seen');
    expect(JSON.parse((await first).value as string)).toMatchObject({
      type: 'ADDED',
      object: { metadata: { name: 'seen' } },
    });
    const data = { text: 'x'.repeat(500_000) };
    for (let index = 0; index < 12; index++)
      (await api.request('POST', path, { body: configMap(`unread-${index}`, { data }) })).expect(201);
    await expect(chunks.next()).rejects.toThrow('behind');
    const seen = (await api.request('GET', `${path}/seen`)).json.metadata.resourceVersion;
    const resumed = await watch(path, { resourceVersion: seen });
    expect(await resumed.take(12)).toHaveLength(12);
  });
});

/** One step of a story about a few objects with labels. */
type Step = { readonly name: string; readonly color: 'red' | 'blue' | 'none' | 'gone' };

describe('a watch is a faithful account', () => {
  const steps = fc.array(
    fc.record<Step>({ name: fc.constantFrom('a', 'b', 'c'), color: fc.constantFrom('red', 'blue', 'none', 'gone') }),
    // Without a size, no story would have more than a dozen steps.
    { minLength: 1, maxLength: 25, size: 'max' },
  );

  async function perform(path: string, live: Set<string>, { name, color }: Step): Promise<void> {
    if (color === 'gone') {
      if (live.delete(name)) await remove(path, name);
      return;
    }
    const label = color === 'none' ? null : color;
    if (live.has(name)) await relabel(path, name, { color: label, step: String(sequence++) });
    else await create(path, name, label === null ? {} : { color: label });
    live.add(name);
  }

  /** What a client that follows the events believes to be there. */
  function believed(events: readonly WatchEvent[]): Map<string, string> {
    const state = new Map<string, string>();
    for (const { type, object } of events) {
      const { name, resourceVersion } = object.metadata;
      const isKnown = state.has(name);
      if (isKnown !== (type !== 'ADDED'))
        throw new Error(`${type} of ${name}, which was ${isKnown ? '' : 'not '}there`);
      if (type === 'DELETED') state.delete(name);
      else state.set(name, resourceVersion);
    }
    return state;
  }

  it.each(['', 'color=red', 'color!=red', 'color', '!color', 'color in (red,blue)'])(
    'of what matches %o, live, replayed and resumed halfway',
    async (labelSelector) => {
      await fc.assert(
        fc.asyncProperty(steps, fc.nat(24), async (story, cut) => {
          const path = await room();
          const start = await revision(path);
          const live = await watch(path, { resourceVersion: start, labelSelector });
          const names = new Set<string>();
          let middle = start;
          for (const [index, step] of story.entries()) {
            await perform(path, names, step);
            if (index === cut) middle = await revision(path);
          }
          const end = await revision(path);
          const replayed = await watch(path, { resourceVersion: start, labelSelector });
          const resumed = await watch(path, { resourceVersion: middle, labelSelector });
          // A last object that every selector but one sees tells that all before it has been sent.
          await create(
            path,
            'end',
            labelSelector === '!color' || labelSelector === 'color!=red' ? {} : { color: 'red' },
          );
          const upToEnd = async (stream: EventStream): Promise<WatchEvent[]> => {
            await eventually(() => expect(stream.events.at(-1)?.object.metadata.name).toBe('end'));
            return stream.events.slice(0, -1);
          };
          const events = await upToEnd(live);
          expect(await upToEnd(replayed)).toEqual(events);
          const after = events.filter(({ object }) => Number(object.metadata.resourceVersion) > Number(middle));
          expect(await upToEnd(resumed)).toEqual(after);
          const { json } = await api.request(
            'GET',
            withQuery(path, { labelSelector, resourceVersion: end, resourceVersionMatch: 'Exact' }),
          );
          const listed = json.items.map((item: { metadata: { name: string; resourceVersion: string } }) => [
            item.metadata.name,
            item.metadata.resourceVersion,
          ]);
          expect(believed(events)).toEqual(new Map(listed));
          for (const stream of open.splice(0)) stream.close();
        }),
        { numRuns: IS_FULL ? 100 : 8 },
      );
    },
  );
});
