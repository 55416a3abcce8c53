import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { LOG_OFFSET_HEADER } from '../../src/api/guest-run.ts';
import { notFound } from '../../src/api/status.ts';
import { createAuthority, DAY_MS, type Identity, issueIdentity } from '../../src/machinery/x509/authority.ts';
import type { Connection, ConnectionHandlers } from '../../src/env/ports.ts';
import { realEnv } from '../../src/env/real.ts';
import { Client } from '../../src/kube/client.ts';
import { InProcessTransport } from '../../src/kube/in-process-transport.ts';
import type { GuestAccess, SerialLog } from '../../src/node/guests/guest-access.ts';
import { AgentServer } from '../../src/node/server/agent-server.ts';
import { eventually } from '../support/eventually.ts';
import { InProcessApi } from '../support/in-process.ts';
import { freePort } from '../support/network.ts';

/** The agent's server over real TLS, its questions answered by a real API server, its guests played by the test. */

const env = realEnv('silent');
const GUEST = '/v1/namespaces/shop/virtualmachineinstances/web';

class PlayedGuests implements GuestAccess {
  readonly calls: string[] = [];
  logs: SerialLog[] = [];
  handlers: ConnectionHandlers | undefined;
  heard = '';
  closed = 0;
  greeting = '';

  async pause(namespace: string, name: string): Promise<void> {
    this.#call('pause', namespace, name);
  }
  async unpause(namespace: string, name: string): Promise<void> {
    this.#call('unpause', namespace, name);
  }
  async softReboot(namespace: string, name: string): Promise<void> {
    this.#call('softReboot', namespace, name);
  }
  async reset(namespace: string, name: string): Promise<void> {
    this.#call('reset', namespace, name);
  }
  async openConsole(namespace: string, name: string, handlers: ConnectionHandlers): Promise<Connection> {
    this.#call('console', namespace, name);
    this.handlers = handlers;
    if (this.greeting !== '') handlers.data(Buffer.from(this.greeting));
    return { write: (bytes) => (this.heard += Buffer.from(bytes).toString()), close: () => void this.closed++ };
  }
  async guestInfo(namespace: string, name: string): ReturnType<GuestAccess['guestInfo']> {
    this.#call('info', namespace, name);
    return { version: '7.2.0', hostname: 'tern', os: { name: 'Debian' } };
  }
  async serialLogs(namespace: string, name: string): Promise<readonly SerialLog[]> {
    this.#call('logs', namespace, name);
    return this.logs;
  }
  async runs(namespace: string, name: string): ReturnType<GuestAccess['runs']> {
    this.#call('runs', namespace, name);
    return this.logs.map(({ podUID, isLive }) => ({ podUID, guestUID: 'u', startedAtMs: 1, isLive }));
  }
  #call(what: string, namespace: string, name: string): void {
    if (name !== 'web') throw notFound({ group: 'kubevirt.io', plural: 'virtualmachineinstances' }, name);
    this.calls.push(`${what} ${namespace}/${name}`);
  }
}

let api: InProcessApi;
let directory: string;
let authority: Awaited<ReturnType<typeof createAuthority>>;
let client: (name: string, ...groups: string[]) => Promise<Identity>;
let admin: Identity;
let serving: Identity | undefined;
let newCertificate: () => void;
let guests: PlayedGuests;
let server: AgentServer;
let listen: (preferredPorts: readonly number[]) => Promise<AgentServer>;
let token: string;
let reviews: number;

beforeAll(async () => {
  api = await InProcessApi.start();
  directory = mkdtempSync(join(tmpdir(), 'agent-server-'));
  authority = await createAuthority(env, 'cluster');
  client = (commonName, ...organizations) =>
    issueIdentity(authority, { commonName, organizations, usages: ['client'], validityMs: DAY_MS });
  admin = await client('admin', 'system:masters');
  const rules = [{ apiGroups: [''], resources: ['nodes/guests'], verbs: ['get'] }];
  const subjects = [{ kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: 'reader' }];
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'reader' };
  const rbac = '/apis/rbac.authorization.k8s.io/v1';
  await api.request('POST', `${rbac}/clusterroles`, { body: { metadata: { name: 'reader' }, rules } });
  await api.request('POST', `${rbac}/clusterrolebindings`, {
    body: { metadata: { name: 'reader' }, roleRef, subjects },
  });
  const account = { ...subjects[0], kind: 'ServiceAccount', apiGroup: '', name: 'robot', namespace: 'default' };
  await api.request('POST', '/api/v1/namespaces/default/serviceaccounts', { body: { metadata: { name: 'robot' } } });
  await api.request('POST', `${rbac}/clusterrolebindings`, {
    body: { metadata: { name: 'robot' }, roleRef: { ...roleRef, name: 'cluster-admin' }, subjects: [account] },
  });
  const asked = await api.request('POST', '/api/v1/namespaces/default/serviceaccounts/robot/token', {
    body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} },
  });
  token = asked.expect(201).json.status.token as string;
});
afterAll(async () => {
  rmSync(directory, { recursive: true });
  await api.stop();
});

const servingIdentity = () =>
  issueIdentity(authority, { commonName: 'system:node:n1', dnsNames: ['n1'], usages: ['server'], validityMs: DAY_MS });

beforeEach(async () => {
  guests = new PlayedGuests();
  serving = await servingIdentity();
  reviews = 0;
  const transport = new InProcessTransport(api.core.handle.bind(api.core), {
    user: 'system:node:n1',
    groups: ['system:nodes'],
  });
  const counting = {
    send: (request: Parameters<typeof transport.send>[0]) => {
      if (request.path.includes('reviews')) reviews++;
      return transport.send(request);
    },
    close: () => undefined,
  };
  listen = (preferredPorts) =>
    AgentServer.listen({
      env,
      client: new Client(counting, 'agent'),
      node: 'n1',
      guests,
      certificate: {
        get current() {
          return serving;
        },
        onChange: (listener) => (newCertificate = listener),
      },
      clientAuthorities: async () => authority.certificatePem,
      metrics: async () => 'up 1\n',
      host: '127.0.0.1',
      port: 0,
      preferredPorts,
    });
  server = await listen([]);
});
afterEach(() => server.close());

it('takes the first free one of the ports that it should have, or else any', async () => {
  const free = await freePort();
  const second = await listen([server.port, free]);
  const third = await listen([server.port, free]);
  expect([second.port, [server.port, free].includes(third.port)]).toEqual([free, false]);
  await Promise.all([second.close(), third.close()]);
});

interface Credentials {
  readonly identity?: Identity;
  readonly bearer?: string;
}

function tlsOptions({ identity }: Credentials) {
  return {
    host: '127.0.0.1',
    port: server.port,
    servername: 'n1',
    ca: authority.certificatePem,
    ...(identity ? { cert: identity.certificatePem, key: identity.keyPem } : {}),
  };
}

function begin(method: string, path: string, credentials: Credentials = { identity: admin }, body?: Buffer) {
  const headers = credentials.bearer === undefined ? {} : { authorization: `Bearer ${credentials.bearer}` };
  return new Promise<IncomingMessage>((resolve, reject) => {
    const request = httpsRequest({ ...tlsOptions(credentials), method, path, headers, agent: false }, resolve);
    request.once('error', reject);
    request.end(body);
  });
}

async function ask(method: string, path: string, credentials?: Credentials, body?: Buffer) {
  const response = await begin(method, path, credentials, body);
  let text = '';
  for await (const chunk of response) text += String(chunk);
  return { status: response.statusCode, text, headers: response.headers };
}

describe('the server of an agent', () => {
  it('does to guests what is asked', async () => {
    for (const action of ['pause', 'unpause', 'softreboot', 'reset'])
      expect(await ask('PUT', `${GUEST}/${action}`, undefined, Buffer.from('{}'))).toMatchObject({ status: 202 });
    expect(guests.calls).toEqual(['pause shop/web', 'unpause shop/web', 'softReboot shop/web', 'reset shop/web']);
  });

  it('says what the agents inside guests say', async () => {
    const { status, text } = await ask('GET', `${GUEST}/guestosinfo`);
    expect([status, JSON.parse(text)]).toEqual([
      200,
      { guestAgentVersion: '7.2.0', hostname: 'tern', os: { name: 'Debian' } },
    ]);
  });

  it('says what is wrong, as an API server does', async () => {
    const missing = await ask('PUT', GUEST.replace('web', 'gone') + '/pause');
    expect(missing.status).toBe(404);
    expect(JSON.parse(missing.text)).toMatchObject({
      kind: 'Status',
      reason: 'NotFound',
      message: 'virtualmachineinstances.kubevirt.io "gone" not found',
    });
    expect((await ask('GET', '/elsewhere')).status).toBe(404);
    expect((await ask('GET', `${GUEST}/pause`)).status).toBe(405);
    expect((await ask('GET', `${GUEST}/console`)).status).toBe(400);
    expect((await ask('PUT', `${GUEST}/pause`, undefined, Buffer.alloc(100_000))).status).toBe(413);
  });

  it('reads no endless headers', async () => {
    const bearer = 'x'.repeat(20_000);
    expect((await ask('GET', '/healthz', { bearer })).status).toBe(431);
    expect((await ask('GET', '/healthz', {})).status).toBe(200);
  });

  it('is healthy to everybody, and tells its metrics to some', async () => {
    expect(await ask('GET', '/healthz', {})).toMatchObject({ status: 200, text: 'ok' });
    expect((await ask('GET', '/metrics', {})).status).toBe(401);
    expect(await ask('GET', '/metrics')).toMatchObject({ status: 200, text: 'up 1\n' });
  });

  it('takes up a new certificate', async () => {
    const shown = () =>
      new Promise<string>((resolve, reject) => {
        const socket = connect(tlsOptions({}), () => {
          resolve(socket.getPeerCertificate().serialNumber);
          socket.destroy();
        });
        socket.once('error', reject);
      });
    const before = await shown();
    serving = await servingIdentity();
    newCertificate();
    await eventually(async () => expect(await shown()).not.toBe(before));
  });

  it('lets nobody connect before it has a certificate', async () => {
    serving = undefined;
    newCertificate();
    await eventually(() => expect(ask('GET', '/healthz', {})).rejects.toThrow());
    serving = await servingIdentity();
    newCertificate();
    await eventually(async () => expect((await ask('GET', '/healthz', {})).status).toBe(200));
  });
});

describe('whoever calls', () => {
  it('is known by a certificate of the cluster, or by a token', async () => {
    expect((await ask('PUT', `${GUEST}/pause`, { bearer: token })).status).toBe(202);
    for (const credentials of [{}, { bearer: 'nonsense' }, { bearer: `${token}x` }]) {
      const { status, headers } = await ask('PUT', `${GUEST}/pause`, credentials);
      expect(status).toBe(401);
      expect(headers['www-authenticate']).toBe('Bearer');
    }
    const foreign = await createAuthority(env, 'foreign');
    const options = { commonName: 'admin', organizations: ['system:masters'], validityMs: DAY_MS };
    for (const identity of [
      await issueIdentity(foreign, { ...options, usages: ['client'] }),
      await issueIdentity(authority, { ...options, usages: ['server'] }),
    ])
      expect((await ask('PUT', `${GUEST}/pause`, { identity })).status).toBe(401);
    expect(guests.calls).toEqual(['pause shop/web']);
  });

  it('may do what the API server says, and no more', async () => {
    const identity = await client('reader');
    expect((await ask('GET', `${GUEST}/log`, { identity })).status).toBe(200);
    expect((await ask('GET', `${GUEST}/runs`, { identity })).status).toBe(200);
    const denied = await ask('PUT', `${GUEST}/pause`, { identity });
    expect(denied.status).toBe(403);
    expect(JSON.parse(denied.text).message).toBe(
      'Forbidden (user=reader, verb=update, resource=nodes, subresource=guests or proxy, name=n1)',
    );
    expect((await ask('GET', '/metrics', { identity })).status).toBe(403);
    expect(guests.calls).toEqual(['logs shop/web', 'runs shop/web']);
  });

  it('is not asked about each time', async () => {
    for (let count = 0; count < 5; count++) await ask('GET', `${GUEST}/log`, { bearer: token });
    expect(reviews).toBe(2);
  });
});

describe('logs', () => {
  function log(name: string, content: string, isLive = false): string {
    const path = join(directory, name);
    writeFileSync(path, content);
    guests.logs.push({ podUID: name, path, isLive });
    return path;
  }

  it('are told whole or in part', async () => {
    log('a', 'one\ntwo\n');
    log('b', 'three\n');
    expect(await ask('GET', `${GUEST}/log`)).toMatchObject({ status: 200, text: 'one\ntwo\nthree\n' });
    expect((await ask('GET', `${GUEST}/log?tailLines=2`)).text).toBe('two\nthree\n');
    expect((await ask('GET', `${GUEST}/log?limitBytes=5`)).text).toBe('one\nt');
    expect((await ask('GET', `${GUEST}/log?limitBytes=x`)).status).toBe(400);
  });

  it('are told run by run, verbatim', async () => {
    log('a', 'one\ntwo\n');
    log('b', 'three');
    const { status, text } = await ask('GET', `${GUEST}/runs`);
    expect([status, JSON.parse(text)]).toEqual([
      200,
      { runs: ['a', 'b'].map((podUID) => ({ podUID, guestUID: 'u', startedAtMs: 1, isLive: false })) },
    ]);
    expect((await ask('GET', `${GUEST}/log?run=a&tailLines=1`)).text).toBe('two\n');
    expect((await ask('GET', `${GUEST}/log?run=b`)).text).toBe('three');
    expect((await ask('GET', `${GUEST}/log?run=none`)).text).toBe('');
    // Who loses the connection can go on where it was.
    const response = await begin('GET', `${GUEST}/log?run=a&tailLines=1`);
    response.resume();
    expect(response.headers[LOG_OFFSET_HEADER]).toBe('4');
    expect((await ask('GET', `${GUEST}/log?run=a&offset=5`)).text).toBe('wo\n');
    expect((await ask('GET', `${GUEST}/log?run=a&offset=8`)).text).toBe('');
    expect((await ask('GET', `${GUEST}/log?run=a&offset=9`)).status).toBe(410);
    log('a', 'anew\n');
    expect((await ask('GET', `${GUEST}/log?run=a&offset=1`)).status).toBe(410);
  });

  it('are followed, and end with the agent', async () => {
    const path = log('live', 'one\n', true);
    const response = await begin('GET', `${GUEST}/log?follow=true`);
    let text = '';
    response.on('data', (chunk) => (text += String(chunk)));
    const ended = new Promise((resolve) => response.once('close', resolve));
    response.on('error', () => undefined);
    await eventually(() => expect(text).toBe('one\n'));
    appendFileSync(path, 'two\n');
    await eventually(() => expect(text).toBe('one\ntwo\n'));
    await server.close();
    await ended;
  });

  it('of any size wait for their reader', async () => {
    const path = log('large', '');
    for (let part = 0; part < 16; part++) appendFileSync(path, 'x'.repeat(2 ** 20 - 1) + '\n');
    const response = await begin('GET', `${GUEST}/log`);
    await new Promise((resolve) => setTimeout(resolve, 100));
    let length = 0;
    for await (const chunk of response) length += (chunk as Buffer).length;
    expect(length).toBe(16 * 2 ** 20);
  });

  it('of a launcher pod are those of its own run', async () => {
    const owner = {
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachineInstance',
      name: 'web',
      uid: 'u',
      controller: true,
    };
    const make = async (name: string, nodeName: string, ownerReferences: object[]) =>
      (
        await api.request('POST', '/api/v1/namespaces/default/pods', {
          body: {
            metadata: { name, ownerReferences },
            spec: { nodeName, containers: [{ name: 'compute', image: 'i' }] },
          },
        })
      ).expect(201).json.metadata.uid as string;
    log('earlier', 'earlier\n');
    log(await make('launcher', 'n1', [owner]), 'mine\n');
    await make('other', 'n1', []);
    await make('elsewhere', 'n2', [owner]);
    const path = '/containerLogs/default';
    expect(await ask('GET', `${path}/launcher/compute`)).toMatchObject({ status: 200, text: 'mine\n' });
    expect((await ask('GET', `${path}/launcher/sidecar`)).status).toBe(400);
    expect((await ask('GET', `${path}/other/compute`)).status).toBe(404);
    expect((await ask('GET', `${path}/elsewhere/compute`)).status).toBe(404);
    expect((await ask('GET', `${path}/none/compute`)).status).toBe(404);
    // In plain words, since an API server passes them on.
    expect((await ask('GET', `${path}/launcher/compute?timestamps=true`)).text).toMatch(/^timestamps cannot be had/);
  });
});

describe('a console', () => {
  const sockets: WebSocket[] = [];
  afterEach(() => {
    for (const socket of sockets.splice(0)) socket.terminate();
  });

  function open(
    path = `${GUEST}/console`,
    credentials: Credentials = { identity: admin },
    protocols = ['plain.kubevirt.io'],
  ) {
    const headers = credentials.bearer === undefined ? {} : { authorization: `Bearer ${credentials.bearer}` };
    const { host, port, ...options } = tlsOptions(credentials);
    const socket = new WebSocket(`wss://${host}:${port}${path}`, protocols, { ...options, headers });
    sockets.push(socket);
    const session = { socket, text: '', code: 0, reason: '', failure: 0 };
    socket.on('message', (data) => (session.text += (data as Buffer).toString()));
    socket.on('close', (code, reason) => Object.assign(session, { code, reason: String(reason) }));
    socket.on('error', () => undefined);
    socket.on('unexpected-response', (_, response) => (session.failure = response.statusCode ?? 0));
    return session;
  }

  it('carries bytes both ways, those from before it stood included', async () => {
    guests.greeting = 'login: ';
    const session = open();
    await eventually(() => expect(session.text).toBe('login: '));
    expect(session.socket.protocol).toBe('plain.kubevirt.io');
    session.socket.send(Buffer.from('root\n'));
    await eventually(() => expect(guests.heard).toBe('root\n'));
    guests.handlers?.data(Buffer.from('# '));
    await eventually(() => expect(session.text).toBe('login: # '));
    session.socket.close();
    await eventually(() => expect(guests.closed).toBeGreaterThan(0));
  });

  it('works without a protocol too, and by token', async () => {
    const session = open(undefined, { bearer: token }, []);
    await eventually(() => expect(guests.handlers).toBeDefined());
    guests.handlers?.data(Buffer.from('hello'));
    await eventually(() => expect(session.text).toBe('hello'));
  });

  it('says why it ends', async () => {
    const session = open();
    await eventually(() => expect(session.socket.readyState).toBe(WebSocket.OPEN));
    guests.handlers?.closed();
    await eventually(() =>
      expect(session).toMatchObject({ code: 1000, reason: expect.stringContaining('taken over') }),
    );
    const other = open();
    await eventually(() => expect(other.socket.readyState).toBe(WebSocket.OPEN));
    await server.close();
    await eventually(() => expect(other).toMatchObject({ code: 1001, reason: 'the agent stops' }));
  });

  it('is refused with an answer', async () => {
    const refused = [
      [open(undefined, {}), 401],
      [open(undefined, { identity: await client('stranger') }), 403],
      [open(GUEST.replace('web', 'gone') + '/console'), 404],
      [open(`${GUEST}/log`), 400],
    ] as const;
    for (const [session, code] of refused) await eventually(() => expect(session.failure).toBe(code));
  });

  it('drops a reader who is too slow rather than hold up the guest', async () => {
    const session = open();
    await eventually(() => expect(session.socket.readyState).toBe(WebSocket.OPEN));
    session.socket.pause();
    await eventually(() => {
      guests.handlers?.data(Buffer.alloc(2 ** 20));
      expect(guests.closed).toBeGreaterThan(0);
    });
  });

  it('takes input no faster than a serial port can', async () => {
    const session = open();
    await eventually(() => expect(session.socket.readyState).toBe(WebSocket.OPEN));
    for (let part = 0; part < 64; part++) session.socket.send(Buffer.alloc(64 * 1024, 'x'));
    await eventually(() => expect(guests.heard.length).toBeGreaterThan(0));
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(guests.heard.length).toBeLessThan(1024 * 1024);
  });
});
