import { constants } from 'node:http2';
import { afterEach, describe, expect, it } from 'vitest';
import { realClock } from '../../src/env/real.ts';
import { ManualClock } from '../../src/env/test.ts';
import { TransportError } from '../../src/kube/transport.ts';
import { eventually } from '../support/eventually.ts';
import { cleanUp, cleanups, type Extra, http2Server, pki, request, textOf, transportTo } from './https-scene.ts';
import { answer, Cable, Http2TestServer } from './tls-server.ts';

/** The transport over TLS against servers that do what servers do on bad days. */

afterEach(cleanUp);

describe('a request', () => {
  it('goes out whole and comes back whole, all over one session', async () => {
    const { server, port } = await http2Server();
    const { transport } = transportTo(port, {
      credential: { authorization: 'Bearer secret' },
      impersonation: { 'impersonate-user': 'jane', 'impersonate-group': ['a', 'b'] },
    });
    const large = 'ä'.repeat(300_000);
    server.handle = ({ stream }) => answer(stream, 201, large, { 'x-thing': 'yes' });
    const body = JSON.stringify({ name: 'größer' });
    const headers = { accept: 'application/json', 'content-type': 'application/json' };
    const responses = await Promise.all(
      Array.from({ length: 20 }, () => transport.send(request('POST', '/api/v1/pods?x=1', { body, headers }))),
    );
    const [first] = responses;
    expect(first?.status).toBe(201);
    expect(first?.headers['x-thing']).toBe('yes');
    for (const response of responses) expect((await textOf(response)) === large).toBe(true);
    expect(server.sessions).toHaveLength(1);
    expect(server.received).toHaveLength(20);
    expect(server.received[0]).toMatchObject({
      method: 'POST',
      path: '/api/v1/pods?x=1',
      body,
      headers: {
        authorization: 'Bearer secret',
        'content-type': 'application/json',
        'content-length': String(Buffer.byteLength(body)),
        'impersonate-user': 'jane',
        'impersonate-group': 'a, b',
      },
    });
  });

  it('goes below the path of the server, by the name that the certificate has', async () => {
    const { server, port } = await http2Server();
    const { transport } = transportTo(port, {
      server: `https://127.0.0.1:${port}/clusters/one/`,
      serverName: 'api.test',
    });
    expect((await transport.send(request('GET', '/api/v1/pods'))).status).toBe(200);
    expect(server.received[0]?.path).toBe('/clusters/one/api/v1/pods');
  });

  it.each<[string, Extra, string]>([
    ['another authority', { authorities: async () => undefined }, 'unable to verify|self-signed'],
    ['another name', { serverName: 'api.elsewhere' }, "does not match certificate's altnames"],
  ])('does not go to a server that shows %s', async (_name, extra, message) => {
    const { server, port } = await http2Server();
    const { transport } = transportTo(port, extra);
    await expect(transport.send(request())).rejects.toThrow(
      new RegExp(`cannot connect to https://127.0.0.1:.*(${message})`),
    );
    expect(server.received).toHaveLength(0);
    const trusting = transportTo(port, { ...extra, isInsecure: true });
    expect((await trusting.transport.send(request())).status).toBe(200);
  });

  it('waits for a server that is not there yet, but not forever', async () => {
    const { server, port } = await http2Server();
    await server.close();
    cleanups.pop();
    const hurried = transportTo(port);
    await expect(hurried.transport.send(request('POST'))).rejects.toThrow(/ECONNREFUSED/);
    const { transport } = transportTo(port, {}, realClock);
    const sending = transport.send(request('POST'));
    const again = new Http2TestServer(pki);
    await again.listen(port);
    cleanups.push(() => again.close());
    expect((await sending).status).toBe(200);
  });

  it('fails when there are no credentials', async () => {
    const { port } = await http2Server();
    const { transport } = transportTo(port, {
      credentials: () => Promise.reject(new Error('the program login failed')),
    });
    const failing = transport.send(request());
    await expect(failing).rejects.toThrow('no credentials: the program login failed');
    await expect(failing).rejects.toBeInstanceOf(TransportError);
  });

  it('is not one of too many', async () => {
    const { server, port } = await http2Server();
    const { transport } = transportTo(port);
    server.handle = () => undefined;
    const sendings = Array.from({ length: 1_000 }, () =>
      transport.send(request()).catch((error: Error) => error.message),
    );
    await expect(transport.send(request())).rejects.toThrow('more than 1000 requests are under way');
    transport.close();
    expect(new Set(await Promise.all(sendings)).size).toBeLessThanOrEqual(3);
  });
});

describe('an answer that asks to come back', () => {
  const cases: readonly [number, string | undefined, string, boolean][] = [
    [429, '1', '/api/v1/pods', true],
    [503, '1', '/api/v1/pods', true],
    [503, '0', '/api/v1/pods', true],
    [503, undefined, '/api/v1/pods', false],
    [500, '1', '/api/v1/pods', false],
    [429, '3600', '/api/v1/pods', false],
    [429, '1', '/api/v1/namespaces/default/pods/a/eviction', false],
  ];

  it.each(cases)('(%i, retry-after %s, %s) is obeyed: %s', async (status, retryAfter, path, isRepeated) => {
    const { server, port } = await http2Server();
    const { transport } = transportTo(port);
    server.handle = ({ stream }) => {
      const isFirst = server.received.length === 1;
      answer(stream, isFirst ? status : 200, '{}', retryAfter === undefined ? {} : { 'retry-after': retryAfter });
    };
    expect((await transport.send(request('POST', path, { body: '{}' }))).status).toBe(isRepeated ? 200 : status);
    expect(server.received).toHaveLength(isRepeated ? 2 : 1);
  });

  it.each([429, 503])('(%i) is given the time that it asks for', async (status) => {
    const { server, port } = await http2Server();
    const delaysMs: number[] = [];
    const setTimer: typeof realClock.setTimer = (callback, delayMs) => {
      delaysMs.push(delayMs);
      return realClock.setTimer(callback, delayMs >= 10_000 ? delayMs : 0);
    };
    const { transport } = transportTo(port, {}, { now: () => realClock.now(), setTimer });
    server.handle = ({ stream }) =>
      answer(stream, server.received.length === 1 ? status : 200, '{}', { 'retry-after': '7' });
    expect((await transport.send(request())).status).toBe(200);
    expect(delaysMs).toContain(7000);
  });

  it('again and again is passed on in the end', async () => {
    const { server, port } = await http2Server();
    const { transport } = transportTo(port);
    server.handle = ({ stream }) => answer(stream, 429, '{}', { 'retry-after': '1' });
    expect((await transport.send(request())).status).toBe(429);
    expect(server.received).toHaveLength(6);
  });

  it('(401) is asked once more with other credentials', async () => {
    const { server, port } = await http2Server();
    const { access, transport } = transportTo(port, { credential: { authorization: 'Bearer old' } });
    access.refused = () => {
      access.credential = { authorization: 'Bearer new' };
    };
    server.handle = ({ stream, headers }) =>
      answer(stream, headers['authorization'] === 'Bearer new' ? 200 : 401, '{}');
    expect((await transport.send(request('POST'))).status).toBe(200);
    access.credential = { authorization: 'Bearer old' };
    access.refused = () => undefined;
    expect((await transport.send(request('POST'))).status).toBe(401);
    expect(server.received).toHaveLength(4);
  });
});

describe('a session that ends', () => {
  it('gently lets what is under way end, and new requests go elsewhere', async () => {
    const { server, port } = await http2Server();
    const { transport } = transportTo(port);
    server.handle = ({ stream }) => {
      stream.respond({ ':status': 200 });
      stream.write('one\n');
    };
    const watch = await transport.send(request('GET', '/watch'));
    const pieces = watch.body[Symbol.asyncIterator]();
    expect((await pieces.next()).value).toBe('one\n');
    server.sessions[0]?.close();
    server.handle = ({ stream }) => answer(stream, 200, '{}');
    await eventually(async () => {
      await transport.send(request());
      expect(server.received.at(-1)?.session).toBe(1);
    });
    server.received[0]?.stream.end('two\n');
    expect((await pieces.next()).value).toBe('two\n');
    expect((await pieces.next()).done).toBe(true);
  });

  it.each([
    [
      'by refusing the stream',
      true,
      (stream: { close(code: number): void }) => stream.close(constants.NGHTTP2_REFUSED_STREAM),
    ],
    ['by breaking', false, (stream: { session?: { destroy(): void } }) => stream.session?.destroy()],
    [
      'by resetting the stream',
      false,
      (stream: { close(code: number): void }) => stream.close(constants.NGHTTP2_INTERNAL_ERROR),
    ],
  ])('%s: a write is repeated if it cannot have been done (%s), a read in any case', async (_name, isRepeated, end) => {
    const { server, port } = await http2Server();
    const { transport } = transportTo(port);
    let isFirst = true;
    server.handle = ({ stream }) => {
      if (isFirst) end(stream as never);
      else answer(stream, 200, '{}');
      isFirst = false;
    };
    const write = transport.send(request('POST', '/api', { body: '{}' }));
    if (isRepeated) expect((await write).status).toBe(200);
    else await expect(write).rejects.toThrow('the connection broke before an answer came');
    expect(server.received).toHaveLength(isRepeated ? 2 : 1);
    isFirst = true;
    expect((await transport.send(request())).status).toBe(200);
  });

  it('by going away has not looked at what came last, which is sent again', async () => {
    const { server, port } = await http2Server();
    const { transport } = transportTo(port);
    server.handle = ({ stream, path, session }) => {
      if (path === '/first') stream.respond({ ':status': 200 });
      else if (session === 0) stream.session?.goaway(0, server.received[0]?.stream.id);
      else answer(stream, 200, '{}');
    };
    await transport.send(request('GET', '/first'));
    expect((await transport.send(request('POST', '/second', { body: '{}' }))).status).toBe(200);
    expect(server.received.map(({ path, session }) => [path, session])).toEqual([
      ['/first', 0],
      ['/second', 0],
      ['/second', 1],
    ]);
  });

  it('gently is kept for its watches, though it can no longer be pinged', async () => {
    const { server, port } = await http2Server();
    const clock = new ManualClock();
    const { transport } = transportTo(port, {}, clock);
    server.handle = ({ stream }) => {
      stream.respond({ ':status': 200 });
      stream.write('one\n');
    };
    const watch = await transport.send(request('GET', '/watch'));
    const pieces = watch.body[Symbol.asyncIterator]();
    await pieces.next();
    server.sessions[0]?.goaway();
    await eventually(() => {
      // One that meets the end of the session is sent again after a pause.
      transport.send(request('GET', '/other')).catch(() => undefined); // The clock below runs past its time.
      clock.advance(100);
      expect(server.sessions.length).toBeGreaterThan(1);
    });
    for (let round = 0; round < 5; round++) {
      clock.advance(30_000);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    server.received[0]?.stream.write('two\n');
    expect((await pieces.next()).value).toBe('two\n');
    clock.advance(10 * 60_000);
    await expect(pieces.next()).rejects.toThrow('the server no longer answers');
  });

  it('in the middle of an answer is told to whoever reads it', async () => {
    const { server, port } = await http2Server();
    const { transport } = transportTo(port);
    server.handle = ({ stream }) => {
      stream.respond({ ':status': 200 });
      stream.write('{"items": [');
    };
    for (const end of ['destroy', 'reset'] as const) {
      const response = await transport.send(request());
      const pieces = response.body[Symbol.asyncIterator]();
      await pieces.next();
      const { stream } = server.received.at(-1) ?? {};
      if (end === 'destroy') stream?.session?.destroy();
      else stream?.destroy(new Error('a bug'));
      await expect(pieces.next()).rejects.toBeInstanceOf(TransportError);
    }
  });

  it('with its certificate: a new one makes a new session', async () => {
    const { server, port } = await http2Server();
    const { certificatePem, keyPem } = await pki.client('old');
    const { access, transport } = transportTo(port, { credential: { certificate: certificatePem, key: keyPem } });
    await transport.send(request());
    const renewed = await pki.client('new');
    access.credential = { certificate: renewed.certificatePem, key: renewed.keyPem };
    await Promise.all([transport.send(request()), transport.send(request())]);
    expect(server.received.map(({ client, session }) => [client, session])).toEqual([
      ['old', 0],
      ['new', 1],
      ['new', 1],
    ]);
  });
});

describe('silence', () => {
  it('of a peer that is gone is noticed by pings, and breaks what waits for it', async () => {
    const { server, port } = await http2Server();
    const cable = new Cable(() => port);
    const cablePort = await cable.listen();
    cleanups.push(() => cable.close());
    const clock = new ManualClock();
    const { transport } = transportTo(cablePort, {}, clock);
    server.handle = ({ stream, path }) => {
      stream.respond({ ':status': 200 });
      if (path === '/watch') stream.write('one\n');
      else stream.end('{}');
    };
    const watch = await transport.send(request('GET', '/watch'));
    const pieces = watch.body[Symbol.asyncIterator]();
    await pieces.next();
    for (let round = 0; round < 3; round++) {
      clock.advance(30_000);
      // A pong that comes in time; a request shows that it has.
      await transport.send(request());
      await transport.send(request());
    }
    expect(server.sessions).toHaveLength(1);
    cable.isPulled = true;
    const next = pieces.next();
    next.catch(() => undefined);
    clock.advance(30_000);
    await new Promise((resolve) => setTimeout(resolve, 20));
    clock.advance(15_000);
    await expect(next).rejects.toThrow('the server no longer answers');
    cable.isPulled = false;
    expect((await transport.send(request())).status).toBe(200);
    expect(server.sessions).toHaveLength(2);
  });

  it('instead of an answer ends after a while, without another try', async () => {
    const { server, port } = await http2Server();
    const clock = new ManualClock();
    const { transport } = transportTo(port, {}, clock);
    server.handle = () => undefined;
    const sending = transport.send(request());
    sending.catch(() => undefined);
    await eventually(() => expect(server.received).toHaveLength(1));
    clock.advance(65_000);
    await expect(sending).rejects.toThrow('no answer within 65 s');
    expect(server.received).toHaveLength(1);
  });

  it('instead of a connection ends after a while', async () => {
    const cable = new Cable(() => 9);
    cable.isPulled = true;
    const port = await cable.listen();
    cleanups.push(() => cable.close());
    const clock = new ManualClock();
    const { transport } = transportTo(port, {}, clock);
    let failure: unknown;
    const sending = transport.send(request()).catch((error: unknown) => (failure = error));
    await eventually(() => {
      clock.advance(10_000);
      expect(failure).toBeDefined();
    });
    await sending;
    expect((failure as Error).message).toMatch('no connection within 10 s');
  });
});

describe('the signal', () => {
  it('ends a request that waits for a connection, an answer, or another try, at once', async () => {
    const cable = new Cable(() => 9);
    cable.isPulled = true;
    const deaf = await cable.listen();
    cleanups.push(() => cable.close());
    const { server, port } = await http2Server();
    const clock = new ManualClock();
    const reset = new Promise<void>((resolve) => {
      server.handle = ({ stream, path }) => {
        if (path === '/busy') return answer(stream, 429, '{}', { 'retry-after': '5' });
        stream.on('close', resolve);
      };
    });
    for (const [where, path] of [
      [deaf, '/'],
      [port, '/busy'],
      [port, '/slow'],
    ] as const) {
      const { transport } = transportTo(where, {}, clock);
      const stop = new AbortController();
      const count = server.received.length;
      const sending = transport.send(request('POST', path, { signal: stop.signal }));
      sending.catch(() => undefined);
      if (where === port) await eventually(() => expect(server.received).toHaveLength(count + 1));
      else await new Promise((resolve) => setTimeout(resolve, 20));
      stop.abort();
      await expect(sending).rejects.toThrow('the request was cancelled');
      await expect(transport.send(request('POST', path, { signal: stop.signal }))).rejects.toThrow('cancelled');
    }
    await reset;
  });

  it('ends a body at once, read or unread, and so does giving it back', async () => {
    const { server, port } = await http2Server();
    const { transport } = transportTo(port);
    let closedCount = 0;
    server.handle = ({ stream }) => {
      stream.respond({ ':status': 200 });
      stream.write('one\n');
      stream.on('close', () => closedCount++);
    };
    const stop = new AbortController();
    const open = () => transport.send(request('GET', '/', { signal: stop.signal }));
    const [waiting, unread, returned] = await Promise.all([open(), open(), open()]);
    const pieces = waiting.body[Symbol.asyncIterator]();
    await pieces.next();
    const next = pieces.next();
    next.catch(() => undefined);
    await returned.body[Symbol.asyncIterator]().return?.();
    await eventually(() => expect(closedCount).toBe(1));
    stop.abort();
    await expect(next).rejects.toThrow('the request was cancelled');
    await expect(textOf(unread)).rejects.toThrow('the request was cancelled');
    expect(await textOf(returned)).toBe('');
    await eventually(() => expect(closedCount).toBe(3));
  });

  it('is not needed when the transport is closed', async () => {
    const { server, port } = await http2Server();
    const { transport } = transportTo(port);
    server.handle = ({ stream, path }) => {
      if (path === '/watch') stream.respond({ ':status': 200 });
    };
    const watch = await transport.send(request('GET', '/watch'));
    const sending = transport.send(request('GET', '/slow'));
    sending.catch(() => undefined);
    await eventually(() => expect(server.received).toHaveLength(2));
    transport.close();
    await expect(sending).rejects.toThrow('the transport was closed');
    await expect(textOf(watch)).rejects.toThrow('the transport was closed');
    await expect(transport.send(request())).rejects.toThrow('the transport was closed');
  });
});
