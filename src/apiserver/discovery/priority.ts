/** The order in which groups and versions are listed: the first version is the one that kubectl prefers. */

const VERSION = /^v([1-9][0-9]*)(?:(alpha|beta)([1-9][0-9]*))?$/;
const STABILITY: { readonly [stage: string]: number } = { alpha: 1, beta: 2 };

/** Sorts versions: GA before beta before alpha, higher numbers first, what is no such version last and by name. */
export function compareVersions(a: string, b: string): number {
  const left = rankOf(a);
  const right = rankOf(b);
  if (!left || !right) return left ? -1 : right ? 1 : a < b ? -1 : a > b ? 1 : 0;
  return right.stability - left.stability || right.major - left.major || right.minor - left.minor;
}

function rankOf(version: string): { stability: number; major: number; minor: number } | undefined {
  const match = VERSION.exec(version);
  if (!match) return undefined;
  return {
    stability: match[2] ? (STABILITY[match[2]] ?? 0) : 3,
    major: Number(match[1]),
    minor: Number(match[3] ?? 0),
  };
}

/** kube-apiserver's order of the built-in groups; clients resolve ambiguous short names by it. */
const GROUPS = [
  'apiregistration.k8s.io',
  'apps',
  'events.k8s.io',
  'authentication.k8s.io',
  'authorization.k8s.io',
  'autoscaling',
  'batch',
  'certificates.k8s.io',
  'networking.k8s.io',
  'policy',
  'rbac.authorization.k8s.io',
  'storage.k8s.io',
  'admissionregistration.k8s.io',
  'apiextensions.k8s.io',
  'scheduling.k8s.io',
  'coordination.k8s.io',
  'node.k8s.io',
  'discovery.k8s.io',
  'flowcontrol.apiserver.k8s.io',
];

const BUILTIN_PRIORITY_MAX = 20_000;
const BUILTIN_PRIORITY_STEP = 100;
/** What kube-apiserver gives to the groups of custom resources. */
export const CUSTOM_PRIORITY = 1_000;

/** `groupPriorityMinimum` of a group that this server itself serves; higher ones come first. */
export function groupPriority(group: string): number {
  const index = group === '' ? 0 : GROUPS.indexOf(group);
  return index < 0 ? CUSTOM_PRIORITY : BUILTIN_PRIORITY_MAX - index * BUILTIN_PRIORITY_STEP;
}
