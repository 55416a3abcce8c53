import type { KubeObject, OwnerReference } from '../../api/meta.ts';
import { ApiError } from '../../api/status.ts';
import type { Client } from '../../kube/client.ts';
import { LruMap } from '../../kube/lru-map.ts';
import type { Resource } from '../../kube/resource.ts';
import type { Verdict } from './decide.ts';
import { isDeletingDependents } from './graph.ts';

/** Which resource a kind is, as far as discovery has told. */
export interface Kinds {
  resourceOf(apiVersion: string, kind: string): Resource | undefined;
  /** Says that something is not as discovery told. */
  doubt(): void;
}

export interface OwnersOptions {
  /** Needs the metadata alone. */
  readonly client: Client;
  readonly kinds: Kinds;
}

/** A reference that cannot be followed now; it may be later, when its kind is served. */
export class UnknownKindError extends Error {
  constructor({ apiVersion, kind }: Pick<OwnerReference, 'apiVersion' | 'kind'>) {
    super(`nobody serves ${apiVersion}/${kind}`);
    this.name = 'UnknownKindError';
  }
}

/** As many as upstream remembers. */
const ABSENT_MAX = 500;

/**
 * Asks the server about owners. That there is none is only ever concluded from the server's own, newest word: there is
 * no object of that name, or its UID is another. An answer that is about the resource (no such kind any more, no such
 * version) says nothing about the object.
 */
export class Owners {
  readonly #client: Client;
  readonly #kinds: Kinds;
  /** Those that the server has said not to exist. UIDs are never used again, so neither are these. */
  readonly #absent = new LruMap<string, true>(ABSENT_MAX);

  constructor(options: OwnersOptions) {
    this.#client = options.client;
    this.#kinds = options.kinds;
  }

  /**
   * What a reference is worth that an object of this namespace has; `unresolvable` where it can lead nowhere. Where the
   * kind is no longer served, the watch that showed the owner's end (`wasDeleted`) is believed instead: nobody else can
   * be asked. Rejects with UnknownKindError where there was none.
   */
  async judge(
    reference: OwnerReference,
    dependentNamespace: string,
    wasDeleted: boolean,
    signal: AbortSignal,
  ): Promise<Verdict | 'unresolvable'> {
    const { apiVersion, kind, name, uid } = reference;
    const resource = this.#kinds.resourceOf(apiVersion, kind);
    if (!resource) return this.#unserved(reference, wasDeleted);
    if (!isPossibleName(name) || (resource.namespaced && dependentNamespace === '')) return 'unresolvable';
    const namespace = resource.namespaced ? dependentNamespace : '';
    const key = [apiVersion, kind, namespace, name, uid].join('\n');
    if (this.#absent.get(key)) return 'dangling';
    const owner = await this.#find(resource, namespace, name, signal);
    if (owner === 'unserved') return this.#unserved(reference, wasDeleted);
    if (owner?.metadata.uid !== uid) {
      this.#absent.set(key, true);
      return 'dangling';
    }
    return isDeletingDependents(owner.metadata) ? 'waiting' : 'solid';
  }

  /** Throws where a reference cannot be judged now, as `judge` would, but without asking anybody. */
  expectKnown(reference: OwnerReference, wasDeleted: boolean): void {
    if (!this.#kinds.resourceOf(reference.apiVersion, reference.kind)) this.#unserved(reference, wasDeleted);
  }

  async #find(
    resource: Resource,
    namespace: string,
    name: string,
    signal: AbortSignal,
  ): Promise<KubeObject | 'unserved' | undefined> {
    try {
      return await this.#client.get(resource, namespace, name, signal);
    } catch (error) {
      if (!isNotFound(error)) throw error;
      return isAboutObject(error, name) ? undefined : 'unserved';
    }
  }

  #unserved(reference: OwnerReference, wasDeleted: boolean): Verdict {
    this.#kinds.doubt();
    if (wasDeleted) return 'dangling';
    throw new UnknownKindError(reference);
  }
}

export function isNotFound(error: unknown): error is ApiError {
  return error instanceof ApiError && error.code === 404;
}

/** Servers name the object that they do not have; of a path that they do not serve they know no object. */
export function isAboutObject(error: ApiError, name: string): boolean {
  return error.details?.name === name;
}

/** Whether any object may have this name: it would be a segment of its path. */
function isPossibleName(name: string): boolean {
  return name !== '' && name !== '.' && name !== '..' && !/[/%]/.test(name);
}
