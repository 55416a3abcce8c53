import type { UserInfo } from '../http/message.ts';
import type { Registry } from '../registry/contract.ts';
import { type AuthorizationAttributes, combinedResource, type PolicyRule } from './policy-rule.ts';
import { RBAC_GROUP, RoleIndex, type RoleRef } from './role-index.ts';
import { missingRules } from './rule-coverage.ts';

/** Members may do everything, whatever the bindings say: the way back in when those are broken. */
export const MASTERS_GROUP = 'system:masters';

export interface Decision {
  readonly allowed: boolean;
  /** What granted it, or which roles could not be found; never meant for machines. */
  readonly reason: string;
}

/** What a user may do in a namespace, as SelfSubjectRulesReview lists it. */
export interface UserRules {
  readonly resourceRules: readonly PolicyRule[];
  readonly nonResourceRules: readonly PolicyRule[];
  /** True where some binding refers to a role that does not exist. */
  readonly incomplete: boolean;
  readonly evaluationError: string;
}

/** What others need of authorization: one question, answered at once. */
export interface Authorizer {
  authorize(user: UserInfo, attributes: AuthorizationAttributes): Decision;
}

/** Role-based access control over the cluster's own roles and bindings. Nothing is allowed that no rule allows. */
export class RbacAuthorizer implements Authorizer {
  readonly #index: RoleIndex;

  constructor(registry: Pick<Registry, 'view'>) {
    this.#index = new RoleIndex(registry);
  }

  authorize(user: UserInfo, attributes: AuthorizationAttributes): Decision {
    if (isMaster(user)) return { allowed: true, reason: '' };
    const resource = combinedResource(attributes);
    let reason: string | undefined;
    let unresolved: Set<string> | undefined;
    this.#index.visit(user, attributes.namespace, (grant) => {
      const rules = this.#index.rulesOf(grant.roleRef, grant.namespace);
      if (!rules) {
        unresolved ??= new Set();
        unresolved.add(unresolvedRole(grant.roleRef));
        return false;
      }
      for (const rule of rules.compiled) {
        if (!rule.allows(attributes, resource)) continue;
        reason = `RBAC: allowed by ${grant.description}`;
        return true;
      }
      return false;
    });
    if (reason !== undefined) return { allowed: true, reason };
    return { allowed: false, reason: unresolved ? `RBAC: ${joinErrors(unresolved)}` : '' };
  }

  /** Everything that the user may do in the namespace; for the empty one, what holds in every namespace. */
  rulesFor(user: UserInfo, namespace: string): UserRules {
    const { rules, unresolved } = this.#rulesOf(user, namespace);
    return {
      resourceRules: rules.filter((rule) => (rule.resources ?? []).length > 0),
      nonResourceRules: rules.filter((rule) => (rule.nonResourceURLs ?? []).length > 0),
      incomplete: unresolved.size > 0,
      evaluationError: unresolved.size > 0 ? joinErrors(unresolved) : '',
    };
  }

  /** Those of the rules, broken into the smallest, that the user does not hold in the namespace; empty if all are held. */
  covers(user: UserInfo, namespace: string, rules: readonly PolicyRule[]): PolicyRule[] {
    if (isMaster(user)) return [];
    return missingRules(this.#rulesOf(user, namespace).rules, rules);
  }

  /** The rules of a role, gathered ones included; undefined where there is no such role. */
  rulesOfRole(roleRef: RoleRef, namespace: string): readonly PolicyRule[] | undefined {
    return this.#index.rulesOf(roleRef, namespace)?.rules;
  }

  /** The names of the ClusterRoles that gather other ones' rules. */
  gatheringRoles(): readonly string[] {
    return this.#index.gatheringRoles();
  }

  #rulesOf(user: UserInfo, namespace: string): { rules: PolicyRule[]; unresolved: Set<string> } {
    const rules: PolicyRule[] = [];
    const unresolved = new Set<string>();
    this.#index.visit(user, namespace, (grant) => {
      const found = this.#index.rulesOf(grant.roleRef, grant.namespace);
      if (found) for (const rule of found.rules) rules.push(rule);
      else unresolved.add(unresolvedRole(grant.roleRef));
      return false;
    });
    return { rules, unresolved };
  }
}

/** Whether the user is beyond authorization. */
export function isMaster(user: UserInfo): boolean {
  return user.groups.includes(MASTERS_GROUP);
}

function unresolvedRole(roleRef: RoleRef): string {
  return `${roleRef.kind.toLowerCase()}.${RBAC_GROUP} ${JSON.stringify(roleRef.name)} not found`;
}

function joinErrors(errors: ReadonlySet<string>): string {
  const all = [...errors];
  return all.length === 1 ? (all[0] ?? '') : `[${all.join(', ')}]`;
}
