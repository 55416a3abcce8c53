import { createHash } from 'node:crypto';
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

  /**
   * Makes the objects what they should be, one after the other, whoever else has written their fields. Those that were
   * applied like this before, and still are like this, are not written.
   */
  async apply(objects: readonly KubeObject[], signal: AbortSignal): Promise<void> {
    for (const object of objects) {
      const { namespace = '', name = '' } = object.metadata;
      const resource = this.#resourceOf(object);
      const wanted = stamped(object);
      const actual = await this.#find(resource, object, signal);
      if (actual && includes(actual, wanted)) continue;
      // What is applied is what an object literal says: plain JSON.
      const body = wanted as Extract<Parameters<Client['patch']>[3], { type: 'apply' }>['body'];
      await this.#client.patch(resource, namespace, name, { type: 'apply', body, force: true }, signal);
    }
  }

  /** Creates the objects that do not exist; those that do are left as they are. */
  async createMissing(objects: readonly KubeObject[], signal: AbortSignal): Promise<void> {
    // Looked up first: trying to create what is there would ask webhooks that may not be up yet.
    for (const object of await this.missing(objects, signal)) {
      try {
        await this.#client.create(this.#resourceOf(object), object, signal);
      } catch (error) {
        if (!(error instanceof ApiError && error.reason === 'AlreadyExists')) throw error;
      }
    }
  }

  /** Those of the objects that do not exist. */
  async missing(objects: readonly KubeObject[], signal: AbortSignal): Promise<KubeObject[]> {
    const missing: KubeObject[] = [];
    for (const object of objects)
      if (!(await this.#find(this.#resourceOf(object), object, signal))) missing.push(object);
    return missing;
  }

  #find(resource: Resource, { metadata }: KubeObject, signal: AbortSignal): Promise<KubeObject | undefined> {
    return this.#client.find(resource, metadata.namespace ?? '', metadata.name ?? '', signal);
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

/** Says what an object was applied as: what a later version leaves out has to go, though it is no more spoken of. */
const STAMP = 'godwit.dev/applied';

function stamped(object: KubeObject): KubeObject {
  const stamp = createHash('sha256').update(JSON.stringify(object)).digest('hex');
  const annotations = { ...object.metadata.annotations, [STAMP]: stamp };
  return { ...object, metadata: { ...object.metadata, annotations } };
}

/** Whether all that is wanted is there, besides whatever else. */
function includes(actual: unknown, wanted: unknown): boolean {
  if (Array.isArray(wanted)) {
    const isAlike = Array.isArray(actual) && actual.length === wanted.length;
    return isAlike && wanted.every((each, index) => includes(actual[index], each));
  }
  if (typeof wanted !== 'object' || wanted === null) return actual === wanted;
  if (typeof actual !== 'object' || actual === null) return false;
  return Object.entries(wanted).every(
    ([key, value]) => value === undefined || (Object.hasOwn(actual, key) && includes(Reflect.get(actual, key), value)),
  );
}
