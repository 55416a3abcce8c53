import type { Json, KubeObject } from '../../api/meta.ts';
import { compareQuantities, formatQuantity, type Quantity, quantityToNumber } from '../../api/quantity.ts';
import {
  type Amounts,
  amountsOf,
  podLimits,
  podRequests,
  type PodWithResources,
} from '../../machinery/pod-resources.ts';
import { setOwn } from '../../machinery/clone.ts';
import type { AdmissionAttributes, AdmissionPlugin, Registry } from '../registry/contract.ts';
import { isMainResource, refusal } from './attributes.ts';

type ResourceList = { [name: string]: Json };

interface Limit {
  readonly type?: string;
  readonly min?: ResourceList;
  readonly max?: ResourceList;
  readonly default?: ResourceList;
  readonly defaultRequest?: ResourceList;
  readonly maxLimitRequestRatio?: ResourceList;
}

interface LimitRange extends KubeObject {
  spec?: { limits?: Limit[] };
}

interface Container {
  name?: string;
  resources?: { requests?: ResourceList; limits?: ResourceList };
}

interface Pod extends KubeObject {
  spec?: { containers?: Container[]; initContainers?: Container[] };
}

/** What is asked for and what is allowed at most, of one container, pod or claim. */
interface Usage {
  readonly requests: Amounts;
  readonly limits: Amounts;
}

const BUCKET = 'limitranges';
const ANNOTATION = 'kubernetes.io/limit-ranger';

/** Gives containers the resources that their namespace's LimitRanges say where they say none, and holds all to the bounds. */
export class LimitRanger implements AdmissionPlugin {
  readonly name = 'LimitRanger';
  readonly #registry: Pick<Registry, 'view'>;

  constructor(registry: Pick<Registry, 'view'>) {
    this.#registry = registry;
  }

  handles(attributes: AdmissionAttributes): boolean {
    const { operation, oldObject, target } = attributes;
    const isPod = isMainResource(attributes, '', 'pods') && operation === 'CREATE';
    const isClaim =
      isMainResource(attributes, '', 'persistentvolumeclaims') && (operation === 'CREATE' || operation === 'UPDATE');
    // What is on its way out has only to be able to go.
    if ((!isPod && !isClaim) || oldObject?.metadata.deletionTimestamp !== undefined) return false;
    return this.#ranges(target.namespace).length > 0;
  }

  async mutate(attributes: AdmissionAttributes): Promise<void> {
    if (!isMainResource(attributes, '', 'pods') || !attributes.object) return;
    for (const range of this.#ranges(attributes.target.namespace)) fillPod(attributes.object as Pod, limitsOf(range));
  }

  async validate(attributes: AdmissionAttributes): Promise<void> {
    const { object, target } = attributes;
    if (!object) return;
    const isPod = isMainResource(attributes, '', 'pods');
    for (const range of this.#ranges(target.namespace)) {
      const problems = limitsOf(range).flatMap((limit) =>
        isPod ? podProblems(object, limit) : claimProblems(object, limit),
      );
      const [first, ...others] = [...new Set(problems)];
      if (first !== undefined)
        throw refusal(attributes, others.length === 0 ? first : `[${[first, ...others].join(', ')}]`);
    }
  }

  #ranges(namespace: string): readonly LimitRange[] {
    return this.#registry.view<LimitRange>(BUCKET).list(namespace);
  }
}

function limitsOf(range: LimitRange): readonly Limit[] {
  return range.spec?.limits ?? [];
}

function fillPod(pod: Pod, limits: readonly Limit[]): void {
  const ofContainers = limits.filter(({ type }) => type === 'Container');
  const requests = new Map(ofContainers.flatMap(({ defaultRequest = {} }) => Object.entries(defaultRequest)));
  const most = new Map(ofContainers.flatMap(({ default: given = {} }) => Object.entries(given)));
  const filled = [
    ...(pod.spec?.containers ?? []).flatMap((container) => fill(container, 'container', requests, most)),
    ...(pod.spec?.initContainers ?? []).flatMap((container) => fill(container, 'init container', requests, most)),
  ];
  if (filled.length === 0) return;
  pod.metadata.annotations = {
    ...pod.metadata.annotations,
    [ANNOTATION]: `LimitRanger plugin set: ${filled.join('; ')}`,
  };
}

/** Fills one container, and says what of it was filled. */
function fill(
  container: Container,
  what: string,
  requests: ReadonlyMap<string, Json>,
  limits: ReadonlyMap<string, Json>,
): string[] {
  const add = (field: 'requests' | 'limits', values: ReadonlyMap<string, Json>): string[] => {
    const missing = [...values].filter(([name]) => !Object.hasOwn(container.resources?.[field] ?? {}, name));
    if (missing.length === 0) return [];
    const list = { ...container.resources?.[field] };
    for (const [name, value] of missing) setOwn(list, name, value);
    container.resources = { ...container.resources, [field]: list };
    const names = missing.map(([name]) => name).toSorted();
    return [`${names.join(', ')} ${field.slice(0, -1)} for ${what} ${container.name ?? ''}`];
  };
  const limited = add('limits', limits);
  return [...add('requests', requests), ...limited];
}

function podProblems(object: KubeObject, limit: Limit): string[] {
  const pod = object as Pod;
  if (limit.type === 'Container')
    return [...(pod.spec?.containers ?? []), ...(pod.spec?.initContainers ?? [])].flatMap(({ resources }) =>
      problemsOf(limit, { requests: amountsOf(resources?.requests), limits: amountsOf(resources?.limits) }),
    );
  if (limit.type !== 'Pod') return [];
  // What running it costs besides is no matter of who writes it.
  const own = { ...object, spec: { ...(object as PodWithResources).spec, overhead: {} } };
  return problemsOf(limit, { requests: podRequests(own), limits: podLimits(own) });
}

function claimProblems(object: KubeObject, limit: Limit): string[] {
  if (limit.type !== 'PersistentVolumeClaim') return [];
  const { resources } = (object as { spec?: Container }).spec ?? {};
  const requests = amountsOf(resources?.requests);
  return [
    ...each(limit.min, (name, bound) => tooLittle(limit, name, bound, { requests, limits: new Map() })),
    ...each(limit.max, (name, bound) => {
      const request = requests.get(name);
      const rule = `maximum ${name} usage per ${limit.type} is ${formatQuantity(bound)}`;
      if (!request) return `${rule}.  No request is specified`;
      return exceeds(request, bound) ? `${rule}, but request is ${formatQuantity(request)}` : undefined;
    }),
  ];
}

function problemsOf(limit: Limit, usage: Usage): string[] {
  return [
    ...each(limit.min, (name, bound) => tooLittle(limit, name, bound, usage)),
    ...each(limit.max, (name, bound) => tooMuch(limit, name, bound, usage)),
    ...each(limit.maxLimitRequestRatio, (name, bound) => tooUnequal(limit, name, bound, usage)),
  ];
}

function each(
  bounds: ResourceList | undefined,
  problemOf: (name: string, bound: Quantity) => string | undefined,
): string[] {
  return [...amountsOf(bounds)].flatMap(([name, bound]) => problemOf(name, bound) ?? []);
}

const exceeds = (left: Quantity, right: Quantity): boolean => compareQuantities(left, right) > 0;

function tooLittle({ type }: Limit, name: string, bound: Quantity, { requests, limits }: Usage): string | undefined {
  const rule = `minimum ${name} usage per ${type} is ${formatQuantity(bound)}`;
  const [request, limit] = [requests.get(name), limits.get(name)];
  if (!request) return `${rule}.  No request is specified`;
  if (exceeds(bound, request)) return `${rule}, but request is ${formatQuantity(request)}`;
  return limit && exceeds(bound, limit) ? `${rule}, but limit is ${formatQuantity(limit)}` : undefined;
}

function tooMuch({ type }: Limit, name: string, bound: Quantity, { requests, limits }: Usage): string | undefined {
  const rule = `maximum ${name} usage per ${type} is ${formatQuantity(bound)}`;
  const [request, limit] = [requests.get(name), limits.get(name)];
  if (!limit) return `${rule}.  No limit is specified`;
  if (exceeds(limit, bound)) return `${rule}, but limit is ${formatQuantity(limit)}`;
  return request && exceeds(request, bound) ? `${rule}, but request is ${formatQuantity(request)}` : undefined;
}

function tooUnequal({ type }: Limit, name: string, bound: Quantity, { requests, limits }: Usage): string | undefined {
  const rule = `${name} max limit to request ratio per ${type} is ${formatQuantity(bound)}`;
  const [request, limit] = [requests.get(name), limits.get(name)];
  if (!request || request.amount === 0n) return `${rule}, but no request is specified or request is 0`;
  if (!limit || limit.amount === 0n) return `${rule}, but no limit is specified or limit is 0`;
  const ratio = quantityToNumber(limit) / quantityToNumber(request);
  return ratio > quantityToNumber(bound) ? `${rule}, but provided ratio is ${ratio.toFixed(6)}` : undefined;
}
