import { afterEach, describe, expect, it } from 'vitest';
import type { KubeObject } from '../api/meta.ts';
import { testEnv } from '../env/test.ts';
import { Client } from './client.ts';
import { Informer, type InformerChange, type InformerOptions } from './informer.ts';
import { withoutManagedFields } from './object-cache.ts';
import type { Resource } from './resource.ts';
import {
  bookmark,
  failure,
  type ScriptedAnswer,
  ScriptedTransport,
  ScriptedWatch,
  settle,
  thing,
} from './scripted-transport.fixture.ts';

const CONFIG_MAPS: Resource = { group: '', version: 'v1', plural: 'configmaps', kind: 'ConfigMap', namespaced: true };

const added = (object: object) => ({ type: 'ADDED', object });
const modified = (object: object) => ({ type: 'MODIFIED', object });
const deleted = (object: object) => ({ type: 'DELETED', object });

function list(version: number, items: readonly object[], token?: string): ScriptedAnswer {
  return { body: { kind: 'ConfigMapList', metadata: { resourceVersion: String(version), continue: token }, items } };
}

/** `+name@version` added, `~` updated, `=` told again, `-` deleted; a leading `i` for initial ones. */
function short({ type, object, old, isInitial }: InformerChange<KubeObject>): string {
  const sign = type === 'added' ? '+' : type === 'deleted' ? '-' : old === object ? '=' : '~';
  return `${isInitial ? 'i' : ''}${sign}${object.metadata.name}@${object.metadata.resourceVersion}`;
}

/** An informer on a scripted server, whose answers are given one by one; time moves when told. */
class Scene {
  readonly env = testEnv();
  readonly transport = new ScriptedTransport(() => this.#answer());
  readonly informer: Informer<KubeObject>;
  readonly changes: string[] = [];
  readonly stop = new AbortController();
  readonly running: Promise<void>;
  readonly #answers: ScriptedAnswer[] = [];

  constructor(
    options: Partial<InformerOptions<KubeObject>> = {},
    setUp: (informer: Informer<KubeObject>) => void = () => {},
  ) {
    const client = new Client(this.transport, 'test');
    this.informer = new Informer({ client, resource: CONFIG_MAPS, env: this.env, ...options });
    this.informer.onChange((change) => this.changes.push(short(change)));
    setUp(this.informer);
    // The script is filled before the first request goes out.
    this.running = Promise.resolve().then(() => this.informer.run(this.stop.signal));
    this.running.catch(() => undefined);
    scenes.push(this);
  }

  #answer(): ScriptedAnswer {
    return this.#answers.shift() ?? failure(503, 'ServiceUnavailable');
  }

  /** What the next requests are answered; a watch for each `watch`. */
  answers(...answers: (ScriptedAnswer | ScriptedWatch)[]): void {
    this.#answers.push(...answers.map((answer) => (answer instanceof ScriptedWatch ? { body: answer } : answer)));
  }

  /** A server that lists and does not stream, with these objects; answers its first watch. */
  async listed(version: number, items: readonly object[]): Promise<ScriptedWatch> {
    const watch = new ScriptedWatch();
    this.answers(failure(422, 'Invalid'), list(version, items), watch);
    await settle();
    this.transport.requests.length = 0;
    this.changes.length = 0;
    return watch;
  }

  async pass(ms: number): Promise<void> {
    this.env.clock.advance(ms);
    await settle();
  }
}

const scenes: Scene[] = [];

afterEach(async () => {
  for (const scene of scenes.splice(0)) {
    scene.stop.abort();
    await scene.running.catch(() => undefined);
  }
});

const STREAM =
  '/api/v1/configmaps?allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&watch=true';
const watchFrom = (version: number) =>
  `/api/v1/configmaps?allowWatchBookmarks=true&resourceVersion=${version}&watch=true`;

describe('the first snapshot', () => {
  it('is streamed where the server offers it, and the same watch goes on', async () => {
    const scene = new Scene();
    const watch = new ScriptedWatch();
    scene.answers(watch);
    watch.send(added(thing('a', 5)), added(thing('b', 3)));
    await settle();
    expect(scene.changes).toEqual([]);
    expect(scene.informer.hasSynced).toBe(false);
    watch.send(bookmark(7, true));
    await scene.informer.synced;
    expect(scene.informer.hasSynced).toBe(true);
    watch.send(modified(thing('a', 8)), deleted(thing('b', 9)), added(thing('c', 10)));
    await settle();
    expect(scene.changes).toEqual(['i+a@5', 'i+b@3', '~a@8', '-b@9', '+c@10']);
    expect(scene.transport.paths).toEqual([STREAM]);
    expect([...scene.informer.list()].map(({ metadata }) => metadata.name)).toEqual(['a', 'c']);
  });

  it.each([400, 405, 422])('is listed in pages where the server answers %i, without trying again', async (code) => {
    const scene = new Scene({ namespace: 'default', labelSelector: 'x=y', fieldSelector: 'metadata.name!=z' });
    const watch = new ScriptedWatch();
    scene.answers(failure(code, 'Invalid'), list(7, [thing('a', 5)], 'more'), list(7, [thing('b', 3)]), watch);
    await scene.informer.synced;
    await settle();
    const scope = '/api/v1/namespaces/default/configmaps?labelSelector=x%3Dy&fieldSelector=metadata.name!%3Dz';
    expect(scene.transport.paths.slice(1)).toEqual([
      `${scope}&limit=500`,
      `${scope}&limit=500&continue=more`,
      `${scope}&allowWatchBookmarks=true&resourceVersion=7&watch=true`,
    ]);
    expect(scene.changes).toEqual(['i+a@5', 'i+b@3']);
    scene.answers(list(9, [thing('a', 5)]));
    watch.send({ type: 'ERROR', object: { kind: 'Status', code: 410, reason: 'Expired' } });
    await settle();
    await scene.pass(800);
    expect(scene.changes.slice(2)).toEqual(['-b@3']);
    expect(scene.transport.paths[4]).toBe(`${scope}&limit=500`);
  });

  it('is listed where the stream ends or falls silent without its mark', async () => {
    for (const quiet of [false, true]) {
      const scene = new Scene();
      const watch = new ScriptedWatch();
      scene.answers(watch, list(7, [thing('a', 5)]), new ScriptedWatch());
      watch.send(added(thing('b', 5)));
      await settle();
      if (quiet) await scene.pass(150_000);
      else watch.end();
      await settle();
      await scene.pass(quiet ? 0 : 800);
      expect(scene.changes).toEqual(['i+a@5']);
      expect(scene.transport.paths).toEqual([STREAM, '/api/v1/configmaps?limit=500', watchFrom(7)]);
    }
  });

  it('starts again whole when a page has expired', async () => {
    const scene = new Scene();
    scene.answers(failure(422, 'Invalid'), list(7, [thing('a', 5)], 'more'), failure(410, 'Expired'));
    await settle();
    expect(scene.changes).toEqual([]);
    scene.answers(list(9, [thing('b', 8)]), new ScriptedWatch());
    await scene.pass(800);
    expect(scene.transport.paths.slice(3)).toEqual(['/api/v1/configmaps', watchFrom(9)]);
    expect(scene.changes).toEqual(['i+b@8']);
  });

  it('is waited for while the resource does not exist or may not be read', async () => {
    const scene = new Scene();
    for (const [code, reason] of [
      [404, 'NotFound'],
      [403, 'Forbidden'],
      [401, 'Unauthorized'],
      [500, 'InternalError'],
    ] as const) {
      scene.answers(failure(code, reason));
      await settle();
      await scene.pass(30_000);
    }
    const watch = new ScriptedWatch();
    watch.send(bookmark(3, true));
    scene.answers(watch);
    await scene.pass(30_000);
    await scene.informer.synced;
    expect(new Set(scene.transport.paths)).toEqual(new Set([STREAM]));
  });

  it('that is large is handed over in portions, so that others get their turn', async () => {
    const scene = new Scene();
    const items = Array.from({ length: 2_500 }, (_, index) => thing(`a${index}`, index + 1));
    scene.answers(failure(422, 'Invalid'), list(2_500, items), new ScriptedWatch());
    await settle();
    expect(scene.informer.size).toBe(1_000);
    await scene.pass(0);
    expect(scene.informer.size).toBe(2_000);
    expect(scene.informer.hasSynced).toBe(false);
    await scene.pass(0);
    expect(scene.informer.size).toBe(2_500);
    expect(scene.informer.hasSynced).toBe(true);
  });
});

describe('a watch that ends', () => {
  it.each(['clean', 'broken'] as const)('%sly is resumed from the last event or bookmark', async (how) => {
    const scene = new Scene();
    const watch = await scene.listed(7, [thing('a', 5)]);
    const [second, third] = [new ScriptedWatch(), new ScriptedWatch()];
    scene.answers(second, third);
    watch.send(modified(thing('a', 9)));
    watch.end(how);
    await settle();
    await scene.pass(800);
    second.send(bookmark(20));
    await settle();
    second.end(how);
    await settle();
    await scene.pass(1_600);
    third.send(added(thing('b', 21)));
    await settle();
    expect(scene.transport.paths).toEqual([watchFrom(9), watchFrom(20)]);
    expect(scene.changes).toEqual(['~a@9', '+b@21']);
  });

  it('in the middle of a line loses nothing', async () => {
    const scene = new Scene();
    const watch = await scene.listed(7, []);
    const line = `${JSON.stringify(added(thing('a', 8)))}\n`;
    watch.sendText(line.slice(0, 30));
    watch.end();
    const second = new ScriptedWatch();
    scene.answers(second);
    await settle();
    await scene.pass(800);
    second.sendText(line);
    await settle();
    expect(scene.changes).toEqual(['+a@8']);
  });

  it('by sending nonsense is resumed', async () => {
    const scene = new Scene();
    const watch = await scene.listed(7, []);
    scene.answers(new ScriptedWatch());
    watch.sendText('<html>gateway timeout</html>\n');
    await settle();
    await scene.pass(800);
    expect(scene.transport.paths).toEqual([watchFrom(7)]);
    expect(watch.isClosed).toBe(true);
  });

  it('soon is resumed after growing, jittered delays, at most 30 s; after a long life at once', async () => {
    const scene = new Scene();
    (await scene.listed(7, [])).end('broken');
    await settle();
    const delaysMs: number[] = [];
    for (let attempt = 0; attempt < 4; attempt++) {
      scene.answers(failure(429, 'TooManyRequests'));
      const startMs = scene.env.clock.now();
      const count = scene.transport.requests.length;
      while (scene.transport.requests.length === count) await scene.pass(50);
      delaysMs.push(scene.env.clock.now() - startMs);
    }
    for (const [attempt, delayMs] of delaysMs.entries()) {
      expect(delayMs).toBeGreaterThanOrEqual(400 * 2 ** attempt);
      expect(delayMs).toBeLessThanOrEqual(800 * 2 ** attempt + 50);
    }
    const long = new ScriptedWatch();
    const next = new ScriptedWatch();
    scene.answers(long, next);
    await scene.pass(30_000);
    await scene.pass(10_000);
    const count = scene.transport.requests.length;
    long.end();
    await settle();
    expect(scene.transport.requests).toHaveLength(count + 1);
  });

  it('because nothing came for too long, not even bookmarks, is resumed', async () => {
    const scene = new Scene();
    const watch = await scene.listed(7, []);
    scene.answers(new ScriptedWatch());
    await scene.pass(100_000);
    watch.send(bookmark(8));
    await settle();
    await scene.pass(149_000);
    expect(watch.isClosed).toBe(false);
    await scene.pass(1_000);
    expect(watch.isClosed).toBe(true);
    expect(scene.transport.paths).toEqual([watchFrom(8)]);
  });

  it('waits as long as the server asks it to', async () => {
    const scene = new Scene();
    const watch = await scene.listed(7, []);
    scene.answers(failure(429, 'TooManyRequests', { retryAfterSeconds: 20 }), new ScriptedWatch());
    watch.end();
    await settle();
    await scene.pass(800);
    expect(scene.transport.requests).toHaveLength(1);
    await scene.pass(19_000);
    expect(scene.transport.requests).toHaveLength(1);
    await scene.pass(1_000);
    expect(scene.transport.requests).toHaveLength(2);
  });

  it('refused again and again for no reason given is given up for a new snapshot', async () => {
    const scene = new Scene();
    (await scene.listed(7, [thing('a', 5)])).end();
    for (let attempt = 0; attempt < 5; attempt++) scene.answers(failure(504, 'Timeout'));
    scene.answers(list(9, [thing('b', 8)]));
    await settle();
    for (let attempt = 0; attempt < 6; attempt++) await scene.pass(30_000);
    expect(scene.transport.paths.slice(0, 6)).toEqual([
      ...Array.from({ length: 5 }, () => watchFrom(7)),
      '/api/v1/configmaps?limit=500',
    ]);
    expect(scene.changes).toEqual(['+b@8', '-a@5']);
  });
});

describe('a gap', () => {
  const EXPIRED = { kind: 'Status', status: 'Failure', code: 410, reason: 'Expired' };

  it.each(['as a status', 'as an event'])(
    'that is told %s is closed by what has changed, and nothing else',
    async (how) => {
      const scene = new Scene();
      const before = [thing('same', 1), thing('changed', 2), thing('gone', 3), thing('replaced', 4)];
      const watch = await scene.listed(7, before);
      const states = new Map<string, InformerChange<KubeObject>>();
      scene.informer.onChange((change) => states.set(change.object.metadata.uid ?? '', change));
      const after = [thing('same', 1), thing('changed', 9), thing('replaced', 10, { uid: 'other' }), thing('new', 11)];
      const next = new ScriptedWatch();
      if (how === 'as a status') {
        watch.end();
        scene.answers(failure(410, 'Expired'), list(12, after), next);
      } else {
        watch.send({ type: 'ERROR', object: EXPIRED });
        scene.answers(list(12, after), next);
      }
      for (let turn = 0; turn < 3; turn++) {
        await settle();
        await scene.pass(1_600);
      }
      expect(scene.changes).toEqual(['~changed@9', '-replaced@4', '+replaced@10', '+new@11', '-gone@3']);
      expect(states.get('uid-gone')?.object).toEqual(before[2]);
      expect(states.get('uid-changed')?.old).toEqual(before[1]);
      expect(scene.transport.paths.at(-1)).toBe(watchFrom(12));
    },
  );

  it('is closed by a stream where the server offers it', async () => {
    const scene = new Scene();
    const [first, second] = [new ScriptedWatch(), new ScriptedWatch()];
    scene.answers(first, second);
    first.send(added(thing('a', 5)), added(thing('b', 6)), bookmark(7, true), { type: 'ERROR', object: EXPIRED });
    await settle();
    second.send(added(thing('b', 9)), added(thing('c', 10)), bookmark(11, true));
    await scene.pass(800);
    expect(scene.transport.paths).toEqual([STREAM, STREAM]);
    expect(scene.changes).toEqual(['i+a@5', 'i+b@6', '~b@9', '+c@10', '-a@5']);
  });

  it('is not closed by a snapshot from the past', async () => {
    const scene = new Scene();
    const watch = await scene.listed(7, [thing('a', 5)]);
    watch.send(deleted(thing('a', 9)), added(thing('b', 10)), { type: 'ERROR', object: EXPIRED });
    scene.answers(list(8, [thing('a', 5)]), list(11, [thing('b', 10)]), new ScriptedWatch());
    await settle();
    await scene.pass(800);
    expect(scene.changes).toEqual(['-a@9', '+b@10']);
    await scene.pass(1_600);
    expect(scene.changes).toEqual(['-a@9', '+b@10']);
    expect(scene.transport.paths.at(-1)).toBe(watchFrom(11));
  });

  it('to a server that insists on the past for minutes was a restored backup', async () => {
    const scene = new Scene();
    const watch = await scene.listed(70, [thing('a', 50), thing('b', 60)]);
    watch.send({ type: 'ERROR', object: EXPIRED });
    for (let attempt = 0; attempt < 30; attempt++) scene.answers(list(8, [thing('a', 5)]));
    for (let turn = 0; turn < 9; turn++) await scene.pass(30_000);
    expect(scene.changes).toEqual([]);
    for (let turn = 0; turn < 4; turn++) await scene.pass(30_000);
    expect(scene.changes).toEqual(['~a@5', '-b@60']);
  });
});

describe('events', () => {
  it('that come twice or late do not take an object back', async () => {
    const scene = new Scene();
    const watch = await scene.listed(7, [thing('a', 5)]);
    watch.send(modified(thing('a', 8)), modified(thing('a', 8)), added(thing('a', 5)), deleted(thing('a', 6)));
    watch.send(deleted(thing('nobody', 9)), modified(thing('a', 10)), bookmark(3));
    await settle();
    expect(scene.changes).toEqual(['~a@8', '~a@10']);
  });

  it('of a successor with the same name delete the predecessor first', async () => {
    const scene = new Scene();
    const watch = await scene.listed(7, [thing('a', 5)]);
    const changes: InformerChange<KubeObject>[] = [];
    scene.informer.onChange((change) => changes.push(change));
    watch.send(modified(thing('a', 9, { uid: 'second' })), deleted(thing('a', 6)), added(thing('a', 5)));
    watch.send(deleted(thing('a', 12, { uid: 'third' })));
    await settle();
    expect(scene.changes).toEqual(['-a@5', '+a@9', '-a@9']);
    expect(changes.at(-1)?.object.metadata.uid).toBe('second');
  });

  it('that cannot be placed cause a new snapshot', async () => {
    const scene = new Scene();
    const watch = await scene.listed(7, [thing('a', 5)]);
    scene.answers(list(12, [thing('b', 8)]), new ScriptedWatch());
    watch.send(deleted(thing('a', 10)), added(thing('a', 5)));
    await settle();
    await scene.pass(800);
    expect(scene.changes).toEqual(['-a@10', '+b@8']);
    expect(scene.transport.paths).toEqual(['/api/v1/configmaps?limit=500', watchFrom(12)]);
  });

  it('of servers whose versions are no numbers are taken in the order they come', async () => {
    const scene = new Scene();
    const watch = await scene.listed(7, []);
    const odd = (version: string) => ({
      ...thing('a', 0),
      metadata: { ...thing('a', 0).metadata, resourceVersion: version },
    });
    watch.send(added(odd('zz')), modified(odd('aa')), modified(odd('aa')), deleted(odd('mm')));
    await settle();
    expect(scene.changes).toEqual(['+a@zz', '~a@aa', '-a@mm']);
  });
});

describe('handlers', () => {
  it('see old and new, and the cache as it is after the change', async () => {
    const seen: unknown[] = [];
    const scene = new Scene({}, (informer) =>
      informer.onChange(({ type, object, old }) =>
        seen.push([type, old?.metadata.resourceVersion, informer.get('default/a') === object]),
      ),
    );
    const watch = await scene.listed(7, [thing('a', 5)]);
    watch.send(modified(thing('a', 8)), deleted(thing('a', 9)));
    await settle();
    expect(seen).toEqual([
      ['added', undefined, true],
      ['updated', '5', true],
      ['deleted', '8', false],
    ]);
  });

  it('that come late are told what is there first', async () => {
    const scene = new Scene();
    const watch = await scene.listed(7, [thing('a', 5)]);
    const late: string[] = [];
    scene.informer.onChange((change) => late.push(short(change)));
    watch.send(added(thing('b', 8)));
    await settle();
    expect(late).toEqual(['i+a@5', '+b@8']);
  });

  it('are told everything again at each resync', async () => {
    const scene = new Scene({ resyncMs: 60_000 });
    const watch = await scene.listed(7, [thing('a', 5), thing('b', 6)]);
    await scene.pass(66_000);
    expect(scene.changes).toEqual(['=a@5', '=b@6']);
    watch.send(deleted(thing('a', 9)));
    await settle();
    await scene.pass(66_000);
    expect(scene.changes).toEqual(['=a@5', '=b@6', '-a@9', '=b@6']);
  });

  it('that throw end the informer, and so do index functions', async () => {
    const fail = (): never => {
      throw new Error('a bug');
    };
    for (const make of [
      () => new Scene({}, (informer) => informer.onChange(fail)),
      () => new Scene({ indexes: { all: fail } }),
    ]) {
      const scene = make();
      const watch = new ScriptedWatch();
      watch.send(added(thing('a', 5)), bookmark(7, true));
      scene.answers(watch);
      await expect(scene.running).rejects.toThrow('a bug');
      expect(watch.isClosed).toBe(true);
    }
  });
});

describe('an informer', () => {
  it('finds by index, and keeps indexes in step', async () => {
    const scene = new Scene({ indexes: { color: ({ metadata }) => Object.values(metadata.labels ?? {}) } });
    const watch = await scene.listed(7, [thing('a', 5, { labels: { x: 'red', y: 'blue' } })]);
    const names = (value: string) => scene.informer.byIndex('color', value).map(({ metadata }) => metadata.name);
    expect([names('red'), names('blue'), names('green')]).toEqual([['a'], ['a'], []]);
    watch.send(added(thing('b', 8, { labels: { x: 'red' } })), modified(thing('a', 9, { labels: { x: 'green' } })));
    await settle();
    expect([names('red'), names('blue'), names('green')]).toEqual([['b'], [], ['a']]);
    watch.send(deleted(thing('a', 10, { labels: { x: 'other' } })));
    await settle();
    expect([names('red'), names('blue'), names('green')]).toEqual([['b'], [], []]);
    expect(() => scene.informer.byIndex('size', '1')).toThrow('there is no index size; there are color');
  });

  it('keeps what the transform leaves', async () => {
    const scene = new Scene({ transform: withoutManagedFields });
    const heavy = thing('a', 5);
    heavy.metadata.managedFields = [];
    const watch = await scene.listed(7, [heavy]);
    watch.send(added({ ...thing('b', 8), metadata: { ...thing('b', 8).metadata, managedFields: [] } }));
    await settle();
    expect([...scene.informer.list()]).toEqual([thing('a', 5), thing('b', 8)]);
  });

  it('stops at once, whatever it is doing, and can run again', async () => {
    const scene = new Scene();
    const watch = await scene.listed(7, [thing('a', 5)]);
    await expect(scene.informer.run(scene.stop.signal)).rejects.toThrow('runs already');
    scene.stop.abort();
    await scene.running;
    expect(watch.isClosed).toBe(true);
    const again = new AbortController();
    const next = new ScriptedWatch();
    next.send(added(thing('b', 9)), bookmark(10, true));
    scene.answers(next);
    const running = scene.informer.run(again.signal);
    await settle();
    expect(scene.changes).toEqual(['+b@9', '-a@5']);
    again.abort();
    await running;
    await scene.informer.run(again.signal);
  });

  it('stops also when the transport does not notice', async () => {
    const scene = new Scene();
    const deaf = new ScriptedWatch();
    deaf.attach = () => undefined;
    scene.answers(deaf);
    deaf.send(bookmark(7, true));
    await scene.informer.synced;
    scene.stop.abort();
    await scene.running;
  });

  it('is named after its resource', () => {
    expect(new Scene().informer.name).toBe('informer of configmaps');
    const resource = { ...CONFIG_MAPS, group: 'example.com' };
    expect(new Scene({ resource }).informer.name).toBe('informer of configmaps.example.com');
  });
});
