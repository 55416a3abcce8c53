import type { KubeObject } from '../../api/meta.ts';
import { forbiddenRequest, notFound } from '../../api/status.ts';
import { clone } from '../../machinery/clone.ts';
import { deepEqual } from '../../machinery/equal.ts';
import type { UserInfo } from '../http/message.ts';
import type { AdmissionAttributes, AdmissionPlugin } from '../registry/contract.ts';
import { describeRule, type PolicyRule, quoteList } from './policy-rule.ts';
import { isMaster, type RbacAuthorizer } from './rbac.ts';
import { type Binding, RBAC_GROUP, type Role } from './role-index.ts';
import { compactRules } from './rule-coverage.ts';

type Roles = Pick<RbacAuthorizer, 'authorize' | 'covers' | 'rulesOfRole'>;

const ROLES: ReadonlySet<string> = new Set(['roles', 'clusterroles']);
const BINDINGS: ReadonlySet<string> = new Set(['rolebindings', 'clusterrolebindings']);

const FULL_AUTHORITY: readonly PolicyRule[] = [
  { verbs: ['*'], apiGroups: ['*'], resources: ['*'] },
  { verbs: ['*'], nonResourceURLs: ['*'] },
];

/**
 * Keeps people from giving themselves or others what they do not have: whoever writes a role must hold all that it
 * allows (or be allowed to `escalate` it), whoever writes a binding must hold all that its role allows (or be allowed
 * to `bind` it), in the namespace where it will count.
 */
export class EscalationAdmission implements AdmissionPlugin {
  readonly name = 'RBACEscalation';
  readonly #roles: Roles;

  constructor(roles: Roles) {
    this.#roles = roles;
  }

  handles(attributes: AdmissionAttributes): boolean {
    const { definition, subresource } = attributes.target;
    return (
      definition.group === RBAC_GROUP &&
      (subresource ?? '') === '' &&
      (ROLES.has(definition.plural) || BINDINGS.has(definition.plural)) &&
      (attributes.operation === 'CREATE' || attributes.operation === 'UPDATE')
    );
  }

  async validate(attributes: AdmissionAttributes): Promise<void> {
    const { object, oldObject } = attributes;
    if (!object || isMaster(attributes.context.user)) return;
    if (oldObject && changesOnlyOwnership(object, oldObject)) return;
    if (ROLES.has(attributes.target.definition.plural)) this.#checkRole(attributes, object as Role);
    else this.#checkBinding(attributes, object as Binding);
  }

  #checkRole(attributes: AdmissionAttributes, role: Role): void {
    const { user } = attributes.context;
    const { definition, namespace, name } = attributes.target;
    const escalates = this.#roles.authorize(user, {
      verb: 'escalate',
      isResource: true,
      path: '',
      group: RBAC_GROUP,
      resource: definition.plural,
      subresource: '',
      namespace,
      // A create is asked about without a name, as it is authorized: it cannot be limited to one.
      name: attributes.operation === 'CREATE' ? '' : name,
    });
    if (escalates.allowed) return;
    this.#confirmHeld(attributes, role.rules ?? []);
    if (!gathers(role) && !gathers(attributes.oldObject as Role | undefined)) return;
    // What a gathering role will hold is not known yet: it takes everything to be sure.
    if (this.#roles.covers(user, namespace, FULL_AUTHORITY).length > 0) {
      throw forbiddenRequest(
        definition,
        role.metadata.name ?? '',
        'must have cluster-admin privileges to use the aggregationRule',
      );
    }
  }

  #checkBinding(attributes: AdmissionAttributes, binding: Binding): void {
    const { user } = attributes.context;
    const { namespace } = attributes.target;
    const { roleRef } = binding;
    const resource = roleRef.kind === 'ClusterRole' ? 'clusterroles' : 'roles';
    const mayBind = this.#roles.authorize(user, {
      verb: 'bind',
      isResource: true,
      path: '',
      group: roleRef.apiGroup ?? RBAC_GROUP,
      resource,
      subresource: '',
      namespace,
      name: roleRef.name,
    });
    if (mayBind.allowed) return;
    const rules = this.#roles.rulesOfRole(roleRef, namespace);
    // Nobody can hold what a role will say that does not exist yet. Upstream names the role by the binding's resource.
    if (!rules) throw notFound(attributes.target.definition, roleRef.name);
    this.#confirmHeld(attributes, rules);
  }

  #confirmHeld(attributes: AdmissionAttributes, rules: readonly PolicyRule[]): void {
    const { context, target, object } = attributes;
    const missing = this.#roles.covers(context.user, target.namespace, rules);
    if (missing.length === 0) return;
    const detail = escalationMessage(context.user, missing);
    throw forbiddenRequest(target.definition, object?.metadata.name ?? '', detail);
  }
}

/** A message lists this much of what is missing: enough to mend a role by hand, never a copy of a huge one. */
const LINES_MAX = 100;
const LINE_LENGTH_MAX = 1_000;

/** Upstream's words for an attempt to grant what one does not hold. */
function escalationMessage(user: UserInfo, missing: readonly PolicyRule[]): string {
  const all = [...new Set(compactRules(missing).map(describeRule))].sort();
  const lines = all.slice(0, LINES_MAX).map((line) => line.slice(0, LINE_LENGTH_MAX));
  if (all.length > LINES_MAX) lines.push(`and ${all.length - LINES_MAX} more`);
  const who = `user ${JSON.stringify(user.username)} (groups=${quoteList(user.groups)})`;
  return `${who} is attempting to grant RBAC permissions not currently held:\n${lines.join('\n')}`;
}

function gathers(role: Role | undefined): boolean {
  return (role?.aggregationRule?.clusterRoleSelectors ?? []).length > 0;
}

/** The garbage collector must be able to release objects whose rights it does not hold. */
function changesOnlyOwnership(object: KubeObject, old: KubeObject): boolean {
  return deepEqual(withoutOwnership(object), withoutOwnership(old));
}

function withoutOwnership(object: KubeObject): KubeObject {
  const copy = clone(object);
  delete copy.metadata.ownerReferences;
  delete copy.metadata.finalizers;
  delete copy.metadata.managedFields;
  return copy;
}
