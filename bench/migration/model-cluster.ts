import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Env } from '../../src/env/ports.ts';
import { realClock, realRandom } from '../../src/env/real.ts';
import { ModelHost } from '../../src/hypervisor/model/model-host.ts';
import { ModelNetwork } from '../../src/hypervisor/model/model-network.ts';
import { Client } from '../../src/kube/client.ts';
import type { ClusterAccess } from '../../src/kube/cluster-access.ts';
import { HttpsTransport } from '../../src/kube/https-transport.ts';
import type { Service } from '../../src/kube/service.ts';
import { type Authority, HOUR_MS, type Identity, issueIdentity } from '../../src/machinery/x509/authority.ts';
import { PeerError, type PeerService } from '../../src/node/migrations/peer.ts';
import type { NodeProfile } from '../../src/node/registration/node-object.ts';
import { ModelDisk } from '../../src/simulation/model-disk.ts';
import { type AgentsLink, agentServices, nodeIdentity } from '../../src/simulation/model-node.ts';

/** So fast that a copy takes no time worth speaking of. */
const LINK_BYTES_PER_SECOND = 1e12;

/** Where `godwit up` has the authority of its cluster, below its directory. */
export const AUTHORITY = 'pki/cluster-authority.pem';

export interface ModelClusterOptions {
  /** Where its API server is. */
  readonly server: string;
  /** The file with the certificate and the key of whoever vouches for its nodes. */
  readonly authority: string;
  /** The names of its nodes, which no other cluster has. */
  readonly names: readonly string[];
  readonly share?: NodeProfile['share'];
}

/** The real agents of many nodes, of one cluster or several, that reach each other in this process; their hosts are models. */
export class ModelAgents {
  readonly #env: Env;
  /** By the address at which each is reached, which is its name. */
  readonly #services = new Map<string, PeerService>();
  readonly #network = new ModelNetwork(LINK_BYTES_PER_SECOND);

  constructor(env: Env) {
    this.#env = env;
  }

  /** The agents of a cluster, each with its own certificate and its own connection to the API server. */
  async of(options: ModelClusterOptions): Promise<readonly Service[]> {
    const authority = { ...identityIn(options.authority), env: this.#env };
    const all = await Promise.all(options.names.map((name) => this.#agent(name, authority, options)));
    return all.flat();
  }

  async #agent(name: string, authority: Authority, options: ModelClusterOptions): Promise<readonly Service[]> {
    const { user, groups } = nodeIdentity(name);
    const validity = { usages: ['client'] as const, validityMs: HOUR_MS };
    const identity = await issueIdentity(authority, { commonName: user, organizations: groups, ...validity });
    const access: ClusterAccess = {
      server: options.server,
      namespace: 'default',
      isInsecure: false,
      impersonation: {},
      authorities: () => Promise.resolve(authority.certificatePem),
      credentials: () => Promise.resolve({ certificate: identity.certificatePem, key: identity.keyPem }),
      refused: () => undefined,
    };
    const env = this.#env;
    const client = new Client(new HttpsTransport({ access, env }), 'virt-handler');
    const world = { clock: realClock, random: realRandom };
    const network = this.#network;
    const node = {
      name,
      host: new ModelHost({ env: world, traits: { bootMs: 0, dirtyBytesPerSecond: 0 }, network }),
      disk: new ModelDisk({ ...world, delayMs: () => 0, fault: () => undefined }),
      keys: [keyOf(name)],
      ...(options.share ? { share: options.share } : {}),
    };
    return agentServices(node, env, client, this.#linkOf(name));
  }

  #linkOf(name: string): AgentsLink {
    return {
      peers: {
        exchange: (peer, request, signal) => {
          const service = this.#services.get(peer.address);
          if (!service) return Promise.reject(new PeerError('Unreachable', `there is no ${peer.node}`));
          return service.answer({ node: name, key: keyOf(name) }, request, signal);
        },
      },
      serve: (service) => void this.#services.set(name, service),
    };
  }
}

function identityIn(path: string): Identity {
  const text = readFileSync(path, 'utf8');
  const pem = (what: string): string =>
    new RegExp(`-----BEGIN ${what}-----[^-]+-----END ${what}-----\n`).exec(text)?.[0] ?? '';
  return { certificatePem: pem('CERTIFICATE'), keyPem: pem('PRIVATE KEY') };
}

/** By what an agent is known elsewhere. */
function keyOf(name: string): string {
  return createHash('sha256').update(name).digest('base64');
}
