import { afterAll, afterEach, beforeAll, expect } from 'vitest';
import { Cluster } from '../support/cluster.ts';
import { RawConnection } from '../support/raw-connection.ts';

/** A real server that things are done to through its port alone. */

/** Where its small object is. */
export const ROOT = '/api/v1/namespaces/target/configmaps';

export class Target {
  #cluster: Cluster | undefined;

  get cluster(): Cluster {
    if (!this.#cluster) throw new Error('it was not started');
    return this.#cluster;
  }

  get url(): string {
    return this.cluster.godwit.access().url;
  }

  get credentials(): { readonly cert: string; readonly key: string } {
    const { certificate, key } = this.cluster.godwit.access();
    return { cert: certificate, key };
  }

  raw(options: { readonly ALPNProtocols?: string[] } = {}): Promise<RawConnection> {
    return RawConnection.tls(this.url, { ...this.credentials, ...options });
  }

  async start(): Promise<void> {
    this.#cluster = await Cluster.start();
    await this.cluster.create('/api/v1/namespaces', { metadata: { name: 'target' } });
    await this.cluster.create(ROOT, { metadata: { name: 'small' }, data: { key: 'value' } });
  }

  async isUnharmed(): Promise<void> {
    const { cluster } = this;
    expect((await cluster.get(`${ROOT}/small`)).data).toEqual({ key: 'value' });
    expect(cluster.godwit.isRunning).toBe(true);
    // Bad clients are not worth an error in the log.
    expect(cluster.godwit.output).not.toMatch(/"level":(?:50|60)|Unhandled|Uncaught|MaxListeners/);
  }
}

/** One for all tests of a file, after each of which it has to be as it was. */
export function newTarget(): Target {
  const target = new Target();
  beforeAll(() => target.start());
  afterAll(() => target.cluster.close());
  afterEach(() => target.isUnharmed());
  return target;
}
