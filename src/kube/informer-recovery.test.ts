import { afterEach, describe, expect, it } from 'vitest';
import type { KubeObject } from '../api/meta.ts';
import type { InformerChange } from './informer.ts';
import { added, deleted, endScenes, list, modified, Scene, STREAM, watchFrom } from './informer-scene.fixture.ts';
import { bookmark, failure, ScriptedWatch, settle, thing } from './scripted-transport.fixture.ts';

afterEach(endScenes);

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
