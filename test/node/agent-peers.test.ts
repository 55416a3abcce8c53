import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { createServer, request as httpsRequest, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ApiError, serviceUnavailable } from '../../src/api/status.ts';
import { realEnv } from '../../src/env/real.ts';
import { SMALL_MACHINE } from '../../src/hypervisor/machine.fixture.ts';
import { Client } from '../../src/kube/client.ts';
import {
  type Authority,
  createAuthority,
  DAY_MS,
  type Identity,
  issueIdentity,
} from '../../src/machinery/x509/authority.ts';
import type { Attempt } from '../../src/migration/right-to-run/attempt.ts';
import { HttpsPeers } from '../../src/node/migrations/https-peers.ts';
import { attemptOf, type PeerAnswer, type PeerRequest } from '../../src/node/migrations/peer.ts';
import { AgentServer } from '../../src/node/server/agent-server.ts';

/** Agents that speak with each other over real TLS; no API server is there to be asked. */

const env = realEnv('silent');
const NEVER = new AbortController().signal;

const ATTEMPT: Attempt = {
  epoch: 7,
  source: { node: 'a', nodeUID: 'node-a', podUID: 'pod-a' },
  target: { node: 'b', nodeUID: 'node-b', podUID: 'pod-b' },
  sourceMigrationUID: 'migration',
  targetMigrationUID: 'migration',
};
const LOOK: PeerRequest = { kind: 'look', attempt: ATTEMPT };
const ANSWER: PeerAnswer = {
  machine: 'inmigrate',
  letters: [],
  opened: {
    host: '127.0.0.1',
    memoryPort: 49_152,
    isPostCopyPossible: true,
    machine: { spec: SMALL_MACHINE, ramBytes: 33_562_624 },
  },
};

let authority: Authority;
let stranger: Authority;
let server: AgentServer;
let asked: string[];
let answer: () => PeerAnswer;
const peers: HttpsPeers[] = [];

beforeAll(async () => {
  authority = await createAuthority(env, 'cluster');
  stranger = await createAuthority(env, 'elsewhere');
});

const clientOf = (by: Authority, commonName: string, ...organizations: string[]) =>
  issueIdentity(by, { commonName, organizations, usages: ['client'], validityMs: DAY_MS });

const servingOf = (node: string, by = authority) =>
  issueIdentity(by, { commonName: `system:node:${node}`, dnsNames: [node], usages: ['server'], validityMs: DAY_MS });

beforeEach(async () => {
  [asked, answer] = [[], () => ANSWER];
  const current = await servingOf('b');
  server = await AgentServer.listen({
    env,
    client: new Client({ send: () => Promise.reject(new Error('nobody is to be asked')), close: () => undefined }, 'x'),
    node: 'b',
    guests: {} as never,
    peers: {
      answer: async (caller, request) => {
        if (caller.node !== attemptOf(request).source.node)
          throw new ApiError(403, 'Forbidden', `${caller.node} is not its source`);
        asked.push(`${caller.node} ${request.kind}`);
        return answer();
      },
    },
    certificate: { current, onChange: () => undefined },
    clientAuthorities: async () => authority.certificatePem,
    metrics: async () => '',
    host: '127.0.0.1',
    port: 0,
  });
});
afterEach(async () => {
  for (const each of peers.splice(0)) each.close();
  await server.close();
});

function peersWith(identity: Identity | undefined, believed = authority): HttpsPeers {
  const made = new HttpsPeers({
    clock: env.clock,
    access: {
      authorities: async () => believed.certificatePem,
      credentials: async () =>
        identity ? { certificate: identity.certificatePem, key: identity.keyPem } : { authorization: 'Bearer x' },
    },
  });
  peers.push(made);
  return made;
}

const at = (node: string, port = server.port) => ({ node, address: '127.0.0.1', port });

describe('the agents of two nodes', () => {
  it('speak with each other', async () => {
    const near = peersWith(await clientOf(authority, 'system:node:a', 'system:nodes'));
    expect(await near.exchange(at('b'), LOOK, NEVER)).toEqual(ANSWER);
    expect(
      await near.exchange(at('b'), { kind: 'letter', message: { kind: 'grant', attempt: ATTEMPT } }, NEVER),
    ).toEqual(ANSWER);
    expect(asked).toEqual(['a look', 'a letter']);
  });

  it('hear why not', async () => {
    const near = peersWith(await clientOf(authority, 'system:node:a', 'system:nodes'));
    answer = () => {
      throw new ApiError(409, 'Conflict', 'it was opened already');
    };
    const refused = near.exchange(at('b'), LOOK, NEVER);
    await expect(refused).rejects.toMatchObject({
      code: 'Refused',
      message: expect.stringContaining('opened already'),
    });
    answer = () => {
      throw serviceUnavailable('not yet');
    };
    await expect(near.exchange(at('b'), LOOK, NEVER)).rejects.toMatchObject({ code: 'Unreachable' });
  });

  it('do not wait for ever', async () => {
    const near = peersWith(await clientOf(authority, 'system:node:a', 'system:nodes'));
    const impatient = new AbortController();
    const waiting = near.exchange(at('b'), LOOK, impatient.signal);
    impatient.abort();
    await expect(waiting).rejects.toMatchObject({ code: 'Unreachable' });
  });
});

describe('whoever', () => {
  it.each<[who: string, identity: () => Promise<Identity | undefined>, says: string]>([
    ['has no certificate', async () => undefined, 'no certificate to show'],
    ['is a user', () => clientOf(authority, 'admin', 'system:masters'), 'admin is none'],
    ['is called like a node', () => clientOf(authority, 'system:node:a', 'system:masters'), 'is none'],
    ['is a node without a name', () => clientOf(authority, 'system:node:', 'system:nodes'), 'is none'],
    [
      'is another node than the source',
      () => clientOf(authority, 'system:node:c', 'system:nodes'),
      'c is not its source',
    ],
    ['is the target itself', () => clientOf(authority, 'system:node:b', 'system:nodes'), 'b is not its source'],
    ['has a certificate of another cluster', () => clientOf(stranger, 'system:node:a', 'system:nodes'), 'Unauthorized'],
    ['shows what servers show', () => servingOf('a'), 'Unauthorized'],
  ])('%s is not answered', async (_, identity, says) => {
    const near = peersWith(await identity());
    const refused = near.exchange(at('b'), LOOK, NEVER);
    await expect(refused).rejects.toMatchObject({ code: 'Refused', message: expect.stringContaining(says) });
    expect(asked).toEqual([]);
  });

  it('shows a token alone is not answered', async () => {
    const { status, text } = await post('{}', undefined, { authorization: 'Bearer abc' });
    expect([status, text]).toEqual([401, expect.stringContaining('Unauthorized')]);
  });

  it.each<[what: string, body: string, status: number, says: string]>([
    ['nothing', '', 400, 'no JSON'],
    ['garbage', '\0\0{', 400, 'no JSON'],
    ['something else', '{"kind":"open"}', 400, 'attempt is not'],
    ['too much', `{"kind":"look","more":"${'x'.repeat(300_000)}"}`, 413, 'too large'],
    ['depth without end', '['.repeat(100_000), 400, ''],
  ])('says %s hears what is wrong with it', async (_, body, status, says) => {
    const node = await clientOf(authority, 'system:node:a', 'system:nodes');
    const refused = await post(body, node);
    expect([refused.status, refused.text]).toEqual([status, expect.stringContaining(says)]);
    expect(asked).toEqual([]);
    const near = peersWith(node);
    expect(await near.exchange(at('b'), LOOK, NEVER)).toEqual(ANSWER);
  });

  it('asks in another way finds nothing', async () => {
    const node = await clientOf(authority, 'system:node:a', 'system:nodes');
    // What else there is here is for those whom the API server lets, and it is not there to be asked.
    expect((await post('', node, {}, 'GET')).status).toBe(404);
    expect((await post('', node, {}, 'PUT')).status).toBe(404);
  });
});

describe('a source believes nobody', () => {
  let fake: Server | undefined;
  afterEach(() => fake?.close());

  async function listening(identity: Identity, body: string, status = 200): Promise<number> {
    fake = createServer({ cert: identity.certificatePem, key: identity.keyPem }, (_, response) => {
      response.writeHead(status).end(body);
    });
    fake.listen(0, '127.0.0.1');
    await once(fake, 'listening');
    return (fake.address() as AddressInfo).port;
  }
  const source = async () => peersWith(await clientOf(authority, 'system:node:a', 'system:nodes'));

  it.each([
    ['but keeps its connection', 3, 1],
    ['to keep a connection, and makes another where it was closed', 1, 3],
  ])('%s', async (_, requestsMax, connections) => {
    const port = await listening(await servingOf('b'), JSON.stringify(ANSWER));
    const requests = new Map<unknown, number>();
    fake?.prependListener('request', ({ socket }: IncomingMessage) => {
      requests.set(socket, (requests.get(socket) ?? 0) + 1);
      // Without a word, as where the other agent was started anew.
      if ((requests.get(socket) ?? 0) > requestsMax) socket.destroy();
    });
    const near = await source();
    for (let count = 0; count < 3; count++) expect(await near.exchange(at('b', port), LOOK, NEVER)).toEqual(ANSWER);
    expect(requests.size).toBe(connections);
  });

  it.each<[who: string, identity: () => Promise<Identity>]>([
    ['who is another node', () => servingOf('c')],
    ['of another cluster', () => servingOf('b', stranger)],
    ['who shows what clients show', () => clientOf(authority, 'system:node:b', 'system:nodes')],
  ])('%s', async (_, identity) => {
    const port = await listening(await identity(), JSON.stringify(ANSWER));
    await expect((await source()).exchange(at('b', port), LOOK, NEVER)).rejects.toMatchObject({ code: 'Unreachable' });
  });

  it.each<[what: string, body: string]>([
    ['who says nothing', ''],
    ['who says garbage', '{"machine":"asleep"}'],
    ['who never ends', ' '.repeat(2 ** 21)],
  ])('%s', async (_, body) => {
    const port = await listening(await servingOf('b'), body);
    await expect((await source()).exchange(at('b', port), LOOK, NEVER)).rejects.toMatchObject({ code: 'Unreachable' });
  });

  it('for long', async () => {
    const port = await listening(await servingOf('b'), JSON.stringify({ message: 'x'.repeat(10_000) }), 400);
    const error: Error = await (await source()).exchange(at('b', port), LOOK, NEVER).catch((thrown) => thrown);
    expect(error).toMatchObject({ code: 'Refused' });
    expect(error.message.length).toBeLessThan(1200);
  });
});

async function post(body: string, identity?: Identity, headers: Record<string, string> = {}, method = 'POST') {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const request = httpsRequest(
      {
        host: '127.0.0.1',
        port: server.port,
        servername: 'b',
        ca: authority.certificatePem,
        method,
        path: '/v1/migrations',
        headers,
        agent: false,
        ...(identity ? { cert: identity.certificatePem, key: identity.keyPem } : {}),
      },
      resolve,
    );
    request.once('error', reject);
    request.end(body);
  });
  let text = '';
  for await (const chunk of response) text += String(chunk);
  return { status: response.statusCode, text };
}
