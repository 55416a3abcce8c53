import { expect } from 'vitest';
import { Cluster } from '../support/cluster.ts';
import { eventually } from '../support/eventually.ts';
import { manifests } from './manifests.ts';

/** A real server with objects that bad requests are aimed at. */

export const ROOT = '/api/v1/namespaces/target';
export const VICTIM = `${ROOT}/configmaps/victim`;
export const GADGETS = '/apis/wild.example.com/v1/namespaces/target/gadgets';

export const JSON_TYPE = 'application/json';
export const JSON_PATCH = 'application/json-patch+json';
export const MERGE_PATCH = 'application/merge-patch+json';
export const STRATEGIC_PATCH = 'application/strategic-merge-patch+json';
export const APPLY_PATCH = 'application/apply-patch+yaml';

/** The Status that a request is to be refused with. */
export interface Refusal {
  readonly status: number;
  readonly reason: string;
  readonly message: RegExp | string;
}

export const bad = (message: RegExp | string): Refusal => ({ status: 400, reason: 'BadRequest', message });
export const invalid = (message: RegExp | string): Refusal => ({ status: 422, reason: 'Invalid', message });

export class Victim {
  readonly cluster: Cluster;
  readonly #pid: number;
  #before = '';
  #revision = '';

  private constructor(cluster: Cluster) {
    this.cluster = cluster;
    this.#pid = cluster.godwit.pid;
  }

  static async start(): Promise<Victim> {
    const cluster = await Cluster.start();
    await cluster.create('/api/v1/namespaces', { metadata: { name: 'target' } });
    await cluster.create(`${ROOT}/configmaps`, {
      metadata: { name: 'victim', labels: { a: 'b' } },
      data: { key: 'value' },
    });
    await cluster.create(`${ROOT}/secrets`, { metadata: { name: 'secret' }, data: { password: 'aHVudGVyMg==' } });
    await cluster.create(`${ROOT}/pods`, { metadata: { name: 'pod' }, ...manifests.get('/pods') });
    await cluster.create('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', {
      metadata: { name: 'gadgets.wild.example.com' },
      ...manifests.get('apiextensions.k8s.io/customresourcedefinitions'),
    });
    await eventually(() =>
      cluster.create(GADGETS, { metadata: { name: 'gadget' }, ...manifests.get('wild.example.com/gadgets') }),
    );
    const victim = new Victim(cluster);
    victim.#before = await victim.#state();
    return victim;
  }

  /** Sends, and expects exactly this Status, the server alive, and everything as it was. */
  async refuses(method: string, path: string, body: unknown, contentType: string, expected: Refusal): Promise<void> {
    const { api, godwit } = this.cluster;
    const headers: Record<string, string> = contentType === '' ? {} : { 'content-type': contentType };
    const answer = await api.request(method, path, { ...(body === undefined ? {} : { body }), headers });
    expect(`${answer.status} ${answer.text}`).toMatch(new RegExp(`^${expected.status} `));
    const { message, ...rest } = answer.json;
    const { status: code, reason } = expected;
    expect(rest).toMatchObject({ kind: 'Status', apiVersion: 'v1', status: 'Failure', code, reason });
    if (typeof expected.message === 'string') expect(message).toContain(expected.message);
    else expect(message).toMatch(expected.message);
    expect(message.length).toBeLessThan(20_000);
    expect(godwit.pid).toBe(this.#pid);
    expect((await api.request('GET', '/livez')).text).toBe('ok');
    await this.isUnchanged();
  }

  /** Every write moves the revision on; only where something did is it looked at what. */
  async isUnchanged(): Promise<void> {
    const { metadata } = await this.cluster.get('/api/v1/namespaces?limit=1');
    if (metadata.resourceVersion === this.#revision) return;
    expect(await this.#state()).toBe(this.#before);
    this.#revision = metadata.resourceVersion;
  }

  async close(): Promise<void> {
    await this.cluster.close();
  }

  /** Everything that the requests speak of. */
  async #state(): Promise<string> {
    const paths = [`${ROOT}/configmaps`, `${ROOT}/secrets`, `${ROOT}/pods`, GADGETS, '/api/v1/namespaces'];
    const lists = await Promise.all([...paths, CLUSTER_ROLES].map((path) => this.cluster.get(path)));
    return JSON.stringify(lists.map(({ items }) => items));
  }
}

const CLUSTER_ROLES = '/apis/rbac.authorization.k8s.io/v1/clusterroles';
