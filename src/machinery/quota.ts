import { isExtended, isHugePages } from '../api/kinds/core/resource-names.ts';
import type { Json, KubeObject } from '../api/meta.ts';
import { parseQuantity, type Quantity } from '../api/quantity.ts';
import { qualified, type ResourceRef } from '../api/status.ts';
import { addAmounts, type Amounts, amountsOf, hasPodLevelResources, podLimits, podRequests } from './pod-resources.ts';
import type { PodWithResources } from './pod-resources.ts';
import { matchesScopes, type QuotaScopes } from './quota-scopes.ts';

/**
 * What an object costs against a ResourceQuota. Pure: admission charges with it and the quota controller recounts with
 * it, so the two can never disagree.
 */

/** A ResourceQuota as stored. */
export interface ResourceQuota extends KubeObject {
  spec?: QuotaScopes & { readonly hard?: { readonly [name: string]: Json } };
  status?: { hard?: { [name: string]: Json }; used?: { [name: string]: Json } };
}

interface Service extends KubeObject {
  spec?: {
    type?: string;
    ports?: { nodePort?: number }[];
    allocateLoadBalancerNodePorts?: boolean;
  };
}

interface PersistentVolumeClaim extends KubeObject {
  spec?: { storageClassName?: string; resources?: { requests?: { [name: string]: Json } } };
  status?: { allocatedResources?: { [name: string]: Json } };
}

const POD_RESOURCES: ReadonlySet<string> = new Set([
  'pods',
  ...['cpu', 'memory', 'ephemeral-storage'].flatMap((name) => [name, `requests.${name}`, `limits.${name}`]),
]);
const SERVICE_RESOURCES: ReadonlySet<string> = new Set(['services', 'services.nodeports', 'services.loadbalancers']);
const CLAIM_RESOURCES = ['persistentvolumeclaims', 'requests.storage'];
/** Kinds that quotas counted by their plain name before `count/` existed. */
const COUNTED_BY_NAME: ReadonlySet<string> = new Set([
  'configmaps',
  'secrets',
  'resourcequotas',
  'replicationcontrollers',
]);
/** The compute resources that, once under quota, every container has to state. */
const MUST_BE_STATED: ReadonlySet<string> = new Set([
  'cpu',
  'memory',
  'requests.cpu',
  'requests.memory',
  'limits.cpu',
  'limits.memory',
]);
const STORAGE_CLASS_INFIX = '.storageclass.storage.k8s.io/';
const STORAGE_CLASS_ANNOTATION = 'volume.beta.kubernetes.io/storage-class';

const ONE: Quantity = { amount: 1_000_000_000n, format: 'DecimalSI' };

function count(units: number): Quantity {
  return { amount: ONE.amount * BigInt(units), format: 'DecimalSI' };
}

/** The name under which any resource is counted: `count/pods`, `count/deployments.apps`. */
export function countName(resource: ResourceRef): string {
  return `count/${qualified(resource)}`;
}

/** Every quota resource that this object uses, with how much. A finished pod, or one long overdue, only counts as an object. */
export function usageOf(resource: ResourceRef, object: KubeObject, nowMs: number): Amounts {
  const usage: Amounts = new Map([[countName(resource), ONE]]);
  if (resource.group !== '') return usage;
  switch (resource.plural) {
    case 'pods':
      if (!isPastItsEnd(object, nowMs)) addPodUsage(usage, object);
      break;
    case 'services':
      addServiceUsage(usage, object);
      break;
    case 'persistentvolumeclaims':
      addClaimUsage(usage, object);
      break;
    default:
      if (COUNTED_BY_NAME.has(resource.plural)) usage.set(resource.plural, ONE);
  }
  return usage;
}

/** Those of the names that objects of this resource are charged for. */
export function trackedNames(resource: ResourceRef, names: Iterable<string>): string[] {
  const counted = countName(resource);
  const core = resource.group === '' ? resource.plural : '';
  return [...names].filter((name) => name === counted || isTrackedBy(core, name)).sort();
}

function isTrackedBy(core: string, name: string): boolean {
  switch (core) {
    case 'pods':
      return POD_RESOURCES.has(name) || isHugePages(name) || isDeviceRequest(name);
    case 'services':
      return SERVICE_RESOURCES.has(name);
    case 'persistentvolumeclaims':
      return CLAIM_RESOURCES.some((own) => name === own || name.endsWith(STORAGE_CLASS_INFIX + own));
    default:
      return name === core && COUNTED_BY_NAME.has(core);
  }
}

/** Whether the quota limits anything of this object: it tracks the resource, and the object is in its scopes. */
export function quotaCovers(quota: ResourceQuota, resource: ResourceRef, object: KubeObject): boolean {
  if (trackedNames(resource, Object.keys(quota.spec?.hard ?? {})).length === 0) return false;
  return matchesScopes(quota.spec ?? {}, resource, object);
}

/** What a pod has to state before it can be charged to these names, in kube-apiserver's words; undefined when it does. */
export function unstatedRequirements(names: readonly string[], object: KubeObject): string | undefined {
  const pod = object as PodWithResources;
  if (hasPodLevelResources(pod)) return undefined;
  const required = names.filter((name) => MUST_BE_STATED.has(name)).sort();
  if (required.length === 0) return undefined;
  const missing = new Map<string, Set<string>>();
  for (const container of [...(pod.spec?.containers ?? []), ...(pod.spec?.initContainers ?? [])]) {
    const stated = new Map<string, Quantity>();
    addCompute(stated, amountsOf(container.resources?.requests), amountsOf(container.resources?.limits));
    for (const name of required) {
      if (stated.has(name)) continue;
      missing.set(name, (missing.get(name) ?? new Set<string>()).add(container.name ?? ''));
    }
  }
  if (missing.size === 0) return undefined;
  const parts = required.flatMap((name) => {
    const containers = missing.get(name);
    return containers ? [`${name} for: ${[...containers].sort().join(',')}`] : [];
  });
  return `must specify ${parts.join('; ')}`;
}

function isPastItsEnd(object: KubeObject, nowMs: number): boolean {
  const phase = (object['status'] as { phase?: string } | undefined)?.phase;
  if (phase === 'Failed' || phase === 'Succeeded') return true;
  const { deletionTimestamp, deletionGracePeriodSeconds } = object.metadata;
  if (deletionTimestamp === undefined || deletionGracePeriodSeconds === undefined) return false;
  // A lost node must not hold its users' quota for ever.
  return nowMs > Date.parse(deletionTimestamp) + deletionGracePeriodSeconds * 1000;
}

function addPodUsage(usage: Amounts, object: KubeObject): void {
  usage.set('pods', ONE);
  addCompute(usage, podRequests(object as PodWithResources), podLimits(object as PodWithResources));
}

function addCompute(usage: Amounts, requests: Amounts, limits: Amounts): void {
  for (const [name, quantity] of requests) {
    if (name === 'cpu' || name === 'memory' || name === 'ephemeral-storage' || isHugePages(name)) {
      usage.set(name, quantity);
      usage.set(`requests.${name}`, quantity);
    } else if (isExtended(name)) usage.set(`requests.${name}`, quantity);
  }
  for (const [name, quantity] of limits) {
    if (name === 'cpu' || name === 'memory' || name === 'ephemeral-storage') usage.set(`limits.${name}`, quantity);
  }
}

/** Huge pages and devices are limited by what is requested. */
function isDeviceRequest(name: string): boolean {
  if (!name.startsWith('requests.')) return false;
  const requested = name.slice('requests.'.length);
  return isHugePages(requested) || isExtended(requested);
}

function addServiceUsage(usage: Amounts, object: KubeObject): void {
  const { type, ports = [], allocateLoadBalancerNodePorts } = (object as Service).spec ?? {};
  usage.set('services', ONE);
  usage.set('services.loadbalancers', count(type === 'LoadBalancer' ? 1 : 0));
  let nodePorts = 0;
  if (type === 'NodePort') nodePorts = ports.length;
  else if (type === 'LoadBalancer') {
    const named = ports.filter((port) => (port.nodePort ?? 0) !== 0).length;
    nodePorts = allocateLoadBalancerNodePorts === false ? named : ports.length;
  }
  usage.set('services.nodeports', count(nodePorts));
}

function addClaimUsage(usage: Amounts, object: KubeObject): void {
  const claim = object as PersistentVolumeClaim;
  const annotations = claim.metadata.annotations ?? {};
  const annotated = Object.hasOwn(annotations, STORAGE_CLASS_ANNOTATION) ? annotations[STORAGE_CLASS_ANNOTATION] : '';
  const storageClass = annotated || (claim.spec?.storageClassName ?? '');
  const own: Amounts = new Map([['persistentvolumeclaims', ONE]]);
  const storage = claimedStorage(claim);
  if (storage) own.set('requests.storage', storage);
  addAmounts(usage, own);
  if (storageClass === '') return;
  for (const [name, quantity] of own) usage.set(storageClass + STORAGE_CLASS_INFIX + name, quantity);
}

/** The request, or what was already allocated if that is more; in whole bytes. */
function claimedStorage({ spec, status }: PersistentVolumeClaim): Quantity | undefined {
  const requested = parseQuantity(spec?.resources?.requests?.['storage']);
  if (!requested) return undefined;
  const allocated = parseQuantity(status?.allocatedResources?.['storage']);
  const larger = allocated && allocated.amount > requested.amount ? allocated : requested;
  const fraction = larger.amount % ONE.amount;
  return fraction > 0n ? { ...larger, amount: larger.amount - fraction + ONE.amount } : larger;
}
