import type { Anything } from './api.ts';
import { eventually } from './eventually.ts';
import { Godwit } from './godwit.ts';
import { HttpClient } from './http-client.ts';
import { Kubectl } from './kubectl.ts';

/** The config map that every namespace gets. */
export const ROOT_CERTIFICATE = 'kube-root-ca.crt';

/** A server, kubectl for what the test is about, and a plain client for the parts of others that it plays. */
export class Cluster {
  readonly godwit: Godwit;
  readonly kubectl: Kubectl;
  readonly api: HttpClient;
  #namespaces = 0;

  private constructor(godwit: Godwit) {
    this.godwit = godwit;
    this.kubectl = new Kubectl(godwit.kubeconfig);
    this.api = new HttpClient(godwit.access());
  }

  static async start(...args: readonly string[]): Promise<Cluster> {
    return new Cluster(await Godwit.start(...args));
  }

  /** Makes a namespace that nobody else uses, furnished as all are; kubectl as seen from there, and its name. */
  async namespace(prefix = 'test'): Promise<{ kubectl: Kubectl; namespace: string }> {
    const namespace = `${prefix}-${++this.#namespaces}`;
    await this.create('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
    await eventually(() => this.get(`/api/v1/namespaces/${namespace}/configmaps/${ROOT_CERTIFICATE}`));
    return { kubectl: this.kubectl.inNamespace(namespace), namespace };
  }

  /** Reads an object by its path. */
  async get(path: string): Promise<Anything> {
    return (await this.api.request('GET', path)).expect(200).json;
  }

  async create(path: string, body: object): Promise<Anything> {
    return (await this.api.request('POST', path, { body })).expect(201).json;
  }

  /** A merge patch. */
  async merge(path: string, body: object): Promise<Anything> {
    const headers = { 'content-type': 'application/merge-patch+json' };
    return (await this.api.request('PATCH', path, { body, headers })).expect(200).json;
  }

  async close(): Promise<void> {
    this.api.close();
    await this.godwit.remove();
  }
}
