import type { Cluster } from './cluster.ts';
import type { EventStream } from './api.ts';

/**
 * The part of a kubelet that other machinery waits for: it reports the pods of one namespace as running once they have
 * a node, and lets go of those that are being deleted, as soon as it is told to.
 */
export class TestKubelet {
  readonly #cluster: Cluster;
  readonly #path: string;
  #stream: EventStream | undefined;
  #done: Promise<void> = Promise.resolve();

  constructor(cluster: Cluster, namespace: string) {
    this.#cluster = cluster;
    this.#path = `/api/v1/namespaces/${namespace}/pods`;
  }

  /** Starts to end pods that have a deletionTimestamp, those that have one already included. */
  async start(): Promise<void> {
    const stream = await this.#cluster.api.watch(`${this.#path}?watch=true`);
    this.#stream = stream;
    this.#done = this.#run(stream);
  }

  async stop(): Promise<void> {
    this.#stream?.close();
    await this.#done;
  }

  /** Reports a pod as running, ready or not. */
  async report(name: string, options: { readonly ready: boolean } = { ready: true }): Promise<void> {
    const status = options.ready ? 'True' : 'False';
    await this.#cluster.merge(`${this.#path}/${name}/status`, {
      status: { phase: 'Running', conditions: [{ type: 'Ready', status }] },
    });
  }

  async #run(stream: EventStream): Promise<void> {
    for (;;) {
      const event = await stream.next();
      if (!event) return;
      const { name, uid, deletionTimestamp } = event.object.metadata;
      if (event.type === 'DELETED' || deletionTimestamp === undefined) continue;
      const body = { kind: 'DeleteOptions', apiVersion: 'v1', gracePeriodSeconds: 0, preconditions: { uid } };
      await this.#cluster.api.request('DELETE', `${this.#path}/${name}`, { body });
    }
  }
}
