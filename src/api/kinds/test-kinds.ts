import type { FieldError } from '../field-error.ts';
import type { KubeObject } from '../meta.ts';
import { apiVersionOf } from '../meta.ts';
import type { ResourceDefinition } from '../resource.ts';

/** What tests of the kinds share. */

const textsOf = (errors: readonly FieldError[] | undefined): string[] =>
  (errors ?? []).map((error) => `${error.field}: ${error.message}`);

/** A whole object of a kind, its metadata completed. */
export function objectOf(definition: ResourceDefinition, fields: object): KubeObject {
  const metadata = { name: 'x', uid: 'u', ...(definition.namespaced ? { namespace: 'y' } : {}) };
  return {
    ...fields,
    apiVersion: apiVersionOf(definition.group, definition.version),
    kind: definition.kind,
    metadata: { ...metadata, ...(fields as { metadata?: object }).metadata },
  };
}

/** The object as a create leaves it. */
export function created(definition: ResourceDefinition, fields: object): KubeObject {
  const object = objectOf(definition, fields);
  definition.strategy?.applyDefaults?.(object);
  definition.strategy?.prepareForCreate?.(object);
  return object;
}

/** What a create is told is wrong. */
export function createErrors(definition: ResourceDefinition, fields: object): string[] {
  return textsOf(definition.strategy?.validate?.(created(definition, fields)));
}

/** What an update is told is wrong with the change. */
export function updateErrors(definition: ResourceDefinition, fields: object, oldFields: object): string[] {
  const old = created(definition, oldFields);
  const object = objectOf(definition, fields);
  definition.strategy?.applyDefaults?.(object);
  definition.strategy?.prepareForUpdate?.(object, old);
  return textsOf(definition.strategy?.validateUpdate?.(object, old));
}

/** What an update of the status is told is wrong with the change. */
export function statusErrors(definition: ResourceDefinition, status: object, oldStatus: object = {}): string[] {
  const old = { ...objectOf(definition, {}), status: oldStatus };
  return textsOf(definition.strategy?.validateStatusUpdate?.({ ...old, status }, old));
}
