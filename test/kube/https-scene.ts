import { realClock } from '../../src/env/real.ts';
import { seededRandom } from '../../src/env/test.ts';
import { HttpsTransport } from '../../src/kube/https-transport.ts';
import type { TransportRequest, TransportResponse } from '../../src/kube/transport.ts';
import { accessTo, createTestPki, Http2TestServer, type TestAccess } from './tls-server.ts';

/** Transports and servers that are closed after each test. */

export const pki = await createTestPki();
export const cleanups: (() => unknown)[] = [];

/** Closes what the test has opened, the last first. */
export async function cleanUp(): Promise<void> {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
}

/** Time passes by itself, except that what would take seconds is over at once. */
const hurriedClock = {
  now: () => realClock.now(),
  setTimer: (callback: () => void, delayMs: number) =>
    realClock.setTimer(callback, delayMs > 10_000 ? delayMs : delayMs / 100),
};

/** What differs from plain access. */
export type Extra = Partial<TestAccess>;

export function transportTo(port: number, extra: Extra = {}, clock = hurriedClock as typeof realClock) {
  const access = accessTo(port, pki, extra);
  const transport = new HttpsTransport({ access, env: { clock, random: seededRandom(1) } });
  cleanups.push(() => transport.close());
  return { access, transport };
}

export async function http2Server(): Promise<{ server: Http2TestServer; port: number }> {
  const server = new Http2TestServer(pki);
  const port = await server.listen();
  cleanups.push(() => server.close());
  return { server, port };
}

export function request(
  method: TransportRequest['method'] = 'GET',
  path = '/api',
  extra: Partial<TransportRequest> = {},
): TransportRequest {
  return { method, path, headers: { accept: 'application/json' }, signal: new AbortController().signal, ...extra };
}

export async function textOf(response: TransportResponse): Promise<string> {
  let text = '';
  for await (const piece of response.body) text += piece;
  return text;
}
