import { describe, expect, it } from 'vitest';
import { ManualClock, seededRandom } from '../env/test.ts';
import { FAULT_NAMES, type FaultPlan, NO_FAULTS } from './faults.ts';
import { FaultyTransport } from './faulty-transport.ts';
import {
  bookmark,
  failure,
  type Script,
  ScriptedTransport,
  ScriptedWatch,
  settle,
  thing,
} from './scripted-transport.fixture.ts';
import { TransportError, type TransportRequest } from './transport.ts';

const never = new AbortController().signal;

function request(method: TransportRequest['method'], path = '/api/v1/pods', signal = never): TransportRequest {
  return { method, path, headers: {}, signal };
}

function faulty(plan: Partial<FaultPlan>, script: Script = () => ({ body: {} }), seed = 1, onCrash?: () => void) {
  const clock = new ManualClock();
  const inner = new ScriptedTransport(script);
  const transport = new FaultyTransport(inner, { clock, random: seededRandom(seed), plan, onCrash });
  return { clock, inner, transport };
}

async function textOf(body: AsyncIterable<string>): Promise<string> {
  let text = '';
  for await (const piece of body) text += piece;
  return text;
}

/** How a promise stands. */
function follow<T>(promise: Promise<T>): { state: 'pending' | 'resolved' | 'rejected'; value?: T; error?: unknown } {
  const standing: ReturnType<typeof follow<T>> = { state: 'pending' };
  promise.then(
    (value) => Object.assign(standing, { state: 'resolved', value }),
    (error: unknown) => Object.assign(standing, { state: 'rejected', error }),
  );
  return standing;
}

describe('requests', () => {
  it('pass untouched when nothing is planned', async () => {
    const { transport, inner } = faulty({});
    for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const)
      expect((await transport.send(request(method))).status).toBe(200);
    expect(inner.requests).toHaveLength(5);
    expect(Object.values(transport.injected).every((count) => count === 0)).toBe(true);
    expect(Object.keys(transport.injected)).toEqual([...FAULT_NAMES]);
  });

  it.each([
    ['requestLost', 0],
    ['answerLost', 1],
  ] as const)('time out when %s, having reached the server %i times', async (name, count) => {
    const { transport, inner, clock } = faulty({ [name]: 1, timeoutMs: 10_000 });
    const sending = follow(transport.send(request('POST')));
    await settle();
    expect(sending.state).toBe('pending');
    clock.advance(10_000);
    await settle();
    expect(sending.error).toBeInstanceOf(TransportError);
    expect(inner.requests).toHaveLength(count);
    expect(transport.injected[name]).toBe(1);
  });

  it('conflict without having reached the server, if they are updates or patches', async () => {
    const { transport, inner } = faulty({ conflict: 1 });
    const statuses: number[] = [];
    for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const)
      statuses.push((await transport.send(request(method))).status);
    expect(statuses).toEqual([200, 200, 409, 409, 200]);
    expect(inner.requests).toHaveLength(3);
    expect(transport.injected.conflict).toBe(2);
  });

  it('are refused by servers that are overloaded or not ready', async () => {
    const { transport, inner } = faulty({ unavailable: 1 });
    const statuses = new Set<number>();
    for (let attempt = 0; attempt < 20; attempt++) {
      const { status, headers, body } = await transport.send(request('POST'));
      statuses.add(status);
      expect(JSON.parse(await textOf(body))).toMatchObject({ kind: 'Status', code: status });
      if (status === 429) expect(headers['retry-after']).toBe('1');
    }
    expect(statuses).toEqual(new Set([429, 503]));
    expect(inner.requests).toHaveLength(0);
  });

  it('are slow there or back', async () => {
    const { transport, inner, clock } = faulty({ slow: 1, slowMsMax: 1_000 });
    const sendings = Array.from({ length: 20 }, () => follow(transport.send(request('POST'))));
    await settle();
    const early = inner.requests.length;
    expect(early).toBeGreaterThan(0);
    expect(early).toBeLessThan(20);
    expect(sendings.every(({ state }) => state === 'pending')).toBe(true);
    clock.advance(1_000);
    await settle();
    expect(sendings.every(({ state }) => state === 'resolved')).toBe(true);
    expect(transport.injected.slow).toBe(20);
  });

  it('of a client that crashes at a write are never answered; half of them took effect', async () => {
    let crashes = 0;
    const { transport, inner } = faulty({ crash: 1 }, undefined, 1, () => crashes++);
    const stop = new AbortController();
    const sendings = Array.from({ length: 20 }, () =>
      follow(transport.send(request('POST', '/api/v1/pods', stop.signal))),
    );
    expect((await transport.send(request('GET'))).status).toBe(200);
    await settle();
    expect(crashes).toBe(20);
    expect(inner.requests.length).toBeGreaterThan(3);
    expect(inner.requests.length).toBeLessThan(19);
    expect(sendings.every(({ state }) => state === 'pending')).toBe(true);
    stop.abort();
    await settle();
    expect(sendings.every(({ error }) => error instanceof TransportError)).toBe(true);
  });

  it('end at once when cancelled, whatever they wait for', async () => {
    for (const plan of [{ requestLost: 1 }, { answerLost: 1 }, { slow: 1 }]) {
      const { transport } = faulty(plan);
      const stop = new AbortController();
      const sending = follow(transport.send(request('POST', '/api/v1/pods', stop.signal)));
      await settle();
      stop.abort();
      await settle();
      expect(sending.error).toMatchObject({ message: 'the request was cancelled' });
      await expect(transport.send(request('POST', '/api/v1/pods', stop.signal))).rejects.toThrow('cancelled');
    }
  });
});

describe('a partition', () => {
  it('holds requests back until it heals, or they time out', async () => {
    const { transport, inner, clock } = faulty({ timeoutMs: 5_000 });
    transport.partition();
    expect(transport.isPartitioned).toBe(true);
    const first = follow(transport.send(request('POST')));
    clock.advance(3_000);
    const second = follow(transport.send(request('POST')));
    await settle();
    clock.advance(2_000);
    await settle();
    expect(first.error).toBeInstanceOf(TransportError);
    expect(second.state).toBe('pending');
    expect(inner.requests).toHaveLength(0);
    transport.heal();
    await settle();
    expect(second.value?.status).toBe(200);
    expect(transport.injected.partition).toBe(1);
  });

  it('holds answers back whose request went through', async () => {
    let answer: () => void = () => undefined;
    const { transport, inner } = faulty({}, () => new Promise((resolve) => (answer = () => resolve({ body: {} }))));
    const sending = follow(transport.send(request('POST')));
    await settle();
    transport.partition();
    answer();
    await settle();
    expect(inner.requests).toHaveLength(1);
    expect(sending.state).toBe('pending');
    transport.heal();
    await settle();
    expect(sending.state).toBe('resolved');
  });

  it('holds the events of a watch back', async () => {
    const { watch, events, transport } = await watching({});
    transport.partition();
    watch.send({ type: 'ADDED', object: thing('a', 5) });
    await settle();
    expect(events()).toEqual([]);
    transport.heal();
    await settle();
    expect(events()).toEqual(['ADDED a@5']);
  });
});

/** A watch through faults, and what has come of it. */
async function watching(plan: Partial<FaultPlan>, seed = 1) {
  const watch = new ScriptedWatch();
  const scene = faulty(plan, () => ({ body: watch }), seed);
  const stop = new AbortController();
  const response = await scene.transport.send(request('GET', '/api/v1/pods?watch=true', stop.signal));
  let text = '';
  const ended = follow(
    (async () => {
      for await (const piece of response.body) text += piece;
    })(),
  );
  const events = (): string[] =>
    text
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line))
      .map(
        ({ type, object }) =>
          `${type} ${object.metadata?.name ?? object.code}@${object.metadata?.resourceVersion ?? ''}`,
      );
  return { ...scene, watch, stop, events, ended };
}

describe('watches', () => {
  const three = [5, 6, 7].map((version) => ({ type: 'ADDED', object: thing('a', version) }));

  it('are cut before any event, cleanly or not', async () => {
    const endings = new Set<string>();
    for (let seed = 0; seed < 10; seed++) {
      const { watch, events, ended, transport } = await watching({ watchCut: 1 }, seed);
      watch.send(...three);
      await settle();
      expect(events()).toEqual([]);
      expect(watch.isClosed).toBe(true);
      expect(transport.injected.watchCut).toBe(1);
      endings.add(ended.state);
    }
    expect([...endings].sort()).toEqual(['rejected', 'resolved']);
  });

  it('expire, in the stream or at once', async () => {
    const { watch, events, ended, transport, inner } = await watching({});
    transport.plan = { watchExpired: 1 };
    watch.send(...three);
    await settle();
    expect(events()).toEqual(['ERROR 410@']);
    expect(ended.state).toBe('resolved');
    const again = await transport.send(request('GET', '/api/v1/pods?watch=true&resourceVersion=7'));
    expect(again.status).toBe(410);
    expect(inner.requests).toHaveLength(1);
    expect((await transport.send(request('GET', '/api/v1/pods?resourceVersion=7'))).status).toBe(200);
  });

  it('are delayed without losing their order', async () => {
    const { watch, events, clock, transport } = await watching({ watchDelay: 1, watchDelayMsMax: 1_000 });
    watch.send(...three);
    await settle();
    expect(events()).toEqual([]);
    for (let turn = 0; turn < 3; turn++) {
      clock.advance(1_000);
      await settle();
    }
    expect(events()).toEqual(['ADDED a@5', 'ADDED a@6', 'ADDED a@7']);
    expect(transport.injected.watchDelay).toBe(3);
  });

  it('repeat events, the last one or one before', async () => {
    const { watch, events, transport } = await watching({ watchDuplicate: 1 });
    for (let version = 1; version <= 30; version++) watch.send({ type: 'ADDED', object: thing('a', version) });
    await settle();
    expect(transport.injected.watchDuplicate).toBeGreaterThan(20);
    const versions = events().map((event) => Number(event.split('@')[1]));
    expect(new Set(versions).size).toBe(30);
    const repeats = versions.filter((version, index) => versions.indexOf(version) < index);
    expect(repeats).toHaveLength(transport.injected.watchDuplicate);
  });

  it('end at once when cancelled, also while they wait', async () => {
    for (const plan of [{ watchDelay: 1 }, {}]) {
      const { watch, stop, ended, transport } = await watching(plan);
      transport.partition();
      watch.send(...three);
      await settle();
      stop.abort();
      await settle();
      expect(ended.state).not.toBe('pending');
    }
  });
});

describe('a lagging server', () => {
  const list = (version: string, names: readonly string[]) => ({
    kind: 'PodList',
    apiVersion: 'v1',
    metadata: { resourceVersion: version },
    items: names.map((name) => ({ metadata: thing(name, 3).metadata })),
  });

  it('lists as of then, keeping selectors and pages', async () => {
    const { transport, inner } = faulty({}, () => ({ body: list('40', []) }));
    transport.freeze('40');
    await transport.send(request('GET', '/api/v1/pods?labelSelector=a%3Db&limit=5'));
    await transport.send(request('GET', '/api/v1/pods?limit=5&continue=abc'));
    await transport.send(request('GET', '/api/v1/pods?resourceVersion=30&resourceVersionMatch=NotOlderThan'));
    await transport.send(request('POST', '/api/v1/pods'));
    await transport.send(request('GET', '/version'));
    expect(inner.requests.map(({ path }) => path)).toEqual([
      '/api/v1/pods?labelSelector=a%3Db&limit=5&resourceVersion=40&resourceVersionMatch=Exact',
      '/api/v1/pods?limit=5&continue=abc',
      '/api/v1/pods?resourceVersion=40&resourceVersionMatch=Exact',
      '/api/v1/pods',
      '/version',
    ]);
    const tooNew = await transport.send(
      request('GET', '/api/v1/pods?resourceVersion=41&resourceVersionMatch=NotOlderThan'),
    );
    expect(tooNew.status).toBe(504);
    expect(transport.injected.stale).toBe(1);
    transport.thaw();
    await transport.send(request('GET', '/api/v1/pods'));
    expect(inner.requests.at(-1)?.path).toBe('/api/v1/pods');
  });

  it.each([
    ['/api/v1/namespaces/default/pods/a', '/api/v1/namespaces/default/pods'],
    ['/apis/apps/v1/namespaces/default/deployments/a', '/apis/apps/v1/namespaces/default/deployments'],
    ['/api/v1/nodes/a', '/api/v1/nodes'],
    ['/api/v1/namespaces/a', '/api/v1/namespaces'],
  ])('finds %s in the list of then', async (path, collection) => {
    const { transport, inner } = faulty({}, () => ({ body: list('40', ['a']) }));
    transport.freeze('40');
    const found = await transport.send(request('GET', path));
    expect(JSON.parse(await textOf(found.body))).toEqual({ ...thing('a', 3), kind: 'Pod' });
    const query = 'resourceVersion=40&resourceVersionMatch=Exact&fieldSelector=metadata.name%3Da';
    expect(inner.requests[0]?.path).toBe(`${collection}?${query}`);
    inner.script = () => ({ body: list('40', []) });
    expect((await transport.send(request('GET', path))).status).toBe(404);
  });

  it('answers as of now what it no longer knows of then', async () => {
    const { transport, inner } = faulty({}, ({ path }) =>
      path.includes('Exact') ? failure(410, 'Expired') : { body: {} },
    );
    transport.freeze('40');
    expect((await transport.send(request('GET', '/api/v1/pods'))).status).toBe(200);
    expect(inner.requests).toHaveLength(2);
  });

  it('holds back the events it does not know of yet', async () => {
    const { watch, events, transport } = await watching({});
    transport.freeze('6');
    watch.send({ type: 'ADDED', object: thing('a', 5) }, { type: 'ADDED', object: thing('b', 7) }, bookmark(8));
    await settle();
    expect(events()).toEqual(['ADDED a@5']);
    transport.freeze('7');
    transport.thaw();
    await settle();
    expect(events()).toEqual(['ADDED a@5', 'ADDED b@7', 'BOOKMARK undefined@8']);
  });

  it('streams its own state, and goes on from there', async () => {
    const watch = new ScriptedWatch();
    const { transport, inner } = faulty({}, ({ path }) => ({
      body: path.includes('watch') ? watch : list('6', ['a']),
    }));
    transport.freeze('6');
    const path =
      '/api/v1/pods?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true';
    const response = await transport.send(request('GET', path));
    expect(inner.requests[1]?.path).toBe('/api/v1/pods?watch=true&allowWatchBookmarks=true&resourceVersion=6');
    watch.send({ type: 'ADDED', object: thing('b', 7) });
    watch.end();
    transport.calm();
    const events = (await textOf(response.body))
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(events.map(({ type, object }) => [type, object.kind, object.metadata.resourceVersion])).toEqual([
      ['ADDED', 'Pod', '3'],
      ['BOOKMARK', 'Pod', '6'],
      ['ADDED', 'ConfigMap', '7'],
    ]);
    expect(events[1].object.metadata.annotations).toEqual({ 'k8s.io/initial-events-end': 'true' });
  });

  it('begins to lag at a read, some revisions behind, and catches up after a while', async () => {
    const { transport, inner, clock } = faulty({ stale: 1, staleMsMax: 1_000, staleRevisionsMax: 10 }, () => ({
      body: list('100', []),
    }));
    await transport.send(request('GET', '/api/v1/namespaces/default/pods?labelSelector=a'));
    expect(inner.requests[0]?.path).toBe('/api/v1/namespaces/default/pods?limit=1');
    const revision = Number(/resourceVersion=(\d+)/.exec(inner.requests[1]?.path ?? '')?.[1]);
    expect(revision).toBeGreaterThan(90);
    expect(revision).toBeLessThanOrEqual(100);
    expect(transport.injected.stale).toBe(1);
    transport.plan = NO_FAULTS;
    clock.advance(1_000);
    await transport.send(request('GET', '/api/v1/pods'));
    expect(inner.requests.at(-1)?.path).toBe('/api/v1/pods');
  });
});

describe('determinism', () => {
  const plan = { requestLost: 0.2, conflict: 0.2, unavailable: 0.2, slow: 0.3, answerLost: 0.1 };

  async function trace(chances: Partial<FaultPlan>, seed: number): Promise<string[]> {
    const { transport, clock } = faulty(chances, undefined, seed);
    const lines: string[] = [];
    for (let attempt = 0; attempt < 50; attempt++) {
      const sending = follow(transport.send(request('PUT')));
      while (sending.state === 'pending') {
        await settle();
        if (sending.state === 'pending') clock.advance(100);
      }
      lines.push(`${clock.now()} ${sending.value?.status ?? 'lost'}`);
    }
    return lines;
  }

  it('the same seed gives the same faults, another one others', async () => {
    const first = await trace(plan, 7);
    expect(await trace(plan, 7)).toEqual(first);
    expect(await trace(plan, 8)).not.toEqual(first);
  });

  it('switching one fault off leaves those before it where they were', async () => {
    const statuses = (lines: readonly string[]) => lines.map((line) => line.split(' ')[1]);
    const all = statuses(await trace(plan, 7));
    const without = statuses(await trace({ ...plan, slow: 0 }, 7));
    expect(without).toEqual(all);
  });
});
