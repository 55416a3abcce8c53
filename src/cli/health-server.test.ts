import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../../test/support/eventually.ts';
import { freePort } from '../../test/support/network.ts';
import { HealthServer } from './health-server.ts';

/** What those who watch over a process are answered. */

const stop = new AbortController();
let running: Promise<void>;
let url = '';
let notReady: string | undefined;

beforeAll(async () => {
  const address = { host: '127.0.0.1', port: await freePort() };
  url = `http://${address.host}:${address.port}`;
  const server = new HealthServer({ ...address, metrics: async () => 'guests 7\n', notReady: () => notReady });
  running = server.run(stop.signal);
  await eventually(() => fetch(url));
});
afterAll(async () => {
  stop.abort();
  await running;
});

async function answer(path: string, method = 'GET'): Promise<string> {
  const response = await fetch(`${url}${path}`, { method });
  return `${response.status} ${await response.text()}`;
}

describe('a process', () => {
  it('is ready where nothing speaks against it, and says what does', async () => {
    notReady = undefined;
    expect(await answer('/readyz')).toBe('200 ok');
    notReady = 'it waits for others';
    expect(await answer('/readyz')).toBe('503 it waits for others\n');
  });

  it.each(['/healthz', '/livez'])('lives all the same, by %s', async (path) => {
    notReady = 'it waits for others';
    expect(await answer(path)).toBe('200 ok');
  });

  it('says what it does, and nothing else', async () => {
    expect(await answer('/metrics')).toBe('200 guests 7\n');
    expect(await answer('/')).toBe('404 not found\n');
    expect(await answer('/metrics', 'POST')).toBe('404 not found\n');
  });
});
