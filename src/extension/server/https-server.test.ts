import { Agent, request as httpsRequest, type RequestOptions } from 'node:https';
import { PassThrough, type Duplex } from 'node:stream';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { conflict } from '../../api/status.ts';
import { realClock, realRandom } from '../../env/real.ts';
import { ManualClock, silentLogger } from '../../env/test.ts';
import {
  type Authority,
  createAuthority,
  DAY_MS,
  type Identity,
  issueIdentity,
  type Usage,
} from '../../machinery/x509/authority.ts';
import { HttpsServer, type HttpsServerOptions } from './https-server.ts';
import { jsonResponse } from './message.ts';

const env = { clock: realClock, random: realRandom };

let serving: Authority;
let proxy: Authority;
let identity: Identity;
let client: Identity;
let server: HttpsServer | undefined;

function issue(authority: Authority, commonName: string, usage: Usage): Promise<Identity> {
  const ipAddresses = usage === 'server' ? ['127.0.0.1'] : [];
  return issueIdentity(authority, { commonName, ipAddresses, usages: [usage], validityMs: DAY_MS });
}

beforeAll(async () => {
  serving = await createAuthority(env, 'serving');
  proxy = await createAuthority(env, 'proxy');
  identity = await issue(serving, 'extension', 'server');
  client = await issue(proxy, 'front-proxy-client', 'client');
});
afterEach(() => server?.stop());

async function start(options: Partial<HttpsServerOptions>): Promise<number> {
  server = new HttpsServer({
    clock: realClock,
    log: silentLogger,
    identity: { ...identity, clientAuthorityPem: proxy.certificatePem },
    handle: async ({ clientName }) => jsonResponse(200, { clientName }),
    upgrade: () => Promise.reject(new Error('nothing to upgrade')),
    ...options,
  });
  return server.listen('127.0.0.1', 0);
}

interface Answer {
  readonly status: number;
  readonly text: string;
  readonly socket?: Duplex;
}

function ask(port: number, options: RequestOptions = {}, body: string | Buffer = ''): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const outgoing = httpsRequest({ host: '127.0.0.1', port, ca: serving.certificatePem, agent: false, ...options });
    outgoing.on('response', (incoming) => {
      let text = '';
      incoming.setEncoding('utf8');
      incoming.on('data', (piece: string) => (text += piece));
      incoming.on('end', () => resolve({ status: incoming.statusCode ?? 0, text }));
      incoming.on('error', reject);
    });
    outgoing.on('upgrade', (incoming, socket, head) =>
      resolve({ status: incoming.statusCode ?? 0, text: head.toString('utf8'), socket }),
    );
    outgoing.on('error', reject);
    outgoing.end(body);
  });
}

const shown = ({ certificatePem, keyPem }: Identity): RequestOptions => ({ cert: certificatePem, key: keyPem });

describe('who connects', () => {
  it('is nobody who comes again without a certificate', async () => {
    const port = await start({});
    const agent = new Agent();
    let resumed = 0;
    agent.on('keylog', (_line, socket) =>
      socket.once('secureConnect', () => (resumed += Number(socket.isSessionReused()))),
    );
    for (let i = 0; i < 3; i++) expect((await ask(port, { agent })).text).toBe('{}\n');
    expect(resumed).toBeGreaterThan(0);
  });
  it('is known by a certificate of the front proxy, and by nothing else', async () => {
    const port = await start({});
    expect((await ask(port, shown(client))).text).toBe('{"clientName":"front-proxy-client"}\n');
    expect((await ask(port)).text).toBe('{}\n');
    const stranger = await issue(serving, 'front-proxy-client', 'client');
    expect((await ask(port, shown(stranger))).text).toBe('{}\n');
    const server = await issue(proxy, 'front-proxy-client', 'server');
    expect((await ask(port, shown(server))).text).toBe('{}\n');
  });

  it('meets a renewed certificate, and is asked for one of a new authority', async () => {
    const port = await start({});
    const next = await issue(serving, 'renewed', 'server');
    const authority = await createAuthority(env, 'next proxy');
    server?.renew({ ...next, clientAuthorityPem: authority.certificatePem });
    expect((await ask(port, shown(client))).text).toBe('{}\n');
    const newcomer = await issue(authority, 'newcomer', 'client');
    expect((await ask(port, shown(newcomer))).text).toBe('{"clientName":"newcomer"}\n');
  });
});

describe('answers', () => {
  it('are errors too', async () => {
    const port = await start({ handle: () => Promise.reject(conflict({ group: 'g', plural: 'things' }, 'x', 'busy')) });
    const { status, text } = await ask(port);
    expect(status).toBe(409);
    expect(JSON.parse(text)).toMatchObject({ kind: 'Status', reason: 'Conflict', details: { name: 'x' } });
  });

  it('hide what went wrong inside', async () => {
    const port = await start({ handle: () => Promise.reject(new Error('secret')) });
    const { status, text } = await ask(port);
    expect(status).toBe(500);
    expect(text).not.toContain('secret');
  });

  it('to bodies that are too large come before they are read', async () => {
    const port = await start({ handle: async (request) => jsonResponse(200, (await request.body()).length) });
    const large = await ask(port, { method: 'POST' }, Buffer.alloc(9 * 1024 * 1024)).catch(() => undefined);
    // Whoever still sends may only see that the connection ends.
    expect([413, undefined]).toContain(large?.status);
    expect((await ask(port, { method: 'POST' }, Buffer.alloc(1024))).text).toBe('1024\n');
  });

  it('under way are given to their end when the server stops, and their connections closed', async () => {
    let go = (): void => {};
    let begin = (): void => {};
    const begun = new Promise<void>((resolve) => (begin = resolve));
    const port = await start({
      // It stands still, so that nothing else closes what is left.
      clock: new ManualClock(),
      handle: async ({ signal }) => {
        begin();
        await new Promise<void>((resolve) => (go = resolve));
        return jsonResponse(200, { isGivenUp: signal.aborted });
      },
    });
    const agent = new Agent({ keepAlive: true });
    const asked = ask(port, { agent });
    await begun;
    const stopped = server?.stop();
    go();
    expect((await asked).text).toBe('{"isGivenUp":false}\n');
    await stopped;
    agent.destroy();
  });

  it('may come piece by piece, until nobody waits any more', async () => {
    let isAborted = false;
    const port = await start({
      handle: async ({ signal }) => {
        signal.addEventListener('abort', () => (isAborted = true));
        async function* body(): AsyncGenerator<Uint8Array> {
          yield Buffer.from('begun');
          await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
        }
        return { status: 200, headers: {}, body: body() };
      },
    });
    await new Promise<void>((resolve, reject) => {
      const outgoing = httpsRequest({ host: '127.0.0.1', port, ca: serving.certificatePem, agent: false });
      outgoing.on('error', reject);
      outgoing.on('response', (incoming) =>
        incoming.once('data', () => {
          incoming.destroy();
          resolve();
        }),
      );
      outgoing.end();
    });
    await expect.poll(() => isAborted).toBe(true);
  });
});

describe('an upgrade', () => {
  const headers = { connection: 'Upgrade', upgrade: 'websocket' };

  it('joins two connections until either ends', async () => {
    const far = new PassThrough();
    const port = await start({
      upgrade: async () => ({
        kind: 'joined',
        headers: { upgrade: 'websocket' },
        socket: far,
        head: Buffer.from('hi'),
      }),
    });
    const { status, socket } = await ask(port, { headers });
    expect(status).toBe(101);
    let heard = '';
    socket?.on('data', (bytes: Buffer) => (heard += bytes.toString('utf8')));
    socket?.write(' there');
    await expect.poll(() => heard).toContain(' there');
    socket?.destroy();
    await expect.poll(() => far.destroyed).toBe(true);
  });

  it('that is refused is answered', async () => {
    const port = await start({
      upgrade: () => Promise.reject(conflict({ group: 'g', plural: 'things' }, 'x', 'not running')),
    });
    const { status, text } = await ask(port, { headers });
    expect(status).toBe(409);
    expect(text).toContain('not running');
  });
});
