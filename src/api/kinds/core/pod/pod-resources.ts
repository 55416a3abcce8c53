/** Resources of the pod as a whole, beside those of its containers. */

import type { JsonObject } from '../../../meta.ts';
import { addQuantities, compareQuantities, formatQuantity, type Quantity } from '../../../quantity.ts';
import { amountsAt } from '../amounts.ts';
import { ensureObject, objectAt, objectsAt, textAt } from '../fields.ts';
import { isHugePages, isOvercommitAllowed } from '../resource-names.ts';

/** Whether a resource can be given to a pod as a whole. */
export function isPodLevelResource(name: string): boolean {
  return name === 'cpu' || name === 'memory' || isHugePages(name);
}

type Totals = Map<string, Quantity>;

/**
 * What the containers need together: all that run at once, or the largest init container beside the sidecars that
 * were started before it.
 */
export function containersTotal(spec: JsonObject, side: 'requests' | 'limits'): ReadonlyMap<string, Quantity> {
  const total: Totals = new Map();
  for (const container of objectsAt(spec, 'containers')) add(total, amountsOf(container, side));
  const sidecars: Totals = new Map();
  const largest: Totals = new Map();
  for (const container of objectsAt(spec, 'initContainers')) {
    const amounts = amountsOf(container, side);
    if (textAt(container, 'restartPolicy') === 'Always') {
      add(total, amounts);
      add(sidecars, amounts);
      raise(largest, sidecars);
    } else {
      const together = new Map(sidecars);
      add(together, amounts);
      raise(largest, together);
    }
  }
  raise(total, largest);
  return total;
}

function amountsOf(container: JsonObject, side: string): ReadonlyMap<string, Quantity> {
  return amountsAt(objectAt(container, 'resources'), side);
}

function add(total: Totals, amounts: ReadonlyMap<string, Quantity>): void {
  for (const [name, quantity] of amounts) {
    const present = total.get(name);
    total.set(name, present === undefined ? quantity : addQuantities(present, quantity));
  }
}

function raise(total: Totals, amounts: ReadonlyMap<string, Quantity>): void {
  for (const [name, quantity] of amounts) {
    const present = total.get(name);
    if (present === undefined || compareQuantities(present, quantity) < 0) total.set(name, quantity);
  }
}

/** Completes pod-level resources where some are given: from the containers, and requests from limits. */
export function applyPodResourceDefaults(spec: JsonObject): void {
  const resources = objectAt(spec, 'resources');
  if (resources === undefined) return;
  const given = amountsAt(resources, 'requests');
  if (given.size === 0 && amountsAt(resources, 'limits').size === 0) return;
  for (const [name, quantity] of containersTotal(spec, 'limits')) {
    if (isHugePages(name) && !given.has(name)) fill(resources, 'limits', name, quantity);
  }
  if (amountsAt(resources, 'limits').size === 0) return;
  for (const [name, quantity] of containersTotal(spec, 'requests')) {
    if (isPodLevelResource(name) && isOvercommitAllowed(name)) fill(resources, 'requests', name, quantity);
  }
  for (const [name, quantity] of amountsAt(resources, 'limits')) {
    if (isPodLevelResource(name)) fill(resources, 'requests', name, quantity);
  }
}

function fill(resources: JsonObject, side: string, name: string, quantity: Quantity): void {
  const list = ensureObject(resources, side);
  if (list !== undefined && !Object.hasOwn(list, name)) list[name] = formatQuantity(quantity);
}
