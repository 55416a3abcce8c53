/** Validation of what containers, and pods as a whole, ask for. */

import {
  child,
  duplicate,
  entry,
  type FieldError,
  forbidden,
  invalid,
  notFound,
  notSupported,
  required,
} from '../../../field-error.ts';
import type { JsonObject } from '../../../meta.ts';
import { dnsLabelErrors } from '../../../names.ts';
import { compareQuantities, formatQuantity, parseQuantity, type Quantity } from '../../../quantity.ts';
import { amountsAt } from '../amounts.ts';
import { has, objectAt, objectsAt, textAt } from '../fields.ts';
import { isHugePages, isOvercommitAllowed } from '../resource-names.ts';
import { containerResourceNameErrors, quantityErrors, resourceNameErrors } from '../resource-validation.ts';
import { containersTotal, isPodLevelResource } from './pod-resources.ts';

type NameRule = (name: string, path: string) => FieldError[];

/** What is wrong with the resources of a container. `claims` are the names of the pod's claims. */
export function containerResourcesErrors(
  resources: JsonObject | undefined,
  path: string,
  claims: ReadonlySet<string>,
): FieldError[] {
  return [
    ...requirementsErrors(resources, path, containerResourceNameErrors),
    ...claimErrors(resources, child(path, 'claims'), claims),
  ];
}

function requirementsErrors(resources: JsonObject | undefined, path: string, nameErrors: NameRule): FieldError[] {
  const errors: FieldError[] = [];
  for (const side of ['limits', 'requests']) {
    const list = objectAt(resources, side);
    for (const name of Object.keys(list ?? {})) {
      const itemPath = entry(child(path, side), name);
      errors.push(...nameErrors(name, itemPath), ...quantityErrors(list, name, itemPath));
      errors.push(...pageErrors(list, name, itemPath));
    }
  }
  errors.push(...excessErrors(resources, path));
  const names = [...amountsAt(resources, 'limits').keys(), ...amountsAt(resources, 'requests').keys()];
  if (names.some(isHugePages) && !names.includes('cpu') && !names.includes('memory')) {
    errors.push(forbidden(path, 'HugePages require cpu or memory'));
  }
  return errors;
}

/** Requests may not exceed limits; of what cannot be overcommitted they must equal them. */
function excessErrors(resources: JsonObject | undefined, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const limits = amountsAt(resources, 'limits');
  const requestsPath = child(path, 'requests');
  for (const [name, request] of amountsAt(resources, 'requests')) {
    const limit = limits.get(name);
    if (limit === undefined) {
      if (isOvercommitAllowed(name)) continue;
      errors.push(required(child(path, 'limits'), 'Limit must be set for non overcommitable resources'));
      continue;
    }
    const order = compareQuantities(request, limit);
    const relation = isOvercommitAllowed(name) ? 'less than or equal to' : 'equal to';
    if (order > 0 || (order !== 0 && !isOvercommitAllowed(name))) {
      const detail = `must be ${relation} ${name} limit of ${formatQuantity(limit)}`;
      errors.push(invalid(requestsPath, formatQuantity(request), detail));
    }
  }
  return errors;
}

function pageErrors(list: JsonObject | undefined, name: string, path: string): FieldError[] {
  if (!isHugePages(name)) return [];
  const quantity = parseQuantity(list?.[name]);
  const page = parseQuantity(name.slice('hugepages-'.length));
  if (quantity === undefined) return [];
  if (page !== undefined && page.amount > 0n && quantity.amount % page.amount === 0n) return [];
  const text = formatQuantity(quantity);
  return [invalid(path, text, `${text} is not positive integer multiple of ${name}`)];
}

function claimErrors(resources: JsonObject | undefined, path: string, claims: ReadonlySet<string>): FieldError[] {
  const seen = new Set<string>();
  return objectsAt(resources, 'claims').flatMap((claim, index) => {
    const itemPath = child(path, index);
    const name = textAt(claim, 'name');
    if (name === '') return claim['name'] === '' ? [required(itemPath)] : [];
    const request = textAt(claim, 'request');
    const key = request === '' ? name : `${name}/${request}`;
    const errors =
      request === ''
        ? []
        : dnsLabelErrors(request).map((message) => invalid(child(itemPath, 'request'), request, message));
    const isTaken =
      seen.has(name) || seen.has(key) || (request === '' && [...seen].some((each) => each.startsWith(`${name}/`)));
    if (isTaken) errors.push(duplicate(itemPath, seen.has(name) ? name : key));
    seen.add(key);
    if (!claims.has(name)) {
      const rest = claims.size === 0 ? ' which is empty' : `: ${[...claims].sort().join(', ')}`;
      const missing = notFound(itemPath, name);
      errors.push({
        ...missing,
        message: `${missing.message}: must be one of the names in pod.spec.resourceClaims${rest}`,
      });
    }
    return errors;
  });
}

const POD_LEVEL = ['cpu', 'hugepages-', 'memory'];

function podResourceNameErrors(name: string, path: string): FieldError[] {
  const errors = resourceNameErrors(name, path);
  if (errors.length > 0 || isPodLevelResource(name)) return errors;
  return [notSupported(path, name, POD_LEVEL)];
}

/** What is wrong with the resources of the pod as a whole, by themselves and beside the containers'. */
export function podResourcesErrors(spec: JsonObject, path: string): FieldError[] {
  const resources = objectAt(spec, 'resources');
  if (resources === undefined) return [];
  const own = child(path, 'resources');
  const errors = requirementsErrors(resources, own, podResourceNameErrors);
  if (has(resources, 'claims')) {
    errors.push(forbidden(child(own, 'claims'), 'claims may not be set for Resources at pod-level'));
  }
  const requests = amountsAt(resources, 'requests');
  for (const [name, total] of containersTotal(spec, 'requests')) {
    errors.push(...totalErrors(requests.get(name), total, entry(child(own, 'requests'), name), 'requests'));
  }
  const limits = amountsAt(resources, 'limits');
  for (const [name, total] of containersTotal(spec, 'limits')) {
    if (!isHugePages(name)) continue;
    errors.push(...totalErrors(limits.get(name), total, entry(child(own, 'limits'), name), 'limits'));
  }
  return [...errors, ...containerLimitErrors(spec, own, limits)];
}

function totalErrors(given: Quantity | undefined, total: Quantity, path: string, side: string): FieldError[] {
  if (given === undefined || compareQuantities(total, given) <= 0) return [];
  const detail = `must be greater than or equal to aggregate container ${side} of ${formatQuantity(total)}`;
  return [invalid(path, formatQuantity(given), detail)];
}

function containerLimitErrors(spec: JsonObject, path: string, limits: ReadonlyMap<string, Quantity>): FieldError[] {
  return objectsAt(spec, 'containers').flatMap((container, index) =>
    [...amountsAt(objectAt(container, 'resources'), 'limits')].flatMap(([name, limit]) => {
      const most = limits.get(name);
      if (most === undefined || compareQuantities(limit, most) <= 0) return [];
      const limitPath = child(entry(child(child(path, 'containers'), index), name), 'limits');
      const detail = `must be less than or equal to pod limits of ${formatQuantity(most)}`;
      return [invalid(limitPath, formatQuantity(limit), detail)];
    }),
  );
}
