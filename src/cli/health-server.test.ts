import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../../test/support/eventually.ts';
import { freePort } from '../../test/support/network.ts';
import { HealthServer } from './health-server.ts';

/** What those who watch over a process are answered. */

const elector = { isInTouch: false };
const stop = new AbortController();
const running: Promise<void>[] = [];
/** Of a process that stands for a lease, and of one that does not. */
let [standing, other] = ['', ''];

beforeAll(async () => {
  standing = await serve({ elector });
  other = await serve({});
});
afterAll(async () => {
  stop.abort();
  await Promise.all(running);
});

async function serve(options: { readonly elector?: { readonly isInTouch: boolean } }): Promise<string> {
  const address = { host: '127.0.0.1', port: await freePort() };
  const server = new HealthServer({ ...address, metrics: async () => 'guests 7\n', ...options });
  running.push(server.run(stop.signal));
  const url = `http://${address.host}:${address.port}`;
  await eventually(() => fetch(url));
  return url;
}

async function answer(url: string, method = 'GET'): Promise<string> {
  const response = await fetch(url, { method });
  return `${response.status} ${await response.text()}`;
}

describe('a process', () => {
  it('that stands for a lease is ready while it is in touch with it', async () => {
    elector.isInTouch = false;
    expect(await answer(`${standing}/readyz`)).toBe('503 the lease was not read or renewed for as long as it lasts\n');
    elector.isInTouch = true;
    expect(await answer(`${standing}/readyz`)).toBe('200 ok');
  });

  it.each(['/healthz', '/livez'])('lives all the same, by %s', async (path) => {
    elector.isInTouch = false;
    expect(await answer(`${standing}${path}`)).toBe('200 ok');
  });

  it('that stands for no lease is ready', async () => expect(await answer(`${other}/readyz`)).toBe('200 ok'));

  it('says what it does, and nothing else', async () => {
    expect(await answer(`${standing}/metrics`)).toBe('200 guests 7\n');
    expect(await answer(`${standing}/`)).toBe('404 not found\n');
    expect(await answer(`${standing}/metrics`, 'POST')).toBe('404 not found\n');
  });
});
