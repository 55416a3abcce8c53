/** What the names of resources tell. */

import { qualifiedNameErrors } from '../../names.ts';

/** Whether a resource is memory in pages of one size, e.g. `hugepages-2Mi`. */
export function isHugePages(name: string): boolean {
  return name.startsWith('hugepages-');
}

/** Whether a resource is Kubernetes' own rather than a device of somebody's. */
export function isNative(name: string): boolean {
  return !name.includes('/') || name.includes('kubernetes.io/');
}

/** Whether a resource is a device of somebody's, e.g. `example.com/gpu`. */
export function isExtended(name: string): boolean {
  if (isNative(name) || name.startsWith('requests.')) return false;
  return qualifiedNameErrors(`requests.${name}`).length === 0;
}

/** Whether requests may be lower than limits. */
export function isOvercommitAllowed(name: string): boolean {
  return isNative(name) && !isHugePages(name);
}

const OBJECT_COUNTS = [
  'pods',
  'resourcequotas',
  'services',
  'replicationcontrollers',
  'secrets',
  'configmaps',
  'persistentvolumeclaims',
  'services.nodeports',
  'services.loadbalancers',
];
const COMPUTE = ['cpu', 'memory', 'ephemeral-storage'];
const STANDARD_QUOTA: ReadonlySet<string> = new Set([
  ...COMPUTE,
  ...COMPUTE.map((name) => `requests.${name}`),
  ...COMPUTE.map((name) => `limits.${name}`),
  'requests.storage',
  ...OBJECT_COUNTS,
]);
const INTEGERS: ReadonlySet<string> = new Set(OBJECT_COUNTS);

/** Whether amounts of a resource are whole numbers. */
export function isInteger(name: string): boolean {
  return INTEGERS.has(name) || isExtended(name);
}

/** Whether a name without a slash is one that quotas know. */
export function isStandardQuotaResource(name: string): boolean {
  return STANDARD_QUOTA.has(name) || isHugePages(name) || name.startsWith('requests.hugepages-');
}

/** Whether a name without a slash is one that Kubernetes knows at all. */
export function isStandardResource(name: string): boolean {
  return name === 'storage' || isStandardQuotaResource(name);
}

/** Whether a name without a slash is one that containers may ask for. */
export function isStandardContainerResource(name: string): boolean {
  return COMPUTE.includes(name) || isHugePages(name);
}
