/**
 * A fake for tests of authentication and authorization: a registry in memory that stores what it is given, without
 * defaults, admission or validation. Nothing outside tests may import it.
 */

import { builtin } from '../../api/kinds/meta.ts';
import { apiVersionOf, type KubeObject, parseApiVersion } from '../../api/meta.ts';
import { bucketOf, type ResourceDefinition } from '../../api/resource.ts';
import { alreadyExists, conflict, notFound } from '../../api/status.ts';
import { clone } from '../../machinery/clone.ts';
import type { UserInfo } from '../http/message.ts';
import type { Registry, Target, View, WriteContext } from '../registry/contract.ts';

type Listener = (object: KubeObject | undefined, old: KubeObject | undefined) => void;

class FakeView implements View {
  readonly objects = new Map<string, KubeObject>();
  readonly #listeners: Listener[] = [];

  get(namespace: string, name: string): KubeObject | undefined {
    return this.objects.get(`${namespace}/${name}`);
  }

  list(namespace?: string): readonly KubeObject[] {
    const keys = [...this.objects.keys()].sort();
    return keys
      .map((key) => this.objects.get(key) as KubeObject)
      .filter((object) => namespace === undefined || object.metadata.namespace === namespace);
  }

  onChange(listener: Listener): void {
    this.#listeners.push(listener);
  }

  set(key: string, object: KubeObject | undefined): void {
    const old = this.objects.get(key);
    if (object) this.objects.set(key, object);
    else this.objects.delete(key);
    for (const listener of this.#listeners) listener(object, old);
  }
}

const KINDS: readonly (readonly [group: string, plural: string, kind: string, namespaced: boolean])[] = [
  ['', 'serviceaccounts', 'ServiceAccount', true],
  ['', 'secrets', 'Secret', true],
  ['', 'configmaps', 'ConfigMap', true],
  ['', 'pods', 'Pod', true],
  ['', 'nodes', 'Node', false],
  ['rbac.authorization.k8s.io', 'roles', 'Role', true],
  ['rbac.authorization.k8s.io', 'rolebindings', 'RoleBinding', true],
  ['rbac.authorization.k8s.io', 'clusterroles', 'ClusterRole', false],
  ['rbac.authorization.k8s.io', 'clusterrolebindings', 'ClusterRoleBinding', false],
  ['certificates.k8s.io', 'certificatesigningrequests', 'CertificateSigningRequest', false],
];

/** See the head of this file. */
export class FakeRegistry implements Registry {
  readonly #views = new Map<string, FakeView>();
  readonly #definitions: readonly ResourceDefinition[] = KINDS.map(([group, plural, kind, namespaced]) =>
    builtin({ group, version: 'v1', plural, kind, namespaced, schema: {}, hasStatus: kind.startsWith('Certificate') }),
  );
  #sequence = 0;

  /** Stores an object as it is, whatever was there, and tells the views. */
  put<T extends KubeObject>(object: T): T {
    const view = this.#viewOf(object);
    view.set(keyOf(object), object);
    return object;
  }

  remove(object: KubeObject): void {
    this.#viewOf(object).set(keyOf(object), undefined);
  }

  definition(group: string, version: string, plural: string): ResourceDefinition | undefined {
    return this.#definitions.find((each) => each.group === group && each.version === version && each.plural === plural);
  }

  definitions(): readonly ResourceDefinition[] {
    return this.#definitions;
  }

  onDefinitionsChange(): void {
    // The fake's definitions never change.
  }

  view<T extends KubeObject = KubeObject>(bucket: string): View<T> {
    return this.#view(bucket) as unknown as View<T>;
  }

  read(target: Target): KubeObject | undefined {
    return clone(this.#view(bucketOf(target.definition)).get(target.namespace, target.name));
  }

  async create(_context: WriteContext, target: Target, object: KubeObject): Promise<KubeObject> {
    const created = clone(object);
    created.apiVersion = apiVersionOf(target.definition.group, target.definition.version);
    created.kind = target.definition.kind;
    created.metadata.uid ??= `uid-${++this.#sequence}`;
    created.metadata.resourceVersion = String(++this.#sequence);
    if (this.#viewOf(created).objects.has(keyOf(created))) throw alreadyExists(target.definition, target.name);
    return clone(this.put(created));
  }

  async update(
    _context: WriteContext,
    target: Target,
    change: (current: KubeObject) => KubeObject | Promise<KubeObject>,
  ): Promise<KubeObject> {
    const current = this.read(target);
    if (!current) throw notFound(target.definition, target.name);
    const updated = clone(await change(current));
    if (updated.metadata.resourceVersion !== this.read(target)?.metadata.resourceVersion) {
      throw conflict(target.definition, target.name, 'the object has been modified');
    }
    updated.metadata.resourceVersion = String(++this.#sequence);
    return clone(this.put(updated));
  }

  async delete(_context: WriteContext, target: Target): Promise<{ object: KubeObject; gone: boolean }> {
    const object = this.read(target);
    if (!object) throw notFound(target.definition, target.name);
    this.remove(object);
    return { object, gone: true };
  }

  #view(bucket: string): FakeView {
    let view = this.#views.get(bucket);
    if (!view) this.#views.set(bucket, (view = new FakeView()));
    return view;
  }

  #viewOf(object: KubeObject): FakeView {
    const { group } = parseApiVersion(object.apiVersion);
    const definition = this.#definitions.find((each) => each.group === group && each.kind === object.kind);
    if (!definition) throw new Error(`the fake registry has no kind ${object.kind}`);
    return this.#view(bucketOf(definition));
  }
}

function keyOf(object: KubeObject): string {
  return `${object.metadata.namespace ?? ''}/${object.metadata.name ?? ''}`;
}

/** A write by this user. */
export function fakeContext(user: UserInfo): WriteContext {
  return { user, dryRun: false, fieldManager: 'test', warnings: [], signal: new AbortController().signal };
}

const RBAC = 'rbac.authorization.k8s.io';

interface FakeRule {
  readonly verbs: readonly string[];
  readonly apiGroups?: readonly string[];
  readonly resources?: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly nonResourceURLs?: readonly string[];
}

export function clusterRole(name: string, rules: readonly FakeRule[], labels: Record<string, string> = {}): KubeObject {
  return { apiVersion: `${RBAC}/v1`, kind: 'ClusterRole', metadata: { name, labels }, rules };
}

export function role(namespace: string, name: string, rules: readonly FakeRule[]): KubeObject {
  return { apiVersion: `${RBAC}/v1`, kind: 'Role', metadata: { namespace, name }, rules };
}

/** `subject` is written `User:name`, `Group:name` or `ServiceAccount:namespace/name` (either part may be empty). */
function subjectOf(text: string): Record<string, string> {
  const colon = text.indexOf(':');
  const [kind, rest] = [text.slice(0, colon), text.slice(colon + 1)];
  if (kind !== 'ServiceAccount') return { kind, apiGroup: RBAC, name: rest };
  const [namespace = '', name = ''] = rest.split('/');
  return namespace === '' ? { kind, name } : { kind, name, namespace };
}

export function clusterBinding(name: string, roleName: string, ...subjects: readonly string[]): KubeObject {
  return {
    apiVersion: `${RBAC}/v1`,
    kind: 'ClusterRoleBinding',
    metadata: { name },
    roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name: roleName },
    subjects: subjects.map(subjectOf),
  };
}

export function roleBinding(
  namespace: string,
  name: string,
  roleRef: readonly [kind: string, name: string],
  ...subjects: readonly string[]
): KubeObject {
  return {
    apiVersion: `${RBAC}/v1`,
    kind: 'RoleBinding',
    metadata: { namespace, name },
    roleRef: { apiGroup: RBAC, kind: roleRef[0], name: roleRef[1] },
    subjects: subjects.map(subjectOf),
  };
}
