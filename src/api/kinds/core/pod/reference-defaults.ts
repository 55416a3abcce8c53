import type { JsonObject } from '../../../meta.ts';
import { canonicalizeQuantity } from '../amounts.ts';
import { objectAt, setDefault } from '../fields.ts';

/** Defaults of what names a field of the pod or a resource of a container, in variables and in files alike. */
export function applyReferenceDefaults(source: JsonObject | undefined): void {
  const fieldRef = objectAt(source, 'fieldRef');
  if (fieldRef !== undefined) setDefault(fieldRef, 'apiVersion', 'v1');
  const resourceRef = objectAt(source, 'resourceFieldRef');
  if (resourceRef === undefined) return;
  setDefault(resourceRef, 'divisor', '0');
  canonicalizeQuantity(resourceRef, 'divisor');
}
