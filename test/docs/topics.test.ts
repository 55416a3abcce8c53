import { afterAll, beforeAll, it, vi } from 'vitest';
import { WITHOUT_NODES } from './played.ts';
import { Reader } from './reader.ts';

/** Somebody who types what pages about one topic show, where that needs no guest. */

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 });

let reader: Reader;
beforeAll(async () => {
  reader = new Reader();
  await reader.start(0);
});
afterAll(() => reader.leave());

it.each(WITHOUT_NODES)('%s', (page) => reader.follow(page));
