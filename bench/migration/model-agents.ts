import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadOrCreatePki } from '../../src/apiserver/pki/cluster-pki.ts';
import { realClock, realEnv, realRandom } from '../../src/env/real.ts';
import { ModelHost } from '../../src/hypervisor/model/model-host.ts';
import { ModelNetwork } from '../../src/hypervisor/model/model-network.ts';
import { Client } from '../../src/kube/client.ts';
import type { ClusterAccess } from '../../src/kube/cluster-access.ts';
import { HttpsTransport } from '../../src/kube/https-transport.ts';
import { Manager } from '../../src/kube/manager.ts';
import type { Service } from '../../src/kube/service.ts';
import { type Authority, HOUR_MS, issueIdentity } from '../../src/machinery/x509/authority.ts';
import { PeerError, type PeerService } from '../../src/node/migrations/peer.ts';
import { ModelDisk } from '../../src/simulation/model-disk.ts';
import { type AgentsLink, agentServices, nodeIdentity } from '../../src/simulation/model-node.ts';

/**
 * A process of its own with the real agents of many nodes, each with its own certificate and its own connection to the API
 * server; their hosts are models. `node model-agents.js SERVER DATA-DIRECTORY COUNT [PODS]`, with so many pods on a node at
 * most; ends with its parent.
 */

const [server = '', dataDirectory = '', count = '0', pods] = process.argv.slice(2);
/** Room for so many pods, where that is asked for. */
const share = pods === undefined ? {} : { share: { pods: Number(pods), cpus: 1000, memoryBytes: 2 ** 40 } };
/** So fast that a copy takes no time worth speaking of. */
const LINK_BYTES_PER_SECOND = 1e12;

const env = realEnv('error');
const services = new Map<string, PeerService>();
const network = new ModelNetwork(LINK_BYTES_PER_SECOND);
const authority = await clusterAuthority();
const all = await Promise.all(Array.from({ length: Number(count) }, (_, index) => agent(`model-${index}`)));
process.stdin.on('end', () => process.exit(0)).resume();
process.stdout.write('started\n');
await new Manager({ env }).add(...all.flat()).run(new AbortController().signal);

/** A copy is opened, since opening may complete what is missing. */
async function clusterAuthority(): Promise<Authority> {
  const copy = mkdtempSync(join(tmpdir(), 'godwit-bench-'));
  try {
    cpSync(join(dataDirectory, 'pki'), join(copy, 'pki'), { recursive: true });
    return (await loadOrCreatePki(join(copy, 'pki'), env, [])).clusterAuthority;
  } finally {
    rmSync(copy, { recursive: true });
  }
}

async function agent(name: string): Promise<readonly Service[]> {
  const { user, groups } = nodeIdentity(name);
  const validity = { usages: ['client'] as const, validityMs: HOUR_MS };
  const identity = await issueIdentity(authority, { commonName: user, organizations: groups, ...validity });
  const access: ClusterAccess = {
    server,
    namespace: 'default',
    isInsecure: false,
    impersonation: {},
    authorities: () => Promise.resolve(authority.certificatePem),
    credentials: () => Promise.resolve({ certificate: identity.certificatePem, key: identity.keyPem }),
    refused: () => undefined,
  };
  const client = new Client(new HttpsTransport({ access, env }), 'virt-handler');
  const world = { clock: realClock, random: realRandom };
  const node = {
    name,
    host: new ModelHost({ env: world, traits: { bootMs: 0, dirtyBytesPerSecond: 0 }, network }),
    disk: new ModelDisk({ ...world, delayMs: () => 0, fault: () => undefined }),
    ...share,
  };
  return agentServices(node, env, client, linkOf(name));
}

/** How agents of this process reach each other. */
function linkOf(name: string): AgentsLink {
  return {
    peers: {
      exchange: (peer, request, signal) => {
        const service = services.get(peer.node);
        if (!service) return Promise.reject(new PeerError('Unreachable', `there is no ${peer.node}`));
        return service.answer({ node: name }, request, signal);
      },
    },
    serve: (service) => void services.set(name, service),
  };
}
