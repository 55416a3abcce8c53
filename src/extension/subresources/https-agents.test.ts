import { once } from 'node:events';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { notFound } from '../../api/status.ts';
import { realClock, realRandom } from '../../env/real.ts';
import { ManualClock } from '../../env/test.ts';
import type { Client } from '../../kube/client.ts';
import { type Authority, createAuthority, DAY_MS, issueIdentity } from '../../machinery/x509/authority.ts';
import { HttpsAgents, type Node } from './https-agents.ts';
import { OwnToken } from './own-token.ts';
import { textOf } from './agents.ts';

const { signal } = new AbortController();
const nodes = new Map<string, Node>();
const tokens = { asked: 0 };
const client = {
  async get(_resource: unknown, _namespace: string, name: string) {
    const node = nodes.get(name);
    if (!node) throw notFound({ group: '', plural: 'nodes' }, name);
    return node;
  },
  async post() {
    tokens.asked++;
    const expirationTimestamp = new Date(clock.now() + 3_600_000).toISOString();
    return { status: { token: `token-${tokens.asked}`, expirationTimestamp } };
  },
} as unknown as Client;
const clock = new ManualClock();

let authority: Authority;
let server: Server;
let agents: HttpsAgents;

beforeAll(async () => {
  authority = await createAuthority({ clock: realClock, random: realRandom }, 'cluster');
  const identity = await issueIdentity(authority, {
    commonName: 'system:node:n1',
    organizations: ['system:nodes'],
    ipAddresses: ['127.0.0.1'],
    usages: ['server'],
    validityMs: DAY_MS,
  });
  server = createServer({ cert: identity.certificatePem, key: identity.keyPem }, (request, response) => {
    response.end(`${request.method} ${request.url} ${request.headers.authorization}`);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  for (const name of ['n1', 'n2'])
    nodes.set(name, {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name },
      status: {
        addresses: [
          { type: 'Hostname', address: 'nowhere.invalid' },
          { type: 'InternalIP', address: '127.0.0.1' },
        ],
        daemonEndpoints: { kubeletEndpoint: { Port: port } },
      },
    });
  nodes.set('bare', { apiVersion: 'v1', kind: 'Node', metadata: { name: 'bare' } });
  agents = new HttpsAgents({
    clock: realClock,
    client,
    token: new OwnToken(client, clock),
    clusterAuthority: () => authority.certificatePem,
  });
});
afterAll(async () => {
  agents.close();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

const ask = async (node: string): Promise<string> =>
  textOf((await agents.send(node, { method: 'GET', path: '/here', signal })).body);

describe('an agent', () => {
  it('is where its node says, and hears who we are', async () => {
    expect(await ask('n1')).toBe('GET /here Bearer token-1');
    expect(await ask('n1')).toBe('GET /here Bearer token-1');
    clock.advance(3_600_000 - 500_000);
    expect(await ask('n1')).toBe('GET /here Bearer token-2');
  });

  it('must be that of the node, even on the same address', () =>
    expect(ask('n2')).rejects.toThrow(
      'the agent of node n2 cannot be reached: its certificate is that of "system:node:n1", not of "system:node:n2"',
    ));

  it('must be vouched for by the cluster', async () => {
    const other = await createAuthority({ clock: realClock, random: realRandom }, 'elsewhere');
    const stranger = new HttpsAgents({
      clock: realClock,
      client,
      token: new OwnToken(client, clock),
      clusterAuthority: () => other.certificatePem,
    });
    await expect(stranger.send('n1', { method: 'GET', path: '/', signal })).rejects.toThrow('cannot be reached');
    stranger.close();
  });

  it('of nodes that are gone or silent cannot be asked', async () => {
    await expect(ask('gone')).rejects.toThrow('node gone is not there any more');
    await expect(ask('bare')).rejects.toThrow('node bare does not say where its agent is');
  });
});
