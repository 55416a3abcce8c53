import { beforeEach, describe, expect, it } from 'vitest';
import type { KubeObject } from '../../api/meta.ts';
import { OwnWrites } from './own-writes.ts';

const pod = (resourceVersion: string): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { uid: 'pod', resourceVersion },
});

let others: string[];
let writes: OwnWrites;
beforeEach(() => {
  others = [];
  writes = new OwnWrites((uid) => others.push(uid));
});

/** A write that is answered when the test says so. */
function begin(): { readonly answer: (version: string) => Promise<unknown>; readonly fail: () => Promise<unknown> } {
  let settle: { resolve: (object: KubeObject) => void; reject: (error: Error) => void } | undefined;
  const done = writes.write('pod', () => {
    return new Promise<KubeObject>((resolve, reject) => (settle = { resolve, reject }));
  });
  const ended = done.catch(() => undefined);
  return {
    answer: (version) => {
      settle?.resolve(pod(version));
      return ended;
    },
    fail: () => {
      settle?.reject(new Error('nobody knows'));
      return ended;
    },
  };
}

describe('a change', () => {
  it("is somebody else's where nothing was written here", () => {
    writes.heard(pod('1'));
    expect(others).toEqual(['pod']);
  });

  it('is no news where it was made here, whichever is heard first, the answer or the echo', async () => {
    await begin().answer('2');
    writes.heard(pod('2'));
    const second = begin();
    writes.heard(pod('3'));
    await second.answer('3');
    expect(others).toEqual([]);
  });

  it.each([
    ['after the echo', ['2', '3']],
    ['in its place, the echo having been skipped', ['3']],
  ])("is somebody else's where it comes %s", async (_, versions) => {
    await begin().answer('2');
    for (const version of versions) writes.heard(pod(version));
    expect(others).toEqual(['pod']);
  });

  it("is somebody else's where it was heard during a write that it was not made by", async () => {
    const write = begin();
    writes.heard(pod('1'));
    expect(others).toEqual([]);
    await write.answer('2');
    expect(others).toEqual(['pod']);
    writes.heard(pod('2'));
    expect(others).toEqual(['pod']);
  });

  it("may be anybody's where nobody knows what became of a write", async () => {
    const write = begin();
    writes.heard(pod('2'));
    await write.fail();
    expect(others).toEqual(['pod']);
    writes.heard(pod('3'));
    expect(others).toEqual(['pod', 'pod']);
  });
});

it('that it is gone is always news', async () => {
  await begin().answer('2');
  writes.gone('pod');
  writes.heard(pod('2'));
  expect(others).toEqual(['pod', 'pod']);
});
