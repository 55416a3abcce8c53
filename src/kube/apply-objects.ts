import type { KubeObject } from '../api/meta.ts';
import { ApiError } from '../api/status.ts';
import type { Client } from './client.ts';
import { discover, type Discovery } from './discovery.ts';
import type { Resource } from './resource.ts';

/** Brings objects of any kind onto a server that serves their kinds. */
export class ObjectApplier {
  readonly #client: Client;
  readonly #discovery: Discovery;

  private constructor(client: Client, discovery: Discovery) {
    this.#client = client;
    this.#discovery = discovery;
  }

  /** Asks the server what it serves; kinds that come later need a new one. */
  static async of(client: Client, signal: AbortSignal): Promise<ObjectApplier> {
    return new ObjectApplier(client, await discover(client, signal));
  }

  /** Makes the objects what they should be, one after the other, whoever else has written their fields. */
  async apply(objects: readonly KubeObject[], signal: AbortSignal): Promise<void> {
    for (const object of objects) {
      const { namespace = '', name = '' } = object.metadata;
      // What is applied is what an object literal says: plain JSON.
      const body = object as Extract<Parameters<Client['patch']>[3], { type: 'apply' }>['body'];
      await this.#client.patch(this.#resourceOf(object), namespace, name, { type: 'apply', body, force: true }, signal);
    }
  }

  /** Creates the objects that do not exist; those that do are left as they are. */
  async createMissing(objects: readonly KubeObject[], signal: AbortSignal): Promise<void> {
    for (const object of objects) {
      const resource = this.#resourceOf(object);
      if (await this.#exists(resource, object, signal)) continue;
      try {
        await this.#client.create(resource, object, signal);
      } catch (error) {
        if (!(error instanceof ApiError && error.reason === 'AlreadyExists')) throw error;
      }
    }
  }

  /** Looked up first: trying to create what is there would ask webhooks that may not be up yet. */
  async #exists(resource: Resource, { metadata }: KubeObject, signal: AbortSignal): Promise<boolean> {
    try {
      await this.#client.get(resource, metadata.namespace ?? '', metadata.name ?? '', signal);
      return true;
    } catch (error) {
      if (error instanceof ApiError && error.code === 404) return false;
      throw error;
    }
  }

  #resourceOf({ apiVersion, kind }: KubeObject): Resource {
    const [version = '', group = ''] = apiVersion.split('/').toReversed();
    const found = this.#discovery.resources.find(
      (it) => it.kind === kind && it.group === group && it.version === version && !it.plural.includes('/'),
    );
    if (!found) throw new Error(`the server does not serve ${apiVersion} ${kind}`);
    return found;
  }
}
