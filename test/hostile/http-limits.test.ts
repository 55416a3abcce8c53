import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from 'node:http2';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { HttpLimits } from '../../src/apiserver/http/limits.ts';
import type { ApiRequest, ApiResponse } from '../../src/apiserver/http/message.ts';
import { HttpServer } from '../../src/apiserver/http/server.ts';
import { ApiError } from '../../src/api/status.ts';
import { errorResponse } from '../../src/apiserver/http/outgoing.ts';
import { type ClusterPki, loadOrCreatePki } from '../../src/apiserver/pki/cluster-pki.ts';
import { realClock, realRandom } from '../../src/env/real.ts';
import { silentLogger } from '../../src/env/test.ts';
import { eventually } from '../support/eventually.ts';
import { RawConnection } from '../support/raw-connection.ts';

/** The waiting times of the real server are long; here they are short, and the server is a bare one. */

const env = { clock: realClock, random: realRandom, log: silentLogger };
const SHORT_MS = 300;
/** Longer than any test: what has this limit is not what the test is about. */
const NEVER_MS = 10 * 60_000;
const PATIENT: Partial<HttpLimits> = {
  headersTimeoutMs: NEVER_MS,
  bodyTimeoutMs: NEVER_MS,
  idleTimeoutMs: NEVER_MS,
  writeTimeoutMs: NEVER_MS,
  lingerMs: NEVER_MS,
};

let pki: ClusterPki;
beforeAll(async () => {
  const directory = await mkdtemp(join(tmpdir(), 'godwit-test-'));
  pki = await loadOrCreatePki(directory, env, []);
  await rm(directory, { recursive: true });
});

const running: HttpServer[] = [];
afterAll(() => Promise.all(running.map((server) => server.stop())));

type Handler = (request: ApiRequest) => Promise<ApiResponse>;

const ok: Handler = async () => ({ status: 200, headers: {}, body: 'fine' });
const readsBody: Handler = async (request) => {
  try {
    return { status: 200, headers: {}, body: `${(await request.body()).length} bytes` };
  } catch (error) {
    return errorResponse(ApiError.from(error));
  }
};

async function serve(handle: Handler, limits: Partial<HttpLimits> = {}): Promise<string> {
  const server = new HttpServer({
    host: '127.0.0.1',
    port: 0,
    certificate: pki.server.certificatePem,
    key: pki.server.keyPem,
    clientAuthorities: [pki.clusterAuthority.certificatePem],
    clock: realClock,
    log: silentLogger,
    handle,
    upgrade: async (_request, socket) => void socket.destroy(),
    limits: { ...PATIENT, ...limits },
  });
  running.push(server);
  return `https://127.0.0.1:${await server.listen()}`;
}

function session(url: string): ClientHttp2Session {
  const opened = connect(url, { rejectUnauthorized: false });
  opened.on('error', () => undefined);
  return opened;
}

/** The answer to a stream: its status and body, and the code it was closed with. */
async function answerOf(stream: ClientHttp2Stream): Promise<{ status: number; body: string; code: number }> {
  let status = 0;
  let body = '';
  stream.setEncoding('utf8');
  stream.on('response', (headers) => (status = Number(headers[':status'])));
  stream.on('data', (chunk: string) => (body += chunk));
  stream.on('error', () => undefined);
  await once(stream, 'close');
  return { status, body, code: stream.rstCode };
}

describe('clients that are slow, or silent', () => {
  it('ends a connection that never finishes its TLS handshake', async () => {
    const url = await serve(ok, { headersTimeoutMs: SHORT_MS });
    const connection = await RawConnection.plain(url);
    await connection.write(Buffer.from([0x16, 0x03, 0x01, 0x02]));
    expect(await connection.ended()).toBe('');
  });

  it('ends a connection that speaks no TLS at all', async () => {
    const url = await serve(ok);
    const connection = await RawConnection.plain(url);
    await connection.write('GET /livez HTTP/1.1\r\nHost: x\r\n\r\n');
    expect(await connection.ended()).not.toContain('200');
  });

  it.each([['http/1.1'], ['h2']])('ends an %s connection that never asks for anything', async (protocol) => {
    const url = await serve(ok, { headersTimeoutMs: SHORT_MS });
    const connection = await RawConnection.tls(url, { ALPNProtocols: [protocol] });
    expect(await connection.ended()).not.toContain('200 OK');
  });

  it('ends a connection whose headers come byte by byte', async () => {
    const url = await serve(ok, { headersTimeoutMs: SHORT_MS });
    const connection = await RawConnection.tls(url);
    const trickle = setInterval(() => connection.socket.write('X'), 20);
    await connection.write('GET /livez HTTP/1.1\r\nX-Slow: ');
    await connection.ended();
    clearInterval(trickle);
    expect(connection.text).not.toContain('200 OK');
  });

  it('ends an HTTP/2 connection whose header block is never finished', async () => {
    const url = await serve(ok, { headersTimeoutMs: SHORT_MS });
    const connection = await RawConnection.tls(url, { ALPNProtocols: ['h2'] });
    await connection.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
    await connection.write(frame(0x4, 0, 0, Buffer.alloc(0)));
    // HEADERS of stream 1 without END_HEADERS, and nothing after it.
    await connection.write(frame(0x1, 0, 1, Buffer.from([0x82])));
    await connection.ended();
  });

  it('answers 408 to a body that never comes, then ends the HTTP/1.1 connection', async () => {
    const url = await serve(readsBody, { bodyTimeoutMs: SHORT_MS, lingerMs: SHORT_MS });
    const connection = await RawConnection.tls(url);
    await connection.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc');
    const text = await connection.ended();
    expect(text).toMatch(/^HTTP\/1\.1 408 /);
    expect(text).toContain('"reason":"Timeout"');
  });

  it('answers 408 to a body that never comes, then resets the HTTP/2 stream and nothing else', async () => {
    const url = await serve(readsBody, { bodyTimeoutMs: SHORT_MS, lingerMs: SHORT_MS });
    const client = session(url);
    const slow = client.request({ ':method': 'POST', ':path': '/' }, { endStream: false });
    slow.write('abc');
    expect(await answerOf(slow)).toMatchObject({ status: 408, code: constants.NGHTTP2_CANCEL });
    const quick = client.request({ ':method': 'POST', ':path': '/' }, { endStream: false });
    quick.end('abc');
    expect(await answerOf(quick)).toMatchObject({ status: 200, body: '3 bytes' });
    client.destroy();
  });

  it.each([['http/1.1'], ['h2']])('drops an %s body that nobody wants after a while', async (protocol) => {
    const url = await serve(ok, { lingerMs: SHORT_MS });
    if (protocol === 'h2') {
      const client = session(url);
      const stream = client.request({ ':method': 'POST', ':path': '/' }, { endStream: false });
      expect(await answerOf(stream)).toMatchObject({ status: 200, body: 'fine' });
      client.destroy();
    } else {
      const connection = await RawConnection.tls(url);
      await connection.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc');
      expect(await connection.ended()).toMatch(/^HTTP\/1\.1 200 OK[^]*fine$/);
    }
  });

  it('takes a body that nobody wants when it comes in time, and goes on with the connection', async () => {
    const url = await serve(ok);
    const connection = await RawConnection.tls(url);
    await connection.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\nabc');
    await connection.receive('fine');
    await connection.write('defGET / HTTP/1.1\r\nHost: x\r\n\r\n');
    await connection.receive(/fine[^]*fine/);
    connection.destroy();
  });

  it.each([['http/1.1'], ['h2']])('closes an %s connection that has become idle', async (protocol) => {
    const url = await serve(ok, { headersTimeoutMs: SHORT_MS, idleTimeoutMs: SHORT_MS });
    if (protocol === 'h2') {
      const client = session(url);
      expect(await answerOf(client.request({ ':path': '/' }))).toMatchObject({ status: 200 });
      await once(client, 'close');
    } else {
      const connection = await RawConnection.tls(url);
      await connection.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
      expect(await connection.ended()).toMatch(/200 OK[^]*fine$/);
    }
  });

  it.each([['http/1.1'], ['h2']])('lets an %s stream without events live on beyond every limit', async (protocol) => {
    const end = new AbortController();
    const url = await serve(async () => ({ status: 200, headers: {}, body: lines(end.signal) }), {
      idleTimeoutMs: SHORT_MS,
      headersTimeoutMs: SHORT_MS,
      bodyTimeoutMs: SHORT_MS,
      writeTimeoutMs: SHORT_MS,
    });
    const quiet = setTimeout(() => end.abort(), 5 * SHORT_MS);
    if (protocol === 'h2') {
      const client = session(url);
      expect(await answerOf(client.request({ ':path': '/' }))).toMatchObject({
        status: 200,
        body: 'first\nlast\n',
        code: 0,
      });
      client.destroy();
    } else {
      const connection = await RawConnection.tls(url);
      await connection.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
      await connection.receive(/first[^]*last\n\r\n0\r\n\r\n$/);
      connection.destroy();
    }
    clearTimeout(quiet);
  });
});

async function* lines(end: AbortSignal): AsyncGenerator<string> {
  yield 'first\n';
  if (!end.aborted) await once(end, 'abort');
  yield 'last\n';
}

function frame(type: number, flags: number, stream: number, payload: Uint8Array): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

describe('clients that do not read', () => {
  /** More than any socket buffers. */
  const LARGE_BYTES = 64 * 1024 * 1024;
  const bodies: [string, () => ApiResponse['body']][] = [
    ['a whole answer', () => Buffer.alloc(LARGE_BYTES)],
    [
      'a stream',
      async function* (): AsyncGenerator<string> {
        for (let sent = 0; sent < LARGE_BYTES; sent += 65_536) yield 'x'.repeat(65_536);
      },
    ],
  ];

  it.each(bodies)('are cut off from %s over HTTP/1.1', async (_name, body) => {
    const url = await serve(async () => ({ status: 200, headers: {}, body: body() }), { writeTimeoutMs: SHORT_MS });
    const connection = await RawConnection.tls(url);
    connection.socket.pause();
    await connection.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    // Nothing is read, so the end is only seen in that the kernel takes no more.
    await eventually(async () => {
      await connection.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
      expect(connection.socket.destroyed).toBe(true);
    });
  });

  it.each(bodies)('are cut off from %s over HTTP/2, and only from that', async (_name, body) => {
    const url = await serve(
      async ({ path }) => ({ status: 200, headers: {}, body: path === '/small' ? 'fine' : body() }),
      { writeTimeoutMs: SHORT_MS },
    );
    const client = session(url);
    const stream = client.request({ ':path': '/large' });
    stream.on('error', () => undefined);
    await once(stream, 'response');
    await once(stream, 'close');
    expect(stream.rstCode).not.toBe(constants.NGHTTP2_NO_ERROR);
    expect(await answerOf(client.request({ ':path': '/small' }))).toMatchObject({ status: 200, body: 'fine' });
    client.destroy();
  });

  it('frees what a stream holds when it is never started', async () => {
    let isFreed = false;
    const body: AsyncIterableIterator<string> = {
      [Symbol.asyncIterator]: () => body,
      next: async () => ({ done: false, value: 'x' }),
      return: async () => {
        isFreed = true;
        return { done: true, value: undefined };
      },
    };
    const url = await serve(async () => ({ status: 200, headers: {}, body }));
    const client = session(url);
    expect(await answerOf(client.request({ ':method': 'HEAD', ':path': '/' }))).toMatchObject({
      status: 200,
      body: '',
    });
    expect(isFreed).toBe(true);
    client.destroy();
  });
});

describe('bodies that are too large', () => {
  const LIMIT = 1024;
  const refused = {
    code: 413,
    reason: 'RequestEntityTooLarge',
    message: `Request entity too large: limit is ${LIMIT}`,
  };
  const limits = { bodyBytesMax: LIMIT, lingerMs: SHORT_MS };

  it.each([
    ['announced', 'Content-Length: 100000\r\n\r\n'],
    ['announced beyond all reason', `Content-Length: 9007199254740991\r\n\r\n`],
    ['in chunks', `Transfer-Encoding: chunked\r\n\r\n800\r\n${'x'.repeat(0x800)}\r\n`],
  ])('are refused with a Status over HTTP/1.1: %s', async (_name, rest) => {
    const url = await serve(readsBody, limits);
    const connection = await RawConnection.tls(url);
    await connection.write(`POST / HTTP/1.1\r\nHost: x\r\n${rest}`);
    // The client may go on sending for a while and still gets its answer whole.
    const text = await connection.ended();
    expect(text).toMatch(/^HTTP\/1\.1 413 /);
    expect(JSON.parse(text.slice(text.indexOf('{')))).toMatchObject(refused);
  });

  it.each([[{}], [{ 'content-length': '100000' }]])('are refused with a Status over HTTP/2: %j', async (headers) => {
    const url = await serve(readsBody, limits);
    const client = session(url);
    const stream = client.request({ ':method': 'POST', ':path': '/', ...headers }, { endStream: false });
    stream.write('x'.repeat(2 * LIMIT));
    const { status, body } = await answerOf(stream);
    expect(status).toBe(413);
    expect(JSON.parse(body)).toMatchObject(refused);
    client.destroy();
  });

  it('ends a client that goes on sending without end', async () => {
    const url = await serve(readsBody, limits);
    const connection = await RawConnection.tls(url);
    await connection.write('POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n');
    const chunk = `1000\r\n${'x'.repeat(0x1000)}\r\n`;
    await eventually(async () => {
      await connection.write(chunk);
      expect(connection.socket.destroyed).toBe(true);
    });
  });

  it('are refused while too many others are under way, and taken when those are done', async () => {
    const url = await serve(readsBody, { ...limits, bodiesBytesMax: 1500, bodyTimeoutMs: NEVER_MS });
    const slow = await RawConnection.tls(url);
    await slow.write(`POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${LIMIT}\r\n\r\n${'x'.repeat(LIMIT - 1)}`);
    const client = session(url);
    const post = (): Promise<{ status: number; body: string; code: number }> => {
      const stream = client.request({ ':method': 'POST', ':path': '/' }, { endStream: false });
      stream.end('x'.repeat(LIMIT));
      return answerOf(stream);
    };
    await eventually(async () => expect((await post()).status).toBe(429));
    slow.destroy();
    await eventually(async () => expect((await post()).status).toBe(200));
    client.destroy();
  });

  it('takes exactly the limit', async () => {
    const url = await serve(readsBody, limits);
    const connection = await RawConnection.tls(url);
    await connection.write(`POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${LIMIT}\r\n\r\n${'x'.repeat(LIMIT)}`);
    await connection.receive(`${LIMIT} bytes`);
    connection.destroy();
  });
});

describe('what the server has room for', () => {
  it('refuses connections past the limit, and takes new ones when others have gone', async () => {
    const url = await serve(ok, { connectionsMax: 2 });
    const first = await RawConnection.tls(url);
    const second = await RawConnection.tls(url);
    await expect(RawConnection.tls(url)).rejects.toThrow();
    first.destroy();
    const third = await eventually(() => RawConnection.tls(url));
    await third.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    await third.receive('fine');
    second.destroy();
    third.destroy();
  });

  it('refuses streams past the limit of one connection', async () => {
    const url = await serve(
      async ({ signal }) => {
        if (!signal.aborted) await once(signal, 'abort');
        return { status: 200, headers: {}, body: '' };
      },
      { streamsPerConnectionMax: 4 },
    );
    const client = session(url);
    await once(client, 'remoteSettings');
    expect(client.remoteSettings.maxConcurrentStreams).toBe(4);
    client.destroy();
  });

  it('refuses a URL past the limit by itself', async () => {
    const url = await serve(ok, { urlLengthMax: 100 });
    const client = session(url);
    const { status, body } = await answerOf(client.request({ ':path': `/${'x'.repeat(100)}` }));
    expect(status).toBe(414);
    expect(JSON.parse(body)).toMatchObject({ kind: 'Status', message: 'the URL is longer than 100 characters' });
    client.destroy();
  });
});

describe('text that headers cannot carry', () => {
  it.each([['http/1.1'], ['h2']])('travels as UTF-8 in warnings over %s', async (protocol) => {
    const warning = ['299 - "unknown field \u00e9\u4e2d\u{1f600}"'];
    const url = await serve(async () => ({ status: 200, headers: { warning }, body: 'fine' }));
    if (protocol === 'h2') {
      const client = session(url);
      const stream = client.request({ ':path': '/' });
      stream.resume();
      const [headers] = (await once(stream, 'response')) as [Record<string, string>];
      expect(Buffer.from(headers['warning'] ?? '', 'latin1').toString('utf8')).toBe(warning[0]);
      client.destroy();
    } else {
      const connection = await RawConnection.tls(url);
      await connection.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
      expect(Buffer.from(await connection.receive('fine'), 'latin1').toString('utf8')).toContain(
        `warning: ${warning[0]}`,
      );
      connection.destroy();
    }
  });
});

describe('stopping', () => {
  it('lets answers under way finish, ends streams and closes idle connections', async () => {
    const release = new AbortController();
    const stopped: Handler = async ({ path, signal }) => {
      if (path === '/stream') return { status: 200, headers: {}, body: lines(signal) };
      if (path === '/slow' && !release.signal.aborted) await once(release.signal, 'abort');
      return { status: 200, headers: {}, body: 'fine' };
    };
    const url = await serve(stopped);
    const server = running.pop();
    const idle = await RawConnection.tls(url);
    const slow = await RawConnection.tls(url);
    const streaming = await RawConnection.tls(url);
    const client = session(url);
    const slowStream = answerOf(client.request({ ':path': '/slow' }));
    await slow.write('GET /slow HTTP/1.1\r\nHost: x\r\n\r\n');
    await streaming.write('GET /stream HTTP/1.1\r\nHost: x\r\n\r\n');
    await streaming.receive('first');
    await idle.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    await idle.receive('fine');
    const ended = server?.stop();
    await idle.ended();
    expect(await streaming.ended()).toMatch(/0\r\n\r\n$/);
    release.abort();
    expect(await slow.ended()).toMatch(/200 OK[^]*fine$/);
    expect(await slowStream).toMatchObject({ status: 200, body: 'fine', code: 0 });
    await ended;
  });
});
