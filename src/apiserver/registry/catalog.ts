import { apiVersionOf } from '../../api/meta.ts';
import { bucketOf, type ResourceDefinition } from '../../api/resource.ts';

/** What is served: the built-in resources and those that CRDs bring. */
export class Catalog {
  readonly #builtin: readonly ResourceDefinition[];
  readonly #listeners: (() => void)[] = [];
  #all: readonly ResourceDefinition[];
  #byPath = new Map<string, ResourceDefinition>();
  #byBucket = new Map<string, ResourceDefinition>();
  #byKind = new Map<string, ResourceDefinition>();

  constructor(builtin: readonly ResourceDefinition[]) {
    this.#builtin = builtin;
    this.#all = builtin;
    this.#index();
  }

  /** Replaces the custom definitions; built-in ones win over custom ones of the same path. */
  setCustom(custom: readonly ResourceDefinition[]): void {
    this.#all = [...this.#builtin, ...custom];
    this.#index();
    for (const listener of this.#listeners) listener();
  }

  onChange(listener: () => void): void {
    this.#listeners.push(listener);
  }

  all(): readonly ResourceDefinition[] {
    return this.#all;
  }

  /** By group, version and plural, as in a path. */
  find(group: string, version: string, plural: string): ResourceDefinition | undefined {
    return this.#byPath.get(`${group}/${version}/${plural}`);
  }

  /** The definition in whose version a bucket's objects are stored. */
  ofBucket(bucket: string): ResourceDefinition | undefined {
    return this.#byBucket.get(bucket);
  }

  /** By apiVersion and kind, as in a body. */
  ofKind(apiVersion: string, kind: string): ResourceDefinition | undefined {
    return this.#byKind.get(`${apiVersion}/${kind}`);
  }

  #index(): void {
    this.#byPath = new Map();
    this.#byBucket = new Map();
    this.#byKind = new Map();
    for (const definition of this.#all) {
      const { group, version, plural, kind } = definition;
      const path = `${group}/${version}/${plural}`;
      if (this.#byPath.has(path)) continue;
      this.#byPath.set(path, definition);
      this.#byKind.set(`${apiVersionOf(group, version)}/${kind}`, definition);
      const bucket = bucketOf(definition);
      // Served versions come with the stored one first.
      if (!definition.storage && !this.#byBucket.has(bucket)) this.#byBucket.set(bucket, definition);
    }
  }
}
