import { once } from 'node:events';
import { createServer as createPlainServer } from 'node:http';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { realClock } from '../../../env/real.ts';
import { ManualClock } from '../../../env/test.ts';
import { HttpsWebhookTransport, RESPONSE_BYTES_MAX } from './https-transport.ts';
import { TransportError, type WebhookRequest, type WebhookResponse } from './transport.ts';
import { answer, type Respond, startWebhookServer, type WebhookServer } from './webhook-server.fixture.ts';

const BODY = JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request: { uid: 'u' } });
const transport = new HttpsWebhookTransport(realClock);
const closers: (() => Promise<void> | void)[] = [];

afterEach(async () => {
  transport.close();
  while (closers.length > 0) await closers.pop()?.();
});

async function serve(respond: Respond, dnsNames?: readonly string[]): Promise<WebhookServer> {
  const server = await startWebhookServer(respond, dnsNames);
  closers.push(() => server.close());
  return server;
}

function call(server: { port: number; caPem?: string }, more: Partial<WebhookRequest> = {}): Promise<WebhookResponse> {
  return transport.call({
    url: `https://127.0.0.1:${server.port}/validate?timeout=5s`,
    ...(server.caPem === undefined ? {} : { caBundle: server.caPem }),
    body: BODY,
    timeoutMs: 5_000,
    signal: new AbortController().signal,
    ...more,
  });
}

async function failure(promise: Promise<unknown>): Promise<TransportError> {
  const error = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(TransportError);
  return error as TransportError;
}

const allow: Respond = (review, response) => answer(review, response, { allowed: true });

describe('the HTTPS transport', () => {
  it('posts JSON to the path with its query and answers status and body', async () => {
    const types: unknown[] = [];
    const server = await serve((review, response, request) => {
      types.push(request.method, request.headers['content-type']);
      response.statusCode = 418;
      response.end(JSON.stringify(review));
    });
    const { status, body } = await call(server);
    expect([status, Buffer.from(body).toString()]).toEqual([418, BODY]);
    expect(server.paths).toEqual(['/validate?timeout=5s']);
    expect(types).toEqual(['POST', 'application/json']);
  });

  it('keeps one connection for calls that follow each other', async () => {
    const server = await serve(allow);
    for (let round = 0; round < 5; round++) await call(server);
    expect(server.reviews).toHaveLength(5);
    expect(server.connections).toBe(1);
  });

  it('makes many calls at once over a few connections', async () => {
    const server = await serve(allow);
    await Promise.all(Array.from({ length: 100 }, () => call(server, { timeoutMs: 300_000 })));
    expect(server.reviews).toHaveLength(100);
    expect(server.connections).toBeLessThanOrEqual(16);
  });

  it('lets no call wait for long because others do', async () => {
    const server = await serve((review, response) => {
      // Whoever comes first is answered when the last has come.
      if (server.reviews.length === 40) for (const release of held.splice(0)) release();
      if (server.reviews.length < 40) held.push(() => answer(review, response, { allowed: true }));
      else answer(review, response, { allowed: true });
    });
    const held: (() => void)[] = [];
    const answers = await Promise.all(Array.from({ length: 40 }, () => call(server, { timeoutMs: 10_000 })));
    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 40 }, () => 200));
  });

  it('opens no connections for calls that are only many, but for those that others keep waiting', async () => {
    const clock = new ManualClock();
    const patient = new HttpsWebhookTransport(clock);
    closers.push(() => patient.close());
    const held: (() => void)[] = [];
    const server = await serve((review, response) => {
      held.push(() => answer(review, response, { allowed: true }));
    });
    const url = `https://127.0.0.1:${server.port}/validate`;
    const { signal } = new AbortController();
    const request = { url, caBundle: server.caPem, body: BODY, timeoutMs: 10_000, signal };
    const calls = Array.from({ length: 40 }, () => patient.call(request));
    const areUnderWay = (count: number): Promise<void> => vi.waitFor(() => expect(held).toHaveLength(count), 20_000);
    await areUnderWay(16);
    clock.advance(900);
    for (const release of held.splice(0)) release();
    await areUnderWay(16);
    // These have just begun, however long the others wait already.
    clock.advance(900);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(server.connections).toBe(16);
    clock.advance(200);
    await areUnderWay(24);
    expect(server.connections).toBe(24);
    for (const release of held.splice(0)) release();
    expect((await Promise.all(calls)).map(({ status }) => status)).toEqual(Array.from({ length: 40 }, () => 200));
  });

  it('calls first for who came last where there are more than it can call for in time', async () => {
    const clock = new ManualClock();
    const hurried = new HttpsWebhookTransport(clock);
    closers.push(() => hurried.close());
    const held: { readonly name: string; readonly release: () => void }[] = [];
    const server = await serve((review, response) => {
      const { uid } = (review as { readonly request: { readonly uid: string } }).request;
      held.push({ name: uid, release: () => answer(review, response, { allowed: true }) });
    });
    const url = `https://127.0.0.1:${server.port}/validate`;
    const { signal } = new AbortController();
    const make = (name: string): Promise<WebhookResponse> => {
      const body = JSON.stringify({ ...JSON.parse(BODY), request: { uid: name } });
      return hurried.call({ url, caBundle: server.caPem, body, timeoutMs: 10_000, signal });
    };
    const names = (): string[] => held.map((each) => each.name).toSorted();
    const areUnderWay = (wanted: readonly string[]): Promise<void> =>
      vi.waitFor(() => expect(names()).toEqual(wanted.toSorted()), 20_000);
    const named = (prefix: string, count: number): string[] =>
      Array.from({ length: count }, (_, index) => `${prefix}-${index}`);
    const all = named('call', 16 * 7);
    const calls = all.map(make);
    // As long as nobody has waited for half of its time, in the order in which they came.
    for (let round = 0; round < 6; round++) {
      if (round > 0) clock.advance(900);
      for (const { release } of held.splice(0)) release();
      await areUnderWay(all.slice(16 * round, 16 * (round + 1)));
    }
    clock.advance(900);
    calls.push(make('latest'));
    held.shift()?.release();
    await vi.waitFor(() => expect(names()).toContain('latest'), 20_000);
    const rest = all.slice(16 * 6);
    expect(names().filter((name) => rest.includes(name))).toEqual([]);
    for (const { release } of held.splice(0)) release();
    await areUnderWay(rest);
    for (const { release } of held.splice(0)) release();
    expect((await Promise.all(calls)).map(({ status }) => status)).toEqual(calls.map(() => 200));
    expect(server.connections).toBe(16);
  });

  it('keeps the connections that it needed because others took long', async () => {
    const CROWD = 40;
    const held: (() => void)[] = [];
    const server = await serve((review, response) => {
      held.push(() => answer(review, response, { allowed: true }));
      // Whoever comes first is answered when the last has come.
      if (held.length === CROWD) for (const release of held.splice(0)) release();
    });
    for (let round = 0; round < 3; round++)
      await Promise.all(Array.from({ length: CROWD }, () => call(server, { timeoutMs: 10_000 })));
    expect(server.reviews).toHaveLength(3 * CROWD);
    expect(server.connections).toBe(CROWD);
  });

  it('does not share connections between different authorities or names', async () => {
    const server = await serve(allow);
    await call(server);
    expect((await failure(call({ port: server.port }))).message).toBe(
      'tls: failed to verify certificate: x509: certificate signed by unknown authority',
    );
    await call(server, { serverName: 'hook.ns.svc' });
    expect((await failure(call(server, { serverName: 'other.ns.svc' }))).message).toMatch(
      /^tls: failed to verify certificate: x509: /,
    );
  });

  it('tries again on a connection of its own when a kept one was closed under it', async () => {
    const server = await serve((review, response, request) => {
      // Only the second call comes on a used connection; it is cut without an answer.
      if (server.reviews.length === 2) request.socket.destroy();
      else answer(review, response, { allowed: true });
    });
    await call(server);
    expect((await call(server)).status).toBe(200);
    expect(server.connections).toBe(2);
  });

  it('does not try again on a connection that was new', async () => {
    const server = await serve((_, __, request) => request.socket.destroy());
    expect((await failure(call(server))).message).toBe('EOF');
    expect(server.reviews).toHaveLength(1);
  });

  it('gives up at the deadline while waiting for the answer', async () => {
    const server = await serve(() => undefined);
    const error = await failure(call(server, { timeoutMs: 100 }));
    expect([error.message, error.duringBody]).toEqual(['context deadline exceeded', false]);
  });

  it('gives up at the deadline in the middle of a slow body', async () => {
    const server = await serve((_, response) => {
      response.writeHead(200, { 'content-length': '1000' });
      response.write('{');
    });
    const error = await failure(call(server, { timeoutMs: 200 }));
    expect([error.message, error.duringBody]).toEqual(['context deadline exceeded', true]);
  });

  it('gives up at the deadline while a handshake does not come to an end', async () => {
    const silent = createTcpServer().listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const sockets: { destroy(): void }[] = [];
    silent.on('connection', (socket) => sockets.push(socket));
    closers.push(() => {
      for (const socket of sockets) socket.destroy();
      silent.close();
    });
    const error = await failure(call({ port: (silent.address() as AddressInfo).port }, { timeoutMs: 100 }));
    expect(error.message).toBe('context deadline exceeded');
  });

  it('gives up when nobody waits any more', async () => {
    const abort = new AbortController();
    const server = await serve(() => abort.abort());
    expect((await failure(call(server, { signal: abort.signal }))).message).toBe('context canceled');
    expect((await failure(call(server, { signal: AbortSignal.abort() }))).message).toBe('context canceled');
  });

  it('refuses an answer that is too large', async () => {
    const server = await serve((_, response) => response.end(Buffer.alloc(RESPONSE_BYTES_MAX + 1, 0x20)));
    expect((await failure(call(server))).message).toBe(`response is larger than ${RESPONSE_BYTES_MAX} bytes`);
  });

  it('notices an answer that ends too early', async () => {
    const server = await serve((_, response, request) => {
      response.writeHead(200, { 'content-length': '1000' });
      response.write('{', () => request.socket.destroy());
    });
    const error = await failure(call(server));
    expect([error.message, error.duringBody]).toEqual(['unexpected EOF', true]);
  });

  it('says so when nobody listens', async () => {
    const server = await serve(allow);
    await server.close();
    closers.pop();
    expect((await failure(call(server))).message).toBe(
      `dial tcp 127.0.0.1:${server.port}: connect: connection refused`,
    );
  });

  it('speaks TLS only', async () => {
    const plain = createPlainServer((_, response) => response.end('{}')).listen(0, '127.0.0.1');
    await once(plain, 'listening');
    closers.push(() => void plain.close());
    const { port } = plain.address() as AddressInfo;
    expect((await failure(call({ port }))).message).toBe('tls: first record does not look like a TLS handshake');
    expect((await failure(call({ port }, { url: `http://127.0.0.1:${port}/` }))).message).toBe(
      'unsupported protocol scheme "http"',
    );
  });
});
