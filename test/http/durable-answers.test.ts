import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { CommitFault } from '../../src/apiserver/storage/memory-engine.ts';
import type { Answer } from '../support/api.ts';
import { InProcessApi } from '../support/in-process.ts';
import { configMap, makeRoom } from '../support/objects.ts';

/**
 * Nobody hears of a write before it is on disk: not its writer, and not those either whose own request was refused, or
 * had nothing to do, because of it. Here the disk takes its time, and sometimes is full.
 */

let api: InProcessApi;
let path = '';
let isHeld = false;
let waiting: (() => void)[] = [];
let fault: CommitFault | undefined;

beforeEach(async () => {
  isHeld = false;
  fault = undefined;
  const delay = async (): Promise<void> => {
    if (isHeld) await new Promise<void>((resolve) => waiting.push(resolve));
  };
  const once = (): CommitFault | undefined => {
    const now = fault;
    fault = undefined;
    return now;
  };
  api = await InProcessApi.start({ engine: { delay, fault: once } });
  path = await makeRoom(api);
});
afterEach(async () => {
  release();
  await api.stop();
});

function release(): void {
  isHeld = false;
  for (const resume of waiting.splice(0)) resume();
}

/** Lets everything happen that does not need the disk. */
async function pass(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
}

const put = (name: string, data: Record<string, string>, metadata = {}): Promise<Answer> => {
  const object = configMap(name, { data }) as { metadata: object };
  return api.request('PUT', `${path}/${name}`, { body: { ...object, metadata: { ...object.metadata, ...metadata } } });
};

interface Case {
  readonly what: string;
  /** What is written first, and held up by the disk. */
  readonly first: () => Promise<Answer>;
  readonly second: (resourceVersion: string) => Promise<Answer>;
  /** What the second request is answered when the first has been stored, and when it has failed. */
  readonly stored: number;
  readonly failed: number;
}

const MERGE_PATCH = { 'content-type': 'application/merge-patch+json' };
const cases: readonly Case[] = [
  {
    what: 'an update that changes nothing',
    first: () => put('there', { a: '2' }),
    second: () => put('there', { a: '2' }),
    stored: 200,
    failed: 200,
  },
  {
    what: 'an update of an older version',
    first: () => put('there', { a: '2' }),
    second: (resourceVersion) => put('there', { a: '3' }, { resourceVersion }),
    stored: 409,
    failed: 200,
  },
  {
    what: 'a creation of what is there already',
    first: () => api.request('POST', path, { body: configMap('new') }),
    second: () => api.request('POST', path, { body: configMap('new') }),
    stored: 409,
    failed: 201,
  },
  {
    what: 'an update of what is deleted',
    first: () => api.request('DELETE', `${path}/there`),
    second: () => put('there', { a: '2' }),
    stored: 404,
    failed: 200,
  },
  {
    what: 'a second deletion',
    first: () => api.request('DELETE', `${path}/there`),
    second: () => api.request('DELETE', `${path}/there`),
    stored: 404,
    failed: 200,
  },
  {
    what: 'a patch whose test fails',
    first: () => put('there', { a: '2' }),
    second: () =>
      api.request('PATCH', `${path}/there`, {
        headers: { 'content-type': 'application/json-patch+json' },
        body: [
          { op: 'test', path: '/data/a', value: '1' },
          { op: 'add', path: '/data/b', value: '1' },
        ],
      }),
    stored: 422,
    failed: 200,
  },
  {
    what: 'a rehearsal',
    first: () => put('there', { a: '2' }),
    second: () =>
      api.request('PATCH', `${path}/there?dryRun=All`, { headers: MERGE_PATCH, body: { data: { b: '1' } } }),
    stored: 200,
    failed: 200,
  },
];

describe.each(cases)('$what', ({ first, second, stored, failed }) => {
  async function race(outcome: CommitFault | undefined): Promise<[Answer, Answer]> {
    const { resourceVersion } = (
      await api.request('POST', path, { body: configMap('there', { data: { a: '1' } }) })
    ).expect(201).json.metadata;
    fault = outcome;
    isHeld = true;
    let answered = 0;
    const count = (answer: Answer): Answer => {
      answered++;
      return answer;
    };
    const one = first().then(count);
    await pass();
    const two = second(resourceVersion).then(count);
    await pass();
    expect(answered).toBe(0);
    release();
    return [await one, await two];
  }

  it('is answered when what it rests on is stored', async () => {
    const [one, two] = await race(undefined);
    expect(one.status).toBeLessThan(300);
    expect(two.status).toBe(stored);
  });

  it('is carried out when what it rested on has failed', async () => {
    const [one, two] = await race('disk-full');
    expect(one.status).toBe(500);
    // The disk has room again by then; a write that was staged together with the failed one fails with it.
    expect([failed, 500]).toContain(two.status);
    expect((await second('')).status).toBeLessThan(500);
  });
});
