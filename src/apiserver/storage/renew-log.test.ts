import { describe, expect, it } from 'vitest';
import { MemoryEngine } from './memory-engine.ts';
import { ExpiredRevision } from './model.ts';
import type { LogEntry } from './port.ts';
import { renewLog } from './renew-log.ts';
import { Store } from './store.ts';

const object = (name: string, revision: number): string =>
  JSON.stringify({ metadata: { name, resourceVersion: String(revision) }, spec: name });
const put = (revision: number, key: string, previous = 0): LogEntry => ({
  revision,
  type: 'put',
  bucket: 'pods',
  key,
  text: object(key, revision),
  previous,
});

const NOW_MS = Date.UTC(2026, 10, 1);

describe('a log that was restored', () => {
  it('has its objects as they were last, with versions above all that were ever given out', async () => {
    const engine = new MemoryEngine();
    await engine.commit([put(2, 'a'), put(3, 'b'), put(4, 'a', 2), { ...put(5, 'b', 3), type: 'delete' }], []);
    expect(await renewLog(engine, NOW_MS)).toBe(1);
    const store = await Store.open(engine, { onFatal: () => undefined });
    const [item] = store.list('pods', {}).items;
    expect(item?.revision).toBeGreaterThan(2 ** 40);
    expect(JSON.parse(item?.text ?? '')).toEqual({
      metadata: { name: 'a', resourceVersion: String(item?.revision) },
      spec: 'a',
    });
    expect(store.get('pods', 'b')).toBeUndefined();
    // Whoever knows something of after the backup has to look at everything again.
    for (const before of [4, 5, 1000, 2 ** 39])
      expect(() => store.changesSince('pods', before)).toThrow(ExpiredRevision);
  });

  it('can be amended on the way, and renewed again', async () => {
    const engine = new MemoryEngine();
    await engine.commit([put(2, 'a'), put(3, 'b')], []);
    await renewLog(engine, NOW_MS, (objects) =>
      objects
        .filter(({ key }) => key === 'b')
        .map((each) => ({ ...each, object: { ...each.object, spec: `${objects.length} seen` } })),
    );
    await renewLog(engine, NOW_MS);
    const store = await Store.open(engine, { onFatal: () => undefined });
    const specs = store.list('pods', {}).items.map(({ text }) => (JSON.parse(text) as { spec: string }).spec);
    expect(specs).toEqual(['a', '2 seen']);
  });

  it('is given other versions each time, also where the same backup is restored again, in fifteen digits', async () => {
    const firsts: number[] = [];
    for (const ms of [NOW_MS, NOW_MS + 1000, Date.UTC(2080, 0, 1)]) {
      const engine = new MemoryEngine();
      await engine.commit([put(2, 'a'), put(3, 'b')], []);
      await renewLog(engine, ms);
      const [item] = (await Store.open(engine, { onFatal: () => undefined })).list('pods', {}).items;
      firsts.push(item?.revision ?? 0);
    }
    expect(firsts).toEqual([...new Set(firsts)].sort((a, b) => a - b));
    expect(String(firsts.at(-1))).toHaveLength(15);
    const engine = new MemoryEngine();
    await engine.commit([put(9e14, 'a')], []);
    await expect(renewLog(engine, Date.UTC(2100, 0, 1))).rejects.toThrow('is the clock right?');
  });

  it('may be empty', async () => {
    const engine = new MemoryEngine();
    expect(await renewLog(engine, NOW_MS)).toBe(0);
  });
});
