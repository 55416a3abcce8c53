import type { ResourceDefinition } from '../../../api/resource.ts';
import type { AdmissionAttributes } from '../../registry/contract.ts';
import type { WebhookRule } from './configuration.ts';

/** What a rule looks at: all of it is known before any object is. */
export interface RuleSubject {
  readonly definition: ResourceDefinition;
  readonly subresource: string;
  readonly operation: AdmissionAttributes['operation'];
}

/** Whether a rule names the request's resource, version, scope and operation. */
export function ruleMatches(rule: WebhookRule, { definition, subresource, operation }: RuleSubject): boolean {
  return (
    inScope(rule.scope, definition.namespaced) &&
    isNamed(rule.operations, operation) &&
    isNamed(rule.apiGroups, definition.group) &&
    isNamed(rule.apiVersions, definition.version) &&
    (rule.resources ?? []).some((each) => namesResource(each, definition.plural, subresource))
  );
}

function isNamed(items: readonly string[] | undefined, wanted: string): boolean {
  return (items ?? []).some((item) => item === '*' || item === wanted);
}

function inScope(scope: string | undefined, namespaced: boolean): boolean {
  switch (scope) {
    case undefined:
    case '*':
      return true;
    case 'Namespaced':
      return namespaced;
    case 'Cluster':
      return !namespaced;
    default:
      return false;
  }
}

/** `pods`, `pods/eviction`, `pods/*`, `*`, `*` with a subresource or a wildcard behind the slash. */
function namesResource(pattern: string, plural: string, subresource: string): boolean {
  const slash = pattern.indexOf('/');
  const resource = slash < 0 ? pattern : pattern.slice(0, slash);
  const sub = slash < 0 ? '' : pattern.slice(slash + 1);
  return (resource === '*' || resource === plural) && (sub === '*' || sub === subresource);
}
