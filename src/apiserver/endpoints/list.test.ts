import { beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { configMapDefinition as definition } from '../../api/kinds/core/config-map.ts';
import type { Clock } from '../../env/ports.ts';
import { ManualClock } from '../../env/test.ts';
import type { ApiResponse } from '../http/message.ts';
import { MemoryEngine } from '../storage/memory-engine.ts';
import { Store } from '../storage/store.ts';
import { answerList } from './list.ts';
import type { Representation } from './negotiate.ts';

const COUNT = 600;

let store: Store;

beforeAll(async () => {
  store = await Store.open(new MemoryEngine(), { onFatal: (error) => expect.fail(error.message) });
  await Promise.all(
    Array.from({ length: COUNT }, (_unused, index) => {
      const [namespace, name] = [index % 2 === 0 ? 'even' : 'odd', `map-${String(index).padStart(4, '0')}`];
      return store.put({
        bucket: 'configmaps',
        key: `${namespace}/${name}`,
        expected: 0,
        encode: (revision) =>
          JSON.stringify({
            apiVersion: 'v1',
            kind: 'ConfigMap',
            metadata: { name, namespace, resourceVersion: String(revision), labels: { third: String(index % 3) } },
            data: { payload: '- : {x}\n' + 'x'.repeat(600) },
          }),
      });
    }),
  );
});

function list(query: string, representation: Representation, clock: Clock = new ManualClock()): Promise<ApiResponse> {
  return answerList({ clock, store, definition, namespace: '', query: new URLSearchParams(query), representation });
}

async function textOf({ body }: ApiResponse): Promise<{ text: string; chunks: number }> {
  if (typeof body === 'string' || body instanceof Uint8Array) return { text: String(body), chunks: 1 };
  let text = '';
  let chunks = 0;
  for await (const chunk of body) {
    text += String(chunk);
    chunks++;
  }
  return { text, chunks };
}

const names = (value: unknown): string[] =>
  (value as { items: { metadata: { name: string } }[] }).items.map(({ metadata }) => metadata.name);

describe('a list', () => {
  for (const as of ['Object', 'Table', 'PartialObjectMetadata'] as const) {
    it.each(['', 'limit=1', 'labelSelector=third%3D1', 'fieldSelector=metadata.name%3Dnobody'])(
      `of ${as}s says the same in JSON and in YAML, whole or in chunks: %s`,
      async (query) => {
        const json = await textOf(await list(query, { format: 'json', as, contentType: 'application/json' }));
        const yaml = await textOf(await list(query, { format: 'yaml', as, contentType: 'application/yaml' }));
        const value = JSON.parse(json.text) as { items?: unknown[]; rows?: unknown[] };
        expect(parse(yaml.text)).toEqual(value);
        const count = query === '' ? COUNT : query.startsWith('label') ? COUNT / 3 : query === 'limit=1' ? 1 : 0;
        expect(value.items ?? value.rows).toHaveLength(count);
        if (query === '' && as === 'Object') expect(json.chunks).toBeGreaterThan(1);
      },
    );
  }

  it('finds by name and namespace what a look at every object would find', async () => {
    const plain: Representation = { format: 'json', as: 'Object', contentType: 'application/json' };
    const found = async (selector: string): Promise<string[]> =>
      names(JSON.parse((await textOf(await list(`fieldSelector=${encodeURIComponent(selector)}`, plain))).text));
    expect(await found('metadata.name=map-0007')).toEqual(['map-0007']);
    expect(await found('metadata.name=map-000')).toEqual([]);
    expect(await found('metadata.namespace=odd,metadata.name=map-0007')).toEqual(['map-0007']);
    expect(await found('metadata.namespace=even,metadata.name=map-0007')).toEqual([]);
    expect(await found('metadata.namespace=odd')).toHaveLength(COUNT / 2);
    expect(await found('metadata.namespace=od')).toEqual([]);
    expect(await found('metadata.namespace!=odd,metadata.name!=map-0000')).toHaveLength(COUNT / 2 - 1);
  });

  it('lets others go on while it looks at many objects, and while it writes them', async () => {
    const pausesOf = async (query: string): Promise<number> => {
      // Every look at the clock shows that a millisecond has gone by.
      let nowMs = 0;
      let pauses = 0;
      const clock: Clock = {
        now: () => nowMs++,
        setTimer: (callback) => {
          pauses++;
          queueMicrotask(callback);
          return { cancel: () => undefined };
        },
      };
      const answer = await list(query, { format: 'json', as: 'Table', contentType: '' }, clock);
      expect((JSON.parse((await textOf(answer)).text) as { rows: unknown[] }).rows).toHaveLength(COUNT);
      return pauses;
    };
    const writing = await pausesOf('');
    expect(writing).toBeGreaterThan(0);
    expect(await pausesOf('labelSelector=third')).toBe(2 * writing);
  });
});

describe('a list without an end', () => {
  const itemsMax = 100;
  const json: Representation = { format: 'json', as: 'Object', contentType: 'application/json' };
  const read = async (query: string): Promise<{ items: unknown[]; metadata: Record<string, unknown> }> => {
    const parameters = new URLSearchParams(query);
    const request = { clock: new ManualClock(), store, definition, namespace: '', query: parameters, itemsMax };
    const { text } = await textOf(await answerList({ ...request, representation: json }));
    return JSON.parse(text) as { items: unknown[]; metadata: Record<string, unknown> };
  };

  it.each(['', 'labelSelector=third%3D1'])('is refused to who does not page: %j', async (query) => {
    await expect(read(query)).rejects.toMatchObject({ code: 413, reason: 'RequestEntityTooLarge' });
  });

  it.each(['', 'labelSelector=third%3D1'])(
    'is given in pages that are no larger, whatever is asked: %j',
    async (query) => {
      const { items, metadata } = await read(`${query}&limit=5000`);
      expect(items).toHaveLength(itemsMax);
      expect(metadata['continue']).toBeTruthy();
    },
  );

  it('is none where it just fits', async () => {
    const { items } = await read('labelSelector=third%3D1&fieldSelector=metadata.namespace%3Deven');
    expect(items).toHaveLength(itemsMax);
  });
});
