import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { createServer, request as httpsRequest } from 'node:https';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ApiError } from '../../src/api/status.ts';
import type { Clock } from '../../src/env/ports.ts';
import { realEnv } from '../../src/env/real.ts';
import { Client } from '../../src/kube/client.ts';
import {
  type Authority,
  createAuthority,
  DAY_MS,
  type Identity,
  issueIdentity,
} from '../../src/machinery/x509/authority.ts';
import type { Attempt } from '../../src/migration/right-to-run/attempt.ts';
import { keyPin } from '../../src/node/identity/key-pin.ts';
import { HttpsPeers } from '../../src/node/migrations/https-peers.ts';
import {
  attemptOf,
  type Peer,
  type PeerAnswer,
  type PeerCaller,
  type PeerRequest,
} from '../../src/node/migrations/peer.ts';
import { AgentServer, type ServingCertificate } from '../../src/node/server/agent-server.ts';

/** Agents of two clusters, whose nodes are called alike and whose authorities know nothing of each other, over real TLS. */

const env = realEnv('silent');
const NEVER = new AbortController().signal;
const lastMonth: Clock = { ...env.clock, now: () => env.clock.now() - 30 * DAY_MS };

const ATTEMPT: Attempt = {
  epoch: 7,
  source: { node: 'n1', nodeUID: 'node-a', podUID: 'pod-a' },
  target: { node: 'n1', nodeUID: 'node-b', podUID: 'pod-b' },
  sourceMigrationUID: 'move',
  targetMigrationUID: 'half',
  across: { targetEpoch: 8 },
};
const LOOK: PeerRequest = { kind: 'look', attempt: ATTEMPT };
const ANSWER: PeerAnswer = { machine: 'inmigrate', letters: [] };

let near: Authority;
let far: Authority;
let farLastMonth: Authority;
beforeAll(async () => {
  near = await createAuthority(env, 'near');
  far = await createAuthority(env, 'far');
  farLastMonth = await createAuthority({ ...env, clock: lastMonth }, 'far');
});

const clientOf = (by: Authority, node = 'n1') =>
  issueIdentity(by, {
    commonName: `system:node:${node}`,
    organizations: ['system:nodes'],
    usages: ['client'],
    validityMs: DAY_MS,
  });
const servingOf = (by: Authority, node = 'n1') =>
  issueIdentity(by, { commonName: `system:node:${node}`, dnsNames: [node], usages: ['server'], validityMs: DAY_MS });
const pinOf = ({ certificatePem }: Identity): string => keyPin(new X509Certificate(certificatePem));

/** The target's agent, as far as it answers; which keys are awaited for which migration is the test's to say. */
class Target {
  readonly awaited = new Map<string, string[]>();
  readonly asked: string[] = [];
  readonly #listeners: (() => void)[] = [];
  server: AgentServer | undefined;
  serving: Identity | undefined;

  async listen(): Promise<void> {
    this.serving = await servingOf(near);
    const isServing = (): Identity | undefined => this.serving;
    const certificate: ServingCertificate = {
      get current() {
        return isServing();
      },
      onChange: (listener) => void this.#listeners.push(listener),
    };
    const transport = { send: () => Promise.reject(new Error('nobody is to be asked')), close: () => undefined };
    this.server = await AgentServer.listen({
      env,
      client: new Client(transport, 'x'),
      node: 'n1',
      guests: {} as never,
      peers: { answer: async (caller, request) => this.#answer(caller, request) },
      isAwaited: (key) => [...this.awaited.values()].some((keys) => keys.includes(key)),
      certificate,
      clientAuthorities: async () => near.certificatePem,
      metrics: async () => '',
      host: '127.0.0.1',
      port: 0,
    });
  }

  async renew(): Promise<void> {
    this.serving = await servingOf(near);
    for (const listener of this.#listeners) listener();
    await new Promise((resolve) => setImmediate(resolve));
  }

  /** As the source's side knows it. */
  peer(keys: readonly string[]): Peer {
    return { node: 'n1', address: '127.0.0.1', port: this.server?.port ?? 0, keys };
  }

  get pin(): string {
    if (!this.serving) throw new Error('it has no certificate');
    return pinOf(this.serving);
  }

  #answer({ node = '', key = '' }: PeerCaller, request: PeerRequest): PeerAnswer {
    const keys = this.awaited.get(attemptOf(request).sourceMigrationUID) ?? [];
    if (!keys.includes(key)) throw new ApiError(403, 'Forbidden', 'it is not its source');
    this.asked.push(`${node} ${request.kind}`);
    return ANSWER;
  }
}

let target: Target;
const opened: HttpsPeers[] = [];
beforeEach(async () => {
  target = new Target();
  await target.listen();
});
afterEach(async () => {
  for (const each of opened.splice(0)) each.close();
  await target.server?.close();
});

/** The agent of a source that shows this, as it is at any time. */
function source(identity: () => Identity, believed = far): HttpsPeers {
  const made = new HttpsPeers({
    clock: env.clock,
    access: {
      authorities: async () => believed.certificatePem,
      credentials: async () => ({ certificate: identity().certificatePem, key: identity().keyPem }),
    },
  });
  opened.push(made);
  return made;
}

describe('agents of two clusters', () => {
  it('speak with each other by the keys that were named for their migration', async () => {
    const identity = await clientOf(far);
    target.awaited.set('move', [pinOf(identity)]);
    const peers = source(() => identity);
    expect(await peers.exchange(target.peer([target.pin]), LOOK, NEVER)).toEqual(ANSWER);
    expect(await peers.exchange(target.peer(['other', target.pin]), LOOK, NEVER)).toEqual(ANSWER);
    expect(target.asked).toEqual([' look', ' look']);
  });

  it.each<[who: string, identity: () => Promise<Identity>, says: string]>([
    ['somebody with another key', () => clientOf(far), 'Unauthorized'],
    ['somebody of the same authority, called alike', () => clientOf(far, 'n1'), 'Unauthorized'],
    ['a node of our own that is not the source', () => clientOf(near), 'not its source'],
    ['another node of our own', () => clientOf(near, 'n2'), 'not its source'],
    [
      'a user of our own',
      () => issueIdentity(near, { commonName: 'admin', usages: ['client'], validityMs: DAY_MS }),
      'is none',
    ],
  ])('do not answer %s', async (_, identity, says) => {
    target.awaited.set('move', [pinOf(await clientOf(far))]);
    const shown = await identity();
    const refused = source(() => shown).exchange(target.peer([target.pin]), LOOK, NEVER);
    await expect(refused).rejects.toMatchObject({ code: 'Refused', message: expect.stringContaining(says) });
    expect(target.asked).toEqual([]);
  });

  it('do not answer whose certificate has expired, though its key was named', async () => {
    const shown = await clientOf(farLastMonth);
    target.awaited.set('move', [pinOf(shown)]);
    const refused = source(() => shown).exchange(target.peer([target.pin]), LOOK, NEVER);
    await expect(refused).rejects.toMatchObject({ code: 'Refused', message: expect.stringContaining('Unauthorized') });
  });

  it('do not answer of one migration whose key was named for another', async () => {
    const identity = await clientOf(far);
    target.awaited.set('another', [pinOf(identity)]);
    target.awaited.set('move', ['somebody else']);
    const refused = source(() => identity).exchange(target.peer([target.pin]), LOOK, NEVER);
    await expect(refused).rejects.toMatchObject({
      code: 'Refused',
      message: expect.stringContaining('not its source'),
    });
  });

  it('let nobody ask for anything else by such a key', async () => {
    const identity = await clientOf(far);
    target.awaited.set('move', [pinOf(identity)]);
    const request = httpsRequest({
      host: '127.0.0.1',
      port: target.server?.port,
      path: '/v1/namespaces/shop/virtualmachineinstances/web/runs',
      rejectUnauthorized: false,
      cert: identity.certificatePem,
      key: identity.keyPem,
      agent: false,
    }).end();
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    response.resume();
    expect(response.statusCode).toBe(401);
  });
});

describe('a source', () => {
  /** Somebody who answers everything, and remembers what he heard. */
  async function impostor(identity: Identity): Promise<{ port: number; heard: () => number; close: () => void }> {
    let count = 0;
    const server = createServer({ cert: identity.certificatePem, key: identity.keyPem }, (_, response) => {
      count++;
      response.end(JSON.stringify(ANSWER));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    return { port, heard: () => count, close: () => server.close() };
  }

  it.each<[who: string, identity: () => Promise<Identity>, isNamed: boolean]>([
    ['with another key', () => servingOf(near), false],
    ['whom its own authority vouches for', () => servingOf(far), false],
    ['whose certificate has expired, though its key was named', () => servingOf(farLastMonth), true],
  ])('says nothing to somebody %s', async (_, identity, isNamed) => {
    const [shown, own] = [await identity(), await clientOf(far)];
    const { port, heard, close } = await impostor(shown);
    const keys = [target.pin, ...(isNamed ? [pinOf(shown)] : [])];
    const refused = source(() => own).exchange({ ...target.peer(keys), port }, LOOK, NEVER);
    await expect(refused).rejects.toMatchObject({ code: 'Unreachable', message: /none of those that were named/ });
    expect(heard()).toBe(0);
    close();
  });

  it('speaks to nobody before it knows the key', async () => {
    const own = await clientOf(far);
    await expect(source(() => own).exchange(target.peer([]), LOOK, NEVER)).rejects.toMatchObject({
      code: 'Unreachable',
    });
  });

  it('does not take a connection for one to somebody else', async () => {
    const own = await clientOf(far);
    target.awaited.set('move', [pinOf(own)]);
    const peers = source(() => own);
    await peers.exchange(target.peer([target.pin]), LOOK, NEVER);
    await expect(peers.exchange(target.peer(['other']), LOOK, NEVER)).rejects.toMatchObject({ code: 'Unreachable' });
    const { keys: _, ...unpinned } = target.peer([]);
    await expect(peers.exchange(unpinned, LOOK, NEVER)).rejects.toMatchObject({ code: 'Unreachable' });
  });

  it('goes on where the target gets another key, once that is known', async () => {
    const own = await clientOf(far);
    target.awaited.set('move', [pinOf(own)]);
    const peers = source(() => own);
    const before = target.pin;
    await peers.exchange(target.peer([before]), LOOK, NEVER);
    await target.renew();
    // What was shown on a connection stays true.
    expect(await peers.exchange(target.peer([before]), LOOK, NEVER)).toEqual(ANSWER);
    const later = source(() => own);
    await expect(later.exchange(target.peer([before]), LOOK, NEVER)).rejects.toMatchObject({ code: 'Unreachable' });
    expect(await later.exchange(target.peer([target.pin, before]), LOOK, NEVER)).toEqual(ANSWER);
  });

  it('is heard again where it has another key itself, once that is known', async () => {
    let own = await clientOf(far);
    target.awaited.set('move', [pinOf(own)]);
    const peers = source(() => own);
    await peers.exchange(target.peer([target.pin]), LOOK, NEVER);
    own = await clientOf(far);
    await expect(peers.exchange(target.peer([target.pin]), LOOK, NEVER)).rejects.toMatchObject({ code: 'Refused' });
    target.awaited.get('move')?.push(pinOf(own));
    expect(await peers.exchange(target.peer([target.pin]), LOOK, NEVER)).toEqual(ANSWER);
  });
});
