import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Anything, type Api, withQuery } from '../support/api.ts';
import { InProcessApi } from '../support/in-process.ts';
import { configMap, makeNamespace, makeRoom } from '../support/objects.ts';
import { IS_FULL } from '../support/sample.ts';

/** Lists: pages of one moment, moments of one's choice, and selectors. */

let api: InProcessApi;

beforeAll(async () => {
  api = await InProcessApi.start();
});
afterAll(() => api.stop());

const names = (list: Anything): string[] => list.items.map((item: Anything) => item.metadata.name);

async function create(path: string, name: string, labels: Record<string, string> = {}, on: Api = api): Promise<string> {
  const { json } = (await on.request('POST', path, { body: configMap(name, { labels }) })).expect(201);
  return json.metadata.resourceVersion as string;
}

/** Reads on until there is no more; `between` runs after each page. */
async function pages(
  path: string,
  query: Record<string, string>,
  between = async (): Promise<void> => undefined,
): Promise<Anything[]> {
  const all: Anything[] = [];
  for (let token = ''; ; ) {
    const { json } = (
      await api.request('GET', withQuery(path, { ...query, ...(token === '' ? {} : { continue: token }) }))
    ).expect(200);
    all.push(json);
    token = json.metadata.continue ?? '';
    if (token === '') return all;
    await between();
  }
}

describe('pages', () => {
  it('hold at most the limit, count what remains, and end without a token', async () => {
    const path = await makeRoom(api);
    for (const name of ['e', 'a', 'c', 'b', 'd']) await create(path, name);
    const all = await pages(path, { limit: '2' });
    expect(all.map(names)).toEqual([['a', 'b'], ['c', 'd'], ['e']]);
    expect(all.map(({ metadata }) => metadata.remainingItemCount)).toEqual([3, 1, undefined]);
    expect(new Set(all.map(({ metadata }) => metadata.resourceVersion)).size).toBe(1);
    expect((await pages(path, { limit: '5' })).map(names)).toEqual([['a', 'b', 'c', 'd', 'e']]);
    expect((await pages(path, { limit: '0' })).map(names)).toEqual([['a', 'b', 'c', 'd', 'e']]);
  });

  it('count nothing where a selector hides some', async () => {
    const path = await makeRoom(api);
    for (const name of ['a', 'b', 'c', 'd', 'e']) await create(path, name, { odd: String('ace'.includes(name)) });
    const all = await pages(path, { limit: '2', labelSelector: 'odd=true' });
    expect(all.map(names)).toEqual([['a', 'c'], ['e']]);
    expect(all[0]?.metadata).not.toHaveProperty('remainingItemCount');
  });

  it('go over all namespaces in order, and stay within one', async () => {
    const one = await makeNamespace(api);
    const two = await makeNamespace(api);
    for (const namespace of [two, one]) {
      await create(`/api/v1/namespaces/${namespace}/configmaps`, 'x', { set: one });
      await create(`/api/v1/namespaces/${namespace}/configmaps`, 'y', { set: one });
    }
    const all = await pages('/api/v1/configmaps', { limit: '1', labelSelector: `set=${one}` });
    expect(all.map(({ items }) => `${items[0].metadata.namespace}/${items[0].metadata.name}`)).toEqual([
      `${one}/x`,
      `${one}/y`,
      `${two}/x`,
      `${two}/y`,
    ]);
    const [first] = await pages('/api/v1/configmaps', { limit: '1', labelSelector: `set=${one}` });
    const inside = await api.request(
      'GET',
      withQuery(`/api/v1/namespaces/${one}/configmaps`, { continue: first.metadata.continue }),
    );
    expect(names(inside.json)).toEqual(['y']);
  });

  it('together show one moment, whatever is written between them', async () => {
    const action = fc.record({
      name: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f'),
      kind: fc.constantFrom('write', 'delete'),
    });
    const write = async (path: string, { name, kind }: { name: string; kind: string }): Promise<void> => {
      if (kind === 'delete') await api.request('DELETE', `${path}/${name}`);
      else if ((await api.request('POST', path, { body: configMap(name, { labels: { l: '0' } }) })).status === 409)
        await api.request('PATCH', `${path}/${name}`, {
          body: { metadata: { labels: { l: String(api.store.revision) } } },
          headers: { 'content-type': 'application/merge-patch+json' },
        });
    };
    await fc.assert(
      fc.asyncProperty(
        fc.array(action, { maxLength: 10 }),
        fc.array(action, { maxLength: 20, size: 'max' }),
        fc.integer({ min: 1, max: 4 }),
        fc.constantFrom('', 'l'),
        async (before, during, limit, labelSelector) => {
          const path = await makeRoom(api);
          for (const each of before) await write(path, each);
          const whole = (await api.request('GET', withQuery(path, { labelSelector }))).json;
          const rest = [...during];
          const all = await pages(path, { limit: String(limit), labelSelector }, async () => {
            for (const each of rest.splice(0, 4)) await write(path, each);
          });
          expect(all.flatMap(({ items }) => items)).toEqual(whole.items);
          expect(all.every(({ metadata }) => metadata.resourceVersion === whole.metadata.resourceVersion)).toBe(true);
        },
      ),
      { numRuns: IS_FULL ? 200 : 30 },
    );
  });

  it('that have been compacted are refused with a token for the rest as it is now', async () => {
    const own = await InProcessApi.start({ historyChangesMax: 10 });
    try {
      const path = await makeRoom(own);
      for (const name of ['a', 'b', 'c']) await create(path, name, {}, own);
      const first = (await own.request('GET', `${path}?limit=1`)).json;
      await own.request('DELETE', `${path}/b`);
      for (let index = 0; index < 12; index++) await create(path, `d-${index}`, {}, own);
      const gone = await own.request('GET', withQuery(path, { limit: '1', continue: first.metadata.continue }));
      expect(gone.status).toBe(410);
      expect(gone.json).toMatchObject({ kind: 'Status', reason: 'Expired', code: 410 });
      expect(gone.json.message).toContain('The provided continue parameter is too old');
      const rest = await own.request('GET', withQuery(path, { limit: '2', continue: gone.json.metadata.continue }));
      expect(names(rest.json)).toEqual(['c', 'd-0']);
      const exact = await own.request(
        'GET',
        `${path}?resourceVersion=${first.metadata.resourceVersion}&resourceVersionMatch=Exact`,
      );
      expect(exact.status).toBe(410);
      expect(exact.json).toMatchObject({
        reason: 'Expired',
        message: 'The resourceVersion for the provided list is too old.',
      });
    } finally {
      await own.stop();
    }
  });
});

describe('tokens that were made up', () => {
  it.each(['', 'a/a', 'zz', '\u0000', '\uffff', '../..', '/'])('lead nowhere else: from %j', async (start) => {
    const [one, two] = [await makeNamespace(api), await makeNamespace(api)];
    for (const [namespace, name] of [
      [one, 'a'],
      [one, 'a-more'],
      [two, 'a'],
      [two, 'b'],
    ])
      await create(`/api/v1/namespaces/${namespace}/configmaps`, name ?? '');
    const { resourceVersion } = (await api.request('GET', '/api/v1/namespaces')).json.metadata;
    const path = `/api/v1/namespaces/${one}/configmaps`;
    const queries: Record<string, string>[] = [
      {},
      { limit: '10' },
      { fieldSelector: 'metadata.name=a' },
      { labelSelector: '!x' },
    ];
    for (const after of [start, `${one}/${start}`, `${two}/${start}`]) {
      // At this moment, at an earlier one, and at whatever is newest.
      for (const rv of [Number(resourceVersion), Number(resourceVersion) - 1, -1]) {
        const token = Buffer.from(JSON.stringify({ v: 'godwit.dev/v1', rv, start: after })).toString('base64url');
        for (const query of queries) {
          const answer = await api.request('GET', withQuery(path, { ...query, continue: token }));
          const { items } = answer.expect(200).json;
          for (const { metadata } of items) expect(metadata.namespace).toBe(one);
          if ('fieldSelector' in query) expect(names({ items })).not.toContain('a-more');
        }
      }
    }
  });
});

describe('the moment of a list', () => {
  it('is the newest unless another is asked for', async () => {
    const path = await makeRoom(api);
    const one = await create(path, 'one');
    const two = await create(path, 'two');
    const list = async (query: string): Promise<[string[], string]> => {
      const { json } = (await api.request('GET', `${path}?${query}`)).expect(200);
      return [names(json), json.metadata.resourceVersion];
    };
    const newest = String(api.store.revision);
    expect(await list('')).toEqual([['one', 'two'], newest]);
    expect(await list('resourceVersion=0')).toEqual([['one', 'two'], newest]);
    expect(await list(`resourceVersion=${one}`)).toEqual([['one', 'two'], newest]);
    expect(await list(`resourceVersion=${one}&resourceVersionMatch=NotOlderThan`)).toEqual([['one', 'two'], newest]);
    expect(await list('resourceVersion=0&resourceVersionMatch=NotOlderThan&limit=1')).toEqual([['one'], newest]);
    expect(await list(`resourceVersion=${one}&resourceVersionMatch=Exact`)).toEqual([['one'], one]);
    expect(await list(`resourceVersion=${two}&resourceVersionMatch=Exact`)).toEqual([['one', 'two'], two]);
    // As before there was resourceVersionMatch: paging from a revision means that one.
    expect(await list(`resourceVersion=${one}&limit=500`)).toEqual([['one'], one]);
  });

  it('cannot be in the future', async () => {
    const path = await makeRoom(api);
    for (const query of ['', '&resourceVersionMatch=Exact', '&resourceVersionMatch=NotOlderThan', '&limit=1']) {
      const answer = await api.request('GET', `${path}?resourceVersion=900000000${query}`);
      expect(answer.status).toBe(504);
      expect(answer.json).toMatchObject({
        reason: 'Timeout',
        details: {
          causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
          retryAfterSeconds: 1,
        },
      });
      expect(answer.json.message).toContain(`Too large resource version: 900000000, current: ${api.store.revision}`);
      expect(answer.headers['retry-after']).toBe('1');
    }
    await create(path, 'x');
    expect((await api.request('GET', `${path}/x?resourceVersion=900000000`)).status).toBe(504);
    expect((await api.request('GET', `${path}/x?resourceVersion=1`)).status).toBe(200);
  });

  it.each([
    ['resourceVersionMatch=Exact', 'resourceVersionMatch is forbidden unless resourceVersion is provided'],
    ['resourceVersion=0&resourceVersionMatch=Exact', 'is forbidden for resourceVersion "0"'],
    [
      'resourceVersion=1&resourceVersionMatch=Newest',
      'Unsupported value: "Newest": supported values: "Exact", "NotOlderThan", ""',
    ],
    [
      'resourceVersion=1&resourceVersionMatch=Exact&continue=abc',
      'resourceVersionMatch is forbidden when continue is provided',
    ],
    ['sendInitialEvents=true', 'sendInitialEvents is forbidden for list'],
  ])('refuses %s with 422', async (query, message) => {
    const answer = await api.request('GET', `/api/v1/configmaps?${query}`);
    expect(answer.status).toBe(422);
    expect(answer.json).toMatchObject({ reason: 'Invalid', details: { group: 'meta.k8s.io', kind: 'ListOptions' } });
    expect(answer.json.message).toContain(message);
  });

  it.each([
    ['continue=abc', 'continue key is not valid'],
    [`continue=${Buffer.from('null').toString('base64url')}`, 'continue key is not valid'],
    [
      `continue=${Buffer.from('{"v":"godwit.dev/v1","rv":-5,"start":"a"}').toString('base64url')}`,
      'continue key is not valid',
    ],
    [
      `resourceVersion=1&continue=${Buffer.from('{"v":"godwit.dev/v1","rv":5,"start":"a"}').toString('base64url')}`,
      'specifying resource version is not allowed when using continue',
    ],
    ['resourceVersion=new', 'invalid resource version'],
    ['limit=many', 'strconv.ParseInt: parsing "many": invalid syntax'],
    ['labelSelector=a+in+(b', 'unable to parse'],
    ['fieldSelector=metadata.name', 'invalid selector'],
    ['fieldSelector=data.x%3D1', '"data.x" is not a known field selector'],
  ])('refuses %s with 400', async (query, message) => {
    const answer = await api.request('GET', `/api/v1/configmaps?${query}`);
    expect(answer.status).toBe(400);
    expect(answer.json).toMatchObject({ kind: 'Status', reason: 'BadRequest', code: 400 });
    expect(answer.json.message).toContain(message);
  });
});

describe('selectors', () => {
  let path = '';
  beforeAll(async () => {
    path = await makeRoom(api);
    await create(path, 'a', { tier: 'front', size: '5' });
    await create(path, 'b', { tier: 'back', size: '20' });
    await create(path, 'c', {});
  });

  it.each([
    ['tier=front', 'a'],
    ['tier==front', 'a'],
    ['tier!=front', 'bc'],
    ['tier', 'ab'],
    ['!tier', 'c'],
    ['tier in (front, back)', 'ab'],
    ['tier notin (front)', 'bc'],
    ['tier in (front),size=5', 'a'],
    ['size>7', 'b'],
    ['size<7', 'a'],
    ['tier=', ''],
    ['tier=front,tier=back', ''],
  ])('labels %s', async (labelSelector, expected) => {
    expect(names((await api.request('GET', withQuery(path, { labelSelector }))).expect(200).json).join('')).toBe(
      expected,
    );
  });

  it.each([
    ['metadata.name=a', 'a'],
    ['metadata.name!=a', 'bc'],
    ['metadata.name==b,metadata.name!=c', 'b'],
    ['metadata.name=a,metadata.name=b', ''],
  ])('fields %s', async (fieldSelector, expected) => {
    expect(names((await api.request('GET', withQuery(path, { fieldSelector }))).expect(200).json).join('')).toBe(
      expected,
    );
  });

  it('choose what a collection is deleted by, in rehearsal first', async () => {
    const own = await makeRoom(api);
    for (const name of ['a', 'b', 'c']) await create(own, name, name === 'c' ? {} : { old: 'yes' });
    const { revision } = api.store;
    const rehearsal = (await api.request('DELETE', `${own}?labelSelector=old&dryRun=All`)).expect(200);
    expect(names(rehearsal.json)).toEqual(['a', 'b']);
    expect(api.store.revision).toBe(revision);
    const answer = (await api.request('DELETE', `${own}?labelSelector=old`)).expect(200);
    expect(answer.json).toMatchObject({ kind: 'ConfigMapList', apiVersion: 'v1' });
    expect(names(answer.json)).toEqual(['a', 'b']);
    expect(names((await api.request('GET', own)).json)).toEqual(['c']);
  });
});
