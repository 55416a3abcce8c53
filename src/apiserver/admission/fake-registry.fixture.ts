import type { KubeObject } from '../../api/meta.ts';
import { bucketOf, type ResourceDefinition } from '../../api/resource.ts';
import { alreadyExists, conflict, notFound, staleObject } from '../../api/status.ts';
import { clone } from '../../machinery/clone.ts';
import type { AdmissionAttributes, DeleteOptions, Registry, Target, View, WriteContext } from '../registry/contract.ts';

/**
 * A fake registry for tests: objects in memory, no schemas, no admission. What it does model is concurrency: every
 * write reads, yields, and then compares revisions, so that writes which run at once do collide and are run again.
 */

type Listener = (object: KubeObject | undefined, old: KubeObject | undefined) => void;

class FakeView implements View {
  readonly objects = new Map<string, KubeObject>();
  readonly listeners: Listener[] = [];

  get(namespace: string, name: string): KubeObject | undefined {
    return this.objects.get(`${namespace}/${name}`);
  }

  list(namespace?: string): readonly KubeObject[] {
    return [...this.objects]
      .filter(([key]) => namespace === undefined || key.startsWith(`${namespace}/`))
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([, object]) => object);
  }

  onChange(listener: Listener): void {
    this.listeners.push(listener);
  }
}

/** A definition with only what admission looks at. */
export function fakeDefinition(
  group: string,
  version: string,
  plural: string,
  kind: string,
  more: Partial<ResourceDefinition> = {},
): ResourceDefinition {
  return {
    group,
    version,
    plural,
    kind,
    singular: kind.toLowerCase(),
    listKind: `${kind}List`,
    namespaced: true,
    schema: {},
    hasStatus: true,
    hasGeneration: false,
    columns: [],
    ...more,
  };
}

const eviction = { name: 'eviction', kind: 'Eviction', group: 'policy', version: 'v1', verbs: ['create'] as const };

export const pods = fakeDefinition('', 'v1', 'pods', 'Pod', {
  subresources: [eviction, { name: 'status', verbs: ['get', 'patch', 'update'] }],
});
export const namespaces = fakeDefinition('', 'v1', 'namespaces', 'Namespace', { namespaced: false });
export const nodes = fakeDefinition('', 'v1', 'nodes', 'Node', { namespaced: false });
export const configMaps = fakeDefinition('', 'v1', 'configmaps', 'ConfigMap');
export const claims = fakeDefinition('', 'v1', 'persistentvolumeclaims', 'PersistentVolumeClaim');
export const services = fakeDefinition('', 'v1', 'services', 'Service');
export const quotas = fakeDefinition('', 'v1', 'resourcequotas', 'ResourceQuota');
export const budgets = fakeDefinition('policy', 'v1', 'poddisruptionbudgets', 'PodDisruptionBudget');
export const deployments = fakeDefinition('apps', 'v1', 'deployments', 'Deployment');
export const priorityClasses = fakeDefinition('scheduling.k8s.io', 'v1', 'priorityclasses', 'PriorityClass', {
  namespaced: false,
});

/** Lets everything that is ready run: the moment in which a colliding write slips in. */
async function turn(): Promise<void> {
  for (let step = 0; step < 3; step++) await Promise.resolve();
}

export class FakeRegistry implements Registry {
  readonly #views = new Map<string, FakeView>();
  readonly #definitions: ResourceDefinition[] = [
    pods,
    namespaces,
    nodes,
    configMaps,
    claims,
    services,
    quotas,
    budgets,
    deployments,
    priorityClasses,
  ];
  readonly #definitionListeners: (() => void)[] = [];
  #revision = 1;
  /** Writes that reached the store, and updates that were run again because they collided. */
  writes = 0;
  collisions = 0;
  /** Every write's context and target, in order. */
  readonly log: { readonly verb: string; readonly context: WriteContext; readonly target: Target }[] = [];

  definition(group: string, version: string, plural: string): ResourceDefinition | undefined {
    return this.#definitions.find((each) => each.group === group && each.version === version && each.plural === plural);
  }

  definitions(): readonly ResourceDefinition[] {
    return this.#definitions;
  }

  define(definition: ResourceDefinition): void {
    this.#definitions.push(definition);
    for (const listener of this.#definitionListeners) listener();
  }

  onDefinitionsChange(listener: () => void): void {
    this.#definitionListeners.push(listener);
  }

  view<T extends KubeObject = KubeObject>(bucket: string): View<T> {
    return this.#view(bucket) as unknown as View<T>;
  }

  #view(bucket: string): FakeView {
    let view = this.#views.get(bucket);
    if (!view) this.#views.set(bucket, (view = new FakeView()));
    return view;
  }

  /** Stores an object as it is, at once; how tests set the scene. */
  put(bucket: string, object: KubeObject): KubeObject {
    const view = this.#view(bucket);
    const key = `${object.metadata.namespace ?? ''}/${object.metadata.name ?? ''}`;
    const old = view.objects.get(key);
    const stored = clone(object);
    stored.metadata.resourceVersion = String(++this.#revision);
    stored.metadata.uid ??= `uid-${object.metadata.name}`;
    view.objects.set(key, stored);
    for (const listener of view.listeners) listener(stored, old);
    return clone(stored);
  }

  /** Removes an object at once. */
  drop(bucket: string, namespace: string, name: string): void {
    const view = this.#view(bucket);
    const old = view.get(namespace, name);
    view.objects.delete(`${namespace}/${name}`);
    for (const listener of view.listeners) listener(undefined, old);
  }

  read({ definition, namespace, name }: Target): KubeObject | undefined {
    const found = this.#view(bucketOf(definition)).get(namespace, name);
    return found && clone(found);
  }

  async create(context: WriteContext, target: Target, object: KubeObject): Promise<KubeObject> {
    this.log.push({ verb: 'create', context, target });
    await turn();
    if (this.read(target)) throw alreadyExists(target.definition, target.name);
    this.writes++;
    return this.put(bucketOf(target.definition), object);
  }

  async update(
    context: WriteContext,
    target: Target,
    change: (current: KubeObject) => KubeObject | Promise<KubeObject>,
  ): Promise<KubeObject> {
    this.log.push({ verb: 'update', context, target });
    for (let attempt = 1; ; attempt++) {
      const current = this.read(target);
      if (!current) throw notFound(target.definition, target.name);
      await turn();
      const updated = await change(clone(current));
      await turn();
      if (this.read(target)?.metadata.resourceVersion === current.metadata.resourceVersion) {
        if (context.dryRun) return updated;
        this.writes++;
        return this.put(bucketOf(target.definition), updated);
      }
      this.collisions++;
      // As the real one: it gives up where something spins.
      if (attempt === 32) throw staleObject(target.definition, target.name);
    }
  }

  async delete(
    context: WriteContext,
    target: Target,
    options: DeleteOptions,
  ): Promise<{ object: KubeObject; gone: boolean }> {
    this.log.push({ verb: 'delete', context, target });
    await turn();
    const current = this.read(target);
    if (!current) throw notFound(target.definition, target.name);
    const { uid, resourceVersion } = options.preconditions ?? {};
    if (uid !== undefined && uid !== current.metadata.uid)
      throw conflict(target.definition, target.name, `Precondition failed: UID in precondition: ${uid}`);
    if (resourceVersion !== undefined && resourceVersion !== current.metadata.resourceVersion)
      throw conflict(target.definition, target.name, 'Precondition failed: ResourceVersion in precondition');
    if (!context.dryRun) {
      this.writes++;
      this.drop(bucketOf(target.definition), target.namespace, target.name);
    }
    return { object: current, gone: true };
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

/** The attributes of a request; by default a create of the object in its own namespace. */
export function attributesOf(
  definition: ResourceDefinition,
  object: KubeObject | undefined,
  more: Partial<Omit<AdmissionAttributes, 'target'>> & { readonly subresource?: string; readonly name?: string } = {},
): AdmissionAttributes {
  const { subresource, name, ...rest } = more;
  const about = object ?? more.oldObject;
  return {
    operation: 'CREATE',
    target: {
      definition,
      namespace: definition.namespaced ? (about?.metadata.namespace ?? 'default') : '',
      name: name ?? about?.metadata.name ?? '',
      ...(subresource === undefined ? {} : { subresource }),
    },
    object,
    oldObject: undefined,
    options: undefined,
    context: userContext(),
    ...rest,
  };
}
