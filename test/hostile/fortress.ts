import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Authority, Identity } from '../../src/machinery/x509/authority.ts';
import { realClock, realRandom } from '../../src/env/real.ts';
import type { Answer } from '../support/api.ts';
import { Cluster } from '../support/cluster.ts';
import { HttpClient } from '../support/http-client.ts';

/** A real server with something to protect, and everyone who comes to its door. */

export const ROOT = '/api/v1/namespaces/target';
export const SECRET = 'hunter2hunter2hunter2';

const HOUR_MS = 3_600_000;

/** What a certificate would have to say to be almighty. */
export const MASTER = {
  commonName: 'mallory',
  organizations: ['system:masters'],
  usages: ['client'] as const,
  validityMs: HOUR_MS,
};

export class Fortress {
  readonly cluster: Cluster;
  readonly #clients: HttpClient[] = [];

  private constructor(cluster: Cluster) {
    this.cluster = cluster;
  }

  static async start(...args: readonly string[]): Promise<Fortress> {
    const cluster = await Cluster.start(...args);
    await cluster.create('/api/v1/namespaces', { metadata: { name: 'target' } });
    for (const name of ['one', 'two'])
      await cluster.create(`${ROOT}/secrets`, { metadata: { name }, stringData: { password: `${SECRET}-${name}` } });
    await cluster.create(`${ROOT}/configmaps`, { metadata: { name: 'one' }, data: {} });
    await cluster.create(`${ROOT}/serviceaccounts`, { metadata: { name: 'robot' } });
    return new Fortress(cluster);
  }

  /** Somebody with these credentials; nobody without. */
  client(credentials: { certificate?: string; key?: string; token?: string } = {}): HttpClient {
    const { url, ca } = this.cluster.godwit.access();
    const made = new HttpClient({ url, ca, ...credentials });
    this.#clients.push(made);
    return made;
  }

  withIdentity({ certificatePem, keyPem }: Identity): HttpClient {
    return this.client({ certificate: certificatePem, key: keyPem });
  }

  /** Somebody whom the admin's certificate vouches for. */
  as(
    user: string,
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Answer> {
    return this.cluster.api.request(method, path, {
      ...(body === undefined ? {} : { body }),
      headers: { 'impersonate-user': user, ...headers },
    });
  }

  file(...path: string[]): string {
    return join(this.cluster.godwit.directory, ...path);
  }

  /** One of the cluster's own authorities, as whoever has stolen its key would have it. */
  authority(file: string, nowMs = Date.now()): Authority {
    const blocks = readFileSync(this.file('pki', file), 'utf8').match(/-----BEGIN [^]*?-----END [^-]*-----\n?/g) ?? [];
    const find = (what: string): string => blocks.find((block) => block.includes(what)) ?? '';
    return {
      certificatePem: find('BEGIN CERTIFICATE'),
      keyPem: find('PRIVATE KEY'),
      env: { clock: { ...realClock, now: () => nowMs }, random: realRandom },
    };
  }

  async close(): Promise<void> {
    for (const client of this.#clients) client.close();
    await this.cluster.close();
  }
}
