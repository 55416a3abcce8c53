import type { PolicyRule } from './policy-rule.ts';

/** Short ways to write the rules of the default roles. */

export const READ = ['get', 'list', 'watch'];
export const WRITE = ['create', 'update', 'patch', 'delete', 'deletecollection'];
export const READ_WRITE = [...READ, ...WRITE];

/** Verbs on resources of one API group; the core group is the empty string. */
export function resources(verbs: readonly string[], apiGroup: string, ...names: readonly string[]): PolicyRule {
  return { verbs: [...verbs], apiGroups: [apiGroup], resources: [...names] };
}

/** Verbs on paths that are no resources. */
export function urls(verbs: readonly string[], ...paths: readonly string[]): PolicyRule {
  return { verbs: [...verbs], nonResourceURLs: [...paths] };
}
