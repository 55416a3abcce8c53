import type { KubeObject } from '../../api/meta.ts';
import { type LabelSelectorObject, nothing, type Selector, selectorFrom } from '../../machinery/selectors.ts';
import type { UserInfo } from '../http/message.ts';
import type { Registry, View } from '../registry/contract.ts';
import { CompiledRule, type PolicyRule } from './policy-rule.ts';

export const RBAC_GROUP = 'rbac.authorization.k8s.io';

export interface RoleRef {
  readonly apiGroup?: string;
  readonly kind: string;
  readonly name: string;
}

export interface Subject {
  readonly kind: string;
  readonly apiGroup?: string;
  readonly name: string;
  readonly namespace?: string;
}

/** A Role or a ClusterRole. */
export interface Role extends KubeObject {
  rules?: readonly PolicyRule[] | null;
  aggregationRule?: { readonly clusterRoleSelectors?: readonly LabelSelectorObject[] };
}

/** A RoleBinding or a ClusterRoleBinding. */
export interface Binding extends KubeObject {
  roleRef: RoleRef;
  subjects?: readonly Subject[] | null;
}

/** A role's rules, in both forms. */
export interface Rules {
  readonly rules: readonly PolicyRule[];
  readonly compiled: readonly CompiledRule[];
}

/** That a subject is bound to a role, and in words. */
export interface Grant {
  readonly roleRef: RoleRef;
  /** The binding's namespace, where a Role is looked up; empty for a ClusterRoleBinding. */
  readonly namespace: string;
  readonly description: string;
}

type GrantsByName = Map<string, Map<Binding, Grant>>;

/** What is granted in one namespace, or everywhere. Users and groups may share names, so they are kept apart. */
interface Scope {
  readonly users: GrantsByName;
  readonly groups: GrantsByName;
}

/**
 * Who is bound to which role, kept in step with every commit, so that no decision looks at a binding that does not
 * concern its user.
 */
export class RoleIndex {
  readonly #roles: View<Role>;
  readonly #clusterRoles: View<Role>;
  readonly #everywhere: Scope = { users: new Map(), groups: new Map() };
  readonly #namespaces = new Map<string, Scope>();
  /** Rules by role object: a changed role is another object, so nothing here needs to be invalidated. */
  readonly #rules = new WeakMap<Role, Rules>();
  /** Selectors of the ClusterRoles that gather other ones' rules. */
  readonly #aggregating = new Map<string, readonly Selector[]>();
  readonly #aggregated = new Map<string, Rules>();

  constructor(registry: Pick<Registry, 'view'>) {
    this.#roles = registry.view<Role>(`roles.${RBAC_GROUP}`);
    this.#clusterRoles = registry.view<Role>(`clusterroles.${RBAC_GROUP}`);
    for (const plural of ['rolebindings', 'clusterrolebindings']) {
      const bindings = registry.view<Binding>(`${plural}.${RBAC_GROUP}`);
      bindings.onChange((binding, old) => {
        if (old) this.#removeBinding(old);
        if (binding) this.#addBinding(binding);
      });
      for (const binding of bindings.list()) this.#addBinding(binding);
    }
    this.#clusterRoles.onChange((role, old) => this.#onClusterRole(role, old));
    for (const role of this.#clusterRoles.list()) this.#onClusterRole(role, undefined);
  }

  /** Visits what the user was granted: everywhere, then in the namespace (if any). Ends when `visit` answers true. */
  visit(user: UserInfo, namespace: string, visit: (grant: Grant) => boolean): void {
    if (visitScope(this.#everywhere, user, visit) || namespace === '') return;
    const scope = this.#namespaces.get(namespace);
    if (scope) visitScope(scope, user, visit);
  }

  /** The rules of the role that is referred to from `namespace`, or undefined where there is no such role. */
  rulesOf(roleRef: RoleRef, namespace: string): Rules | undefined {
    if (roleRef.kind === 'ClusterRole') {
      const role = this.#clusterRoles.get('', roleRef.name);
      if (!role) return undefined;
      return this.#aggregating.has(roleRef.name) ? this.#gatheredRules(role) : this.#ownRules(role);
    }
    const role = roleRef.kind === 'Role' ? this.#roles.get(namespace, roleRef.name) : undefined;
    return role && this.#ownRules(role);
  }

  /** The names of the ClusterRoles that gather other ones' rules. */
  gatheringRoles(): readonly string[] {
    return [...this.#aggregating.keys()];
  }

  #ownRules(role: Role): Rules {
    let rules = this.#rules.get(role);
    if (!rules) this.#rules.set(role, (rules = compile(role.rules ?? [])));
    return rules;
  }

  /** The union of what the selected roles have, as the aggregation controller would write it into the role. */
  #gatheredRules(role: Role): Rules {
    const name = role.metadata.name ?? '';
    let rules = this.#aggregated.get(name);
    if (!rules) {
      const gathered = new Map<string, PolicyRule>();
      this.#gather(role, new Set(), gathered);
      this.#aggregated.set(name, (rules = compile([...gathered.values()])));
    }
    return rules;
  }

  #gather(role: Role, seen: Set<string>, into: Map<string, PolicyRule>): void {
    const name = role.metadata.name ?? '';
    seen.add(name);
    const selectors = this.#aggregating.get(name);
    if (!selectors) {
      for (const rule of role.rules ?? []) into.set(JSON.stringify(rule), rule);
      return;
    }
    for (const other of this.#clusterRoles.list()) {
      if (seen.has(other.metadata.name ?? '')) continue;
      if (selects(selectors, other)) this.#gather(other, seen, into);
    }
  }

  #onClusterRole(role: Role | undefined, old: Role | undefined): void {
    const name = (role ?? old)?.metadata.name ?? '';
    const selectors = role?.aggregationRule?.clusterRoleSelectors ?? [];
    if (selectors.length > 0) this.#aggregating.set(name, selectors.map(lenientSelector));
    else this.#aggregating.delete(name);
    this.#forgetGathered(name, [role, old]);
  }

  /** Forgets the gathered rules of a role and of every role that gathers it, directly or through others. */
  #forgetGathered(name: string, versions: readonly (Role | undefined)[]): void {
    const changed: { name: string; versions: readonly (Role | undefined)[] }[] = [{ name, versions }];
    const seen = new Set([name]);
    for (const each of changed) {
      this.#aggregated.delete(each.name);
      for (const [gatherer, selectors] of this.#aggregating) {
        if (seen.has(gatherer) || !each.versions.some((version) => version && selects(selectors, version))) continue;
        seen.add(gatherer);
        changed.push({ name: gatherer, versions: [this.#clusterRoles.get('', gatherer)] });
      }
    }
  }

  #addBinding(binding: Binding): void {
    const namespace = binding.metadata.namespace ?? '';
    const scope = namespace === '' ? this.#everywhere : this.#namespaceScope(namespace);
    for (const subject of binding.subjects ?? []) {
      const grants = grantsOf(scope, subject, namespace);
      // Of several subjects that are the same user, the first one speaks.
      if (!grants || grants.get(binding)) continue;
      grants.set(binding, { roleRef: binding.roleRef, namespace, description: describe(binding, subject) });
    }
  }

  #removeBinding(binding: Binding): void {
    const namespace = binding.metadata.namespace ?? '';
    const scope = namespace === '' ? this.#everywhere : this.#namespaces.get(namespace);
    if (!scope) return;
    for (const subject of binding.subjects ?? []) {
      const [names, name] = placeOf(scope, subject, namespace);
      const grants = names?.get(name);
      grants?.delete(binding);
      if (grants?.size === 0) names?.delete(name);
    }
    if (namespace !== '' && scope.users.size === 0 && scope.groups.size === 0) this.#namespaces.delete(namespace);
  }

  #namespaceScope(namespace: string): Scope {
    let scope = this.#namespaces.get(namespace);
    if (!scope) this.#namespaces.set(namespace, (scope = { users: new Map(), groups: new Map() }));
    return scope;
  }
}

function visitScope(scope: Scope, user: UserInfo, visit: (grant: Grant) => boolean): boolean {
  for (const grant of scope.users.get(user.username)?.values() ?? []) if (visit(grant)) return true;
  for (const group of user.groups) {
    for (const grant of scope.groups.get(group)?.values() ?? []) if (visit(grant)) return true;
  }
  return false;
}

/** Where a subject's grants are kept, or undefined for a subject that can be nobody. */
function placeOf(scope: Scope, subject: Subject, namespace: string): [GrantsByName | undefined, string] {
  switch (subject.kind) {
    case 'User':
      return [scope.users, subject.name];
    case 'Group':
      return [scope.groups, subject.name];
    case 'ServiceAccount': {
      const home = subject.namespace || namespace;
      return [home === '' ? undefined : scope.users, `system:serviceaccount:${home}:${subject.name}`];
    }
    default:
      return [undefined, ''];
  }
}

function grantsOf(scope: Scope, subject: Subject, namespace: string): Map<Binding, Grant> | undefined {
  const [names, name] = placeOf(scope, subject, namespace);
  if (!names) return undefined;
  let grants = names.get(name);
  if (!grants) names.set(name, (grants = new Map()));
  return grants;
}

function describe(binding: Binding, subject: Subject): string {
  const namespace = binding.metadata.namespace ?? '';
  const [kind, name] =
    namespace === ''
      ? ['ClusterRoleBinding', binding.metadata.name ?? '']
      : ['RoleBinding', `${binding.metadata.name ?? ''}/${namespace}`];
  const who = subject.kind === 'ServiceAccount' ? `${subject.name}/${subject.namespace || namespace}` : subject.name;
  const role = `${binding.roleRef.kind} ${JSON.stringify(binding.roleRef.name)}`;
  return `${kind} ${JSON.stringify(name)} of ${role} to ${subject.kind} ${JSON.stringify(who)}`;
}

function compile(rules: readonly PolicyRule[]): Rules {
  return { rules, compiled: rules.map((rule) => new CompiledRule(rule)) };
}

function selects(selectors: readonly Selector[], role: Role): boolean {
  return selectors.some((selector) => selector.matches(role.metadata.labels));
}

/** A selector that was stored before it was understood selects nothing: no access comes from a mistake. */
function lenientSelector(selector: LabelSelectorObject): Selector {
  try {
    return selectorFrom(selector);
  } catch {
    return nothing;
  }
}
