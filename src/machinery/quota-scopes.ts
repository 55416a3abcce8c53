import type { KubeObject } from '../api/meta.ts';
import type { ResourceRef } from '../api/status.ts';
import { isBestEffort, type PodWithResources } from './pod-resources.ts';

/** Which pods a ResourceQuota with scopes is about. */

export interface ScopeRequirement {
  readonly scopeName: string;
  readonly operator: string;
  readonly values?: readonly string[];
}

/** The part of a quota's spec that narrows it down. */
export interface QuotaScopes {
  readonly scopes?: readonly string[];
  readonly scopeSelector?: { readonly matchExpressions?: readonly ScopeRequirement[] };
}

interface AffinityTerm {
  readonly namespaces?: readonly string[];
  readonly namespaceSelector?: unknown;
}

interface Affinity {
  readonly requiredDuringSchedulingIgnoredDuringExecution?: readonly AffinityTerm[];
  readonly preferredDuringSchedulingIgnoredDuringExecution?: readonly { readonly podAffinityTerm?: AffinityTerm }[];
}

interface PodSpec {
  readonly activeDeadlineSeconds?: number;
  readonly priorityClassName?: string;
  readonly affinity?: { readonly podAffinity?: Affinity; readonly podAntiAffinity?: Affinity };
}

/** Whether an object is inside all scopes of a quota. Only pods can be: anything else is outside every scope. */
export function matchesScopes(quota: QuotaScopes, resource: ResourceRef, object: KubeObject): boolean {
  const requirements: ScopeRequirement[] = [
    ...(quota.scopes ?? []).map((scopeName) => ({ scopeName, operator: 'Exists' })),
    ...(quota.scopeSelector?.matchExpressions ?? []),
  ];
  if (requirements.length === 0) return true;
  if (resource.group !== '' || resource.plural !== 'pods') return false;
  return requirements.every((requirement) => podMatches(requirement, object));
}

/** Whether a pod has a deadline of its own, which is what the Terminating scope means. */
export function hasDeadline(object: KubeObject): boolean {
  return (specOf(object).activeDeadlineSeconds ?? -1) >= 0;
}

function podMatches(requirement: ScopeRequirement, object: KubeObject): boolean {
  switch (requirement.scopeName) {
    case 'Terminating':
      return hasDeadline(object);
    case 'NotTerminating':
      return !hasDeadline(object);
    case 'BestEffort':
      return isBestEffort(object as PodWithResources);
    case 'NotBestEffort':
      return !isBestEffort(object as PodWithResources);
    case 'PriorityClass':
      return matchesPriorityClass(requirement, specOf(object).priorityClassName ?? '');
    case 'CrossNamespacePodAffinity':
      return reachesOtherNamespaces(specOf(object));
    default:
      return false;
  }
}

function specOf(object: KubeObject): PodSpec {
  return (object['spec'] as PodSpec | undefined) ?? {};
}

function matchesPriorityClass({ operator, values = [] }: ScopeRequirement, className: string): boolean {
  switch (operator) {
    case 'Exists':
      return className !== '';
    case 'DoesNotExist':
      return className === '';
    case 'In':
      return className !== '' && values.includes(className);
    case 'NotIn':
      return className === '' || !values.includes(className);
    default:
      return false;
  }
}

function reachesOtherNamespaces({ affinity }: PodSpec): boolean {
  return [affinity?.podAffinity, affinity?.podAntiAffinity].some((each) => {
    const preferred = each?.preferredDuringSchedulingIgnoredDuringExecution ?? [];
    const terms = [
      ...(each?.requiredDuringSchedulingIgnoredDuringExecution ?? []),
      ...preferred.map((weighted) => weighted.podAffinityTerm ?? {}),
    ];
    return terms.some((term) => (term.namespaces ?? []).length > 0 || Boolean(term.namespaceSelector));
  });
}
