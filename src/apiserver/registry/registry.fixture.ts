import { builtinDefinitions } from '../../api/kinds/builtins.ts';
import { builtin } from '../../api/kinds/meta.ts';
import { apiVersionOf, type KubeObject } from '../../api/meta.ts';
import { bucketOf, type ResourceDefinition } from '../../api/resource.ts';
import { testEnv } from '../../env/test.ts';
import { AdmissionChain } from '../admission/chain.ts';
import { MemoryEngine } from '../storage/memory-engine.ts';
import { Store } from '../storage/store.ts';
import { Catalog } from './catalog.ts';
import { encodeStored, keyOf } from './codec.ts';
import type { AdmissionPlugin, DeleteOptions, Registry, Target, WriteContext } from './contract.ts';
import { ResourceRegistry } from './registry.ts';

/** The built-in definition of this group and plural. */
export function builtinOf(group: string, plural: string): ResourceDefinition {
  const found = builtinDefinitions.find((each) => each.group === group && each.plural === plural);
  if (!found) throw new Error(`${plural} of ${group} are not built in`);
  return found;
}

/** A namespaced kind that takes any fields, for what is not built in. */
export function anyDefinition(
  group: string,
  version: string,
  plural: string,
  kind: string,
  more: Partial<ResourceDefinition> = {},
): ResourceDefinition {
  const schema = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } as const;
  return builtin({ group, version, plural, kind, namespaced: true, schema, ...more });
}

/**
 * The real registry of the built-in kinds, on the real store and the engine in memory, without admission unless told.
 * Tests set their scene with `put`, which asks nobody: what it stores may be such as no client could write.
 */
export class TestRegistry extends ResourceRegistry {
  readonly #store: Store;
  readonly #catalog: Catalog;
  readonly #custom: ResourceDefinition[] = [];
  #scenery = 0;
  /** Every update and deletion that was asked for, in order. */
  readonly log: { readonly verb: string; readonly context: WriteContext; readonly target: Target }[] = [];

  private constructor(store: Store, catalog: Catalog, plugins: (registry: Registry) => readonly AdmissionPlugin[]) {
    const admission = (registry: Registry): AdmissionChain => new AdmissionChain(plugins(registry));
    super({ env: testEnv(), store, catalog, admission });
    this.#store = store;
    this.#catalog = catalog;
  }

  /** A registry with these objects in it. */
  static async open(...objects: readonly KubeObject[]): Promise<TestRegistry> {
    return TestRegistry.withPlugins(() => [], ...objects);
  }

  static async withPlugins(
    plugins: (registry: Registry) => readonly AdmissionPlugin[],
    ...objects: readonly KubeObject[]
  ): Promise<TestRegistry> {
    const onFatal = (error: Error): never => {
      throw error;
    };
    const store = await Store.open(new MemoryEngine(), { onFatal });
    const registry = new TestRegistry(store, new Catalog(builtinDefinitions), plugins);
    for (const object of objects) await registry.put(object);
    return registry;
  }

  /** How many writes reached the disk, other than by `put` and `drop`. */
  get writes(): number {
    return this.#store.revision - 1 - this.#scenery;
  }

  /** Stores an object as it is, whatever was there. */
  async put<T extends KubeObject>(object: T): Promise<T> {
    const { definition, bucket, key } = this.#placeOf(object);
    const metadata = { uid: `uid-${object.metadata.name}`, ...object.metadata };
    const expected = this.#store.latest(bucket, key)?.revision ?? 0;
    const encode = (revision: number): string =>
      encodeStored(definition, definition, { ...object, metadata } as KubeObject, revision);
    this.#scenery++;
    const { text } = await this.#store.put({ bucket, key, expected, encode });
    return JSON.parse(text) as T;
  }

  /** Takes an object away at once, if it is there. */
  async drop(object: Pick<KubeObject, 'apiVersion' | 'kind' | 'metadata'>): Promise<void> {
    const { bucket, key } = this.#placeOf(object);
    const latest = this.#store.latest(bucket, key);
    if (!latest) return;
    this.#scenery++;
    await this.#store.delete({ bucket, key, expected: latest.revision, encode: () => latest.text });
  }

  /** Serves another kind. */
  define(definition: ResourceDefinition): void {
    this.#custom.push(definition);
    this.#catalog.setCustom(this.#custom);
  }

  override update(
    context: WriteContext,
    target: Target,
    change: (current: KubeObject) => KubeObject | Promise<KubeObject>,
  ): Promise<KubeObject> {
    this.log.push({ verb: 'update', context, target });
    return super.update(context, target, change);
  }

  override delete(
    context: WriteContext,
    target: Target,
    options: DeleteOptions,
  ): Promise<{ object: KubeObject; gone: boolean }> {
    this.log.push({ verb: 'delete', context, target });
    return super.delete(context, target, options);
  }

  #placeOf({ apiVersion, kind, metadata }: Pick<KubeObject, 'apiVersion' | 'kind' | 'metadata'>): {
    readonly definition: ResourceDefinition;
    readonly bucket: string;
    readonly key: string;
  } {
    const definition = this.#catalog.all().find((each) => {
      return each.kind === kind && apiVersionOf(each.group, each.version) === apiVersion;
    });
    if (!definition) throw new Error(`no ${kind} of ${apiVersion} is served`);
    const key = keyOf(definition, metadata.namespace ?? '', metadata.name ?? '');
    return { definition, bucket: bucketOf(definition), key };
  }
}

/** A user's write, with nothing special about it. */
export function userContext(more: Partial<WriteContext> = {}): WriteContext {
  return {
    user: { username: 'alice', groups: ['system:authenticated'] },
    dryRun: false,
    fieldManager: 'kubectl',
    warnings: [],
    signal: new AbortController().signal,
    ...more,
  };
}
