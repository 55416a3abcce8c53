import { once } from 'node:events';
import { type ClientHttp2Session, type ClientHttp2Stream, connect } from 'node:http2';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { RawConnection } from '../support/raw-connection.ts';
import { IS_FULL } from '../support/sample.ts';
import { newTarget, ROOT } from './target.ts';

/** What can be done to a real server through its port alone. Whatever it is, others do not notice. */

const target = newTarget();

function frame(type: number, flags: number, stream: number, payload: Uint8Array = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

const PREFACE = Buffer.concat([Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), frame(4, 0, 0)]);
const HEADERS = 1;
const RST_STREAM = 3;
const SETTINGS = 4;
const PING = 6;
const WINDOW_UPDATE = 8;
const CONTINUATION = 9;
/** The frame by which a server says that it is done with a connection. */
const GOAWAY = frame(7, 0, 0).subarray(3).toString('latin1');
const END_STREAM = 1;
const END_HEADERS = 4;
/** `GET / ` over https, from HPACK's static table, with an empty authority. */
const GET_ROOT = Buffer.from([0x82, 0x84, 0x87, 0x01, 0x00]);

/** A bare HTTP/2 connection, past its preface. */
async function bare(): Promise<RawConnection> {
  const connection = await target.raw({ ALPNProtocols: ['h2'] });
  await connection.write(PREFACE);
  return connection;
}

async function session(options: object = {}): Promise<ClientHttp2Session> {
  const opened = connect(target.url, { rejectUnauthorized: false, ...target.credentials, ...options });
  opened.on('error', () => undefined);
  await once(opened, 'connect');
  return opened;
}

/** The status that a stream is answered with; 0 where it is reset instead. */
function statusOf(stream: ClientHttp2Stream): Promise<number> {
  return new Promise((resolve) => {
    stream.on('response', (headers) => resolve(Number(headers[':status'])));
    stream.on('error', () => undefined);
    stream.on('close', () => resolve(0));
    stream.resume();
  });
}

describe('what is not HTTPS', () => {
  it.each<[string, string | Uint8Array]>([
    ['plain HTTP', 'GET /livez HTTP/1.1\r\nHost: x\r\n\r\n'],
    ['plain HTTP/2', PREFACE],
    ['SSH', 'SSH-2.0-OpenSSH_9.9\r\n'],
    ['zeros', Buffer.alloc(1000)],
    ['a TLS record of the wrong size', Buffer.from([0x16, 3, 1, 0xff, 0xff, 1, 2, 3])],
  ])('%s is ended', async (_name, bytes) => {
    const connection = await RawConnection.plain(target.url);
    await connection.write(bytes);
    connection.socket.end();
    expect(await connection.ended()).not.toContain('200');
  });
});

describe('HTTP/1.1 that is none, or means two things', () => {
  const smuggled = 'GET /version HTTP/1.1\r\nHost: x\r\n\r\n';
  it.each<[string, string]>([
    [
      'a length and chunks',
      `POST ${ROOT} HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${smuggled}`,
    ],
    ['two lengths', `POST ${ROOT} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nContent-Length: 40\r\n\r\n${smuggled}`],
    ['a list of lengths', `POST ${ROOT} HTTP/1.1\r\nHost: x\r\nContent-Length: 0, 40\r\n\r\n${smuggled}`],
    ['a negative length', `POST ${ROOT} HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n${smuggled}`],
    ['a length with a sign', `POST ${ROOT} HTTP/1.1\r\nHost: x\r\nContent-Length: +0\r\n\r\n${smuggled}`],
    [
      'a length beyond 64 bits',
      `POST ${ROOT} HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999999\r\n\r\n${smuggled}`,
    ],
    [
      'chunks that are not the last coding',
      `POST ${ROOT} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n${smuggled}`,
    ],
    [
      'a hidden transfer coding',
      `POST ${ROOT} HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n${smuggled}`,
    ],
    [
      'a chunk beyond 64 bits',
      `POST ${ROOT} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n${smuggled}`,
    ],
    [
      'a chunk that is longer than it says',
      `POST ${ROOT} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n0\r\n\r\n${smuggled}`,
    ],
    ['a header that is folded', `GET /livez HTTP/1.1\r\nHost: x\r\nX: a\r\n b: c\r\n\r\n`],
    ['a header without a name', 'GET /livez HTTP/1.1\r\n: x\r\n\r\n'],
    ['a NUL in a header', 'GET /livez HTTP/1.1\r\nHost: x\r\nX: a\u0000b\r\n\r\n'],
    ['a lone carriage return in a header', 'GET /livez HTTP/1.1\r\nHost: x\r\nX: a\rY: b\r\n\r\n'],
    ['a method that is none', 'G\u0000T /livez HTTP/1.1\r\n\r\n'],
    ['a version that is none', 'GET /livez HTTP/9.9\r\nHost: x\r\n\r\n'],
    ['a request line of nothing', '\u0000\u0001\u0002\r\n\r\n'],
    ['HTTP/2 where HTTP/1.1 was agreed on', PREFACE.toString('latin1')],
  ])('%s: one answer at most, and the connection is ended', async (_name, text) => {
    const connection = await target.raw();
    await connection.write(Buffer.from(text, 'latin1'));
    const received = await connection.ended();
    expect(received).not.toContain('gitVersion');
    expect(received.match(/HTTP\/1\.1 /g)?.length ?? 0).toBeLessThan(2);
    expect(received).not.toMatch(/^HTTP\/1\.1 2/);
  });

  it('a tunnel is refused', async () => {
    const connection = await target.raw();
    await connection.write('CONNECT evil.example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n');
    expect(await connection.ended()).not.toMatch(/^HTTP\/1\.1 2/);
  });

  it('a request to be a proxy is refused', async () => {
    const connection = await target.raw();
    await connection.write(
      'GET http://169.254.169.254/latest/meta-data HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
    );
    expect(await connection.ended()).toMatch(/^HTTP\/1\.1 400 [^]*"reason":"BadRequest"/);
  });

  it.each(['websocket', 'h2c', 'nonsense', 'SPDY/3.1'])(
    'an upgrade to %s, where there is nothing to upgrade, is refused with a Status',
    async (protocol) => {
      const connection = await target.raw();
      await connection.write(
        `GET ${ROOT} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: ${protocol}\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n`,
      );
      expect(await connection.ended()).toMatch(/^HTTP\/1\.1 4\d\d [^]*"kind":"Status"/);
    },
  );

  it.each<[string, string]>([
    ['one of a megabyte', `X: ${'x'.repeat(1024 * 1024)}\r\n`],
    ['100 000', 'X: y\r\n'.repeat(100_000)],
    ['without end in the name', 'x'.repeat(1024 * 1024)],
  ])('headers that are too much (%s) end the connection', async (_name, headers) => {
    const connection = await target.raw();
    await connection.write(`GET /livez HTTP/1.1\r\nHost: x\r\n${headers}\r\n`);
    expect(await connection.ended()).not.toMatch(/^HTTP\/1\.1 2/);
  });

  it('requests that do not wait for answers are answered in order', async () => {
    const connection = await target.raw();
    const count = 500;
    const paths = Array.from({ length: count }, (_, index) => (index % 2 === 0 ? '/livez' : `${ROOT}/absent-${index}`));
    await connection.write(paths.map((path) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`).join(''));
    await connection.receive(`absent-${count - 1}\\" not found`);
    const order = [...connection.text.matchAll(/absent-(\d+)\\" not found/g)].map((match) => Number(match[1]));
    expect(order).toEqual(Array.from({ length: count / 2 }, (_, index) => 2 * index + 1));
    connection.destroy();
  });
});

describe('HTTP/2 that is abused', () => {
  it('settings that cannot be end the connection', async () => {
    const connection = await bare();
    // SETTINGS_INITIAL_WINDOW_SIZE of 2^32 - 1.
    await connection.write(frame(SETTINGS, 0, 0, Buffer.from([0, 4, 0xff, 0xff, 0xff, 0xff])));
    await connection.ended();
  });

  it('a window that overflows ends the connection', async () => {
    const connection = await bare();
    for (let time = 0; time < 2; time++)
      await connection.write(frame(WINDOW_UPDATE, 0, 0, Buffer.from([0x7f, 0xff, 0xff, 0xff])));
    await connection.ended();
  });

  it('frames of nonsense are answered by a farewell', async () => {
    const connection = await bare();
    await connection.write(frame(HEADERS, END_HEADERS, 1, Buffer.alloc(8, 0xff)));
    await connection.receive(GOAWAY);
    connection.destroy();
  });

  it('a header block of endless continuations ends the connection', async () => {
    const connection = await bare();
    await connection.write(frame(HEADERS, 0, 1, GET_ROOT));
    await eventually(async () => {
      await connection.write(frame(CONTINUATION, 0, 1, Buffer.alloc(0)));
      expect(connection.socket.destroyed).toBe(true);
    });
  });

  it.each<[string, Record<string, string>]>([
    ['many', Object.fromEntries(Array.from({ length: 1000 }, (_, index) => [`x-${index}`, 'y']))],
    ['large', { 'x-large': 'y'.repeat(500_000) }],
  ])('headers that are too %s are refused', async (_name, headers) => {
    const client = await session({ maxSendHeaderBlockLength: 10 ** 7 });
    expect(await statusOf(client.request({ ':path': '/livez', ...headers }))).not.toBe(200);
    client.destroy();
  });

  it('streams that are opened and reset without end are no burden to others', async () => {
    const connection = await bare();
    const flood = Array.from({ length: 20_000 }, (_, index) => {
      const id = 2 * index + 1;
      return Buffer.concat([
        frame(HEADERS, END_HEADERS | END_STREAM, id, GET_ROOT),
        frame(RST_STREAM, 0, id, Buffer.from([0, 0, 0, 8])),
      ]);
    });
    const sent = connection.write(Buffer.concat(flood));
    for (let request = 0; request < 10; request++)
      expect((await target.cluster.api.request('GET', '/livez')).text).toBe('ok');
    // Nobody needs to reset so many: the connection is ended.
    await sent;
    await connection.ended();
  });

  it('pings and settings without end are no burden to others', async () => {
    const connection = await bare();
    connection.socket.pause();
    const pings = Buffer.concat(
      Array.from({ length: 20_000 }, () => [frame(PING, 0, 0, Buffer.alloc(8)), frame(SETTINGS, 0, 0)]).flat(),
    );
    const sent = connection.write(pings);
    for (let request = 0; request < 10; request++)
      expect((await target.cluster.api.request('GET', '/livez')).text).toBe('ok');
    connection.socket.resume();
    await Promise.race([sent, connection.ended()]);
    connection.destroy();
  });

  it('a client without a window gets its answer when it opens one, and holds up nobody', async () => {
    const client = await session({ settings: { initialWindowSize: 0 } });
    const stream = client.request({ ':path': '/livez' });
    stream.setEncoding('utf8');
    await once(stream, 'response');
    expect((await target.cluster.api.request('GET', '/livez')).text).toBe('ok');
    client.settings({ initialWindowSize: 1000 });
    const [body] = (await once(stream, 'data')) as [string];
    expect(body).toBe('ok');
    client.destroy();
  });

  it('a tunnel is refused', async () => {
    const client = await session();
    const stream = client.request({ ':method': 'CONNECT', ':authority': 'evil.example.com:443' }, { endStream: false });
    expect(await statusOf(stream)).not.toBe(200);
    client.destroy();
  });

  it.each(['', 'livez', '*', 'https://elsewhere/livez', '/livez\u00ff'])('a path of %j is none', async (path) => {
    const client = await session();
    expect([0, 400, 404]).toContain(await statusOf(client.request({ ':path': path })));
    client.destroy();
  });
});

describe('bytes by chance', () => {
  const frames = fc.array(
    fc.tuple(
      fc.nat({ max: 10 }),
      fc.nat({ max: 255 }),
      fc.constantFrom(0, 1, 1, 2, 3, 5, 2 ** 31 - 1),
      fc.oneof(fc.constant(GET_ROOT), fc.uint8Array({ maxLength: 40 })),
    ),
    { maxLength: 12 },
  );
  const starts = ['GET ', 'POST ', 'PUT ', '/livez', ROOT, ' HTTP/1.1', ' HTTP/1.0'];
  const headers = [
    'Host: x',
    'Content-Length: 5',
    'Content-Length: ',
    'Transfer-Encoding: chunked',
    'Connection: Upgrade',
  ];
  const others = ['Upgrade: websocket', 'Expect: 100-continue', '5\r\nhello', '0\r\n\r\n', '\r\n\r\n'];
  const characters = ['\r\n', '\n', '\r', ':', ' ', '\t', '0', 'a', '\u0000', '\u00ff'];
  const requests = fc
    .array(fc.constantFrom(...starts, ...headers, ...others, ...characters), { maxLength: 20 })
    .map((parts) => Buffer.from(parts.join(''), 'latin1'));
  const numRuns = IS_FULL ? 2000 : 100;

  it(
    'as HTTP/2 frames',
    () =>
      fc.assert(
        fc.asyncProperty(frames, async (parts) => {
          const connection = await bare();
          await connection.write(
            Buffer.concat(parts.map(([type, flags, stream, payload]) => frame(type, flags, stream, payload))),
          );
          expect((await target.cluster.api.request('GET', '/livez')).text).toBe('ok');
          connection.destroy();
        }),
        { numRuns },
      ),
    300_000,
  );

  it(
    'as HTTP/1.1 requests',
    () =>
      fc.assert(
        fc.asyncProperty(requests, async (bytes) => {
          const connection = await target.raw();
          await connection.write(bytes);
          expect((await target.cluster.api.request('GET', '/livez')).text).toBe('ok');
          connection.destroy();
        }),
        { numRuns },
      ),
    300_000,
  );
});
