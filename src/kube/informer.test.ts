import { afterEach, describe, expect, it } from 'vitest';
import type { KubeObject } from '../api/meta.ts';
import type { InformerChange } from './informer.ts';
import {
  added,
  CONFIG_MAPS,
  deleted,
  endScenes,
  list,
  modified,
  Scene,
  short,
  STREAM,
  watchFrom,
} from './informer-scene.fixture.ts';
import { withoutManagedFields } from './object-cache.ts';
import { bookmark, failure, ScriptedWatch, settle, thing } from './scripted-transport.fixture.ts';

afterEach(endScenes);

describe('what was written here', () => {
  it('is known before the watch tells of it, and told once', async () => {
    const scene = new Scene();
    const watch = await scene.listed(7, [thing('a', 5)]);
    scene.informer.wrote(thing('a', 9));
    expect(scene.informer.get('default/a')?.metadata.resourceVersion).toBe('9');
    // Somebody else was first, which is heard of only now; then comes what was written, and what followed.
    watch.send(modified(thing('a', 8)), modified(thing('a', 9)), modified(thing('a', 10)));
    await settle();
    expect(scene.changes).toEqual(['~a@9', '~a@10']);
  });

  it('is forgotten where the object is gone, or another one has its name', async () => {
    const scene = new Scene();
    const watch = await scene.listed(7, [thing('a', 5), thing('b', 6)]);
    watch.send(
      deleted(thing('a', 9)),
      modified({ ...thing('b', 10), metadata: { ...thing('b', 10).metadata, uid: 'other' } }),
    );
    await settle();
    scene.changes.length = 0;
    scene.informer.wrote(thing('a', 8));
    scene.informer.wrote(thing('b', 11));
    expect(scene.changes).toEqual([]);
  });
});

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
      [503, 'ServiceUnavailable'],
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

  it('are told again at times that vary, so that not all informers do it at once', async () => {
    const scene = new Scene({ resyncMs: 60_000 });
    await scene.listed(7, [thing('a', 5)]);
    const pauses: number[] = [];
    let seconds = 0;
    while (pauses.length < 10) {
      await scene.pass(1000);
      seconds++;
      if (!scene.changes.includes('=a@5')) continue;
      scene.changes.length = 0;
      pauses.push(seconds);
      seconds = 0;
    }
    expect(Math.min(...pauses)).toBeGreaterThanOrEqual(54);
    expect(Math.max(...pauses)).toBeLessThanOrEqual(67);
    expect(new Set(pauses).size).toBeGreaterThan(3);
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

  it('stopped amid what it was given, does not go on as if it had all of it', async () => {
    let left = 1;
    const scene = new Scene({}, (informer) => informer.onChange(() => left-- === 1 && scene.stop.abort()));
    const objects = [thing('a', 1), thing('b', 2)];
    scene.answers(failure(422, 'Invalid'), list(7, objects));
    await scene.running;
    expect(scene.changes).toEqual(['i+a@1']);
    expect([scene.informer.position, scene.informer.hasSynced]).toEqual([undefined, false]);
    // The next server may be behind the one before, of which nothing is known for certain.
    scene.answers(failure(422, 'Invalid'), list(6, objects), new ScriptedWatch());
    const again = new AbortController();
    const running = scene.informer.run(again.signal);
    await settle();
    expect(scene.changes).toEqual(['i+a@1', 'i+b@2']);
    expect([scene.informer.position, scene.informer.hasSynced]).toEqual(['6', true]);
    again.abort();
    await running;
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

  it('knows up to where it knows everything, and can ask for what is newer', async () => {
    const scene = new Scene({ transform: withoutManagedFields });
    expect(scene.informer.position).toBeUndefined();
    const watch = await scene.listed(7, [thing('a', 5)]);
    expect(scene.informer.position).toBe('7');
    watch.send(bookmark(9));
    await settle();
    expect(scene.informer.position).toBe('9');
    scene.answers(list(12, [{ metadata: { name: 'a', namespace: 'default', managedFields: [] } }]));
    const scope = { namespace: 'default', labelSelector: 'a=b' };
    const items = await scene.informer.listNotOlderThan('11', scope, scene.stop.signal);
    expect(items).toEqual([{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a', namespace: 'default' } }]);
    const query = 'labelSelector=a%3Db&resourceVersion=11&resourceVersionMatch=NotOlderThan';
    expect(scene.transport.requests.at(-1)?.path).toBe(`/api/v1/namespaces/default/configmaps?${query}`);
  });

  it('is named after its resource', () => {
    expect(new Scene().informer.name).toBe('informer of configmaps');
    const resource = { ...CONFIG_MAPS, group: 'example.com' };
    expect(new Scene({ resource }).informer.name).toBe('informer of configmaps.example.com');
  });
});
