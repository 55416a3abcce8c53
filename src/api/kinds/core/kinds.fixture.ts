import type { FieldError } from '../../field-error.ts';
import type { Json, JsonObject, KubeObject, ObjectMeta } from '../../meta.ts';
import type { ResourceDefinition } from '../../resource.ts';
import { isObject } from './fields.ts';

/** Errors as people see them: `path: message`. */
export function lines(errors: readonly FieldError[]): string[] {
  return errors.map((error) => (error.field === '' ? error.message : `${error.field}: ${error.message}`));
}

/** An object of a kind, as it comes from a client. */
export function object(kind: string, fields: JsonObject, metadata: ObjectMeta = {}): KubeObject {
  return { apiVersion: 'v1', kind, metadata: { name: 'a', namespace: 'default', ...metadata }, ...fields };
}

/** A pod with one container, after defaulting; `spec` replaces what it names. */
export function defaultedPod(
  definition: ResourceDefinition,
  spec: JsonObject = {},
  metadata: ObjectMeta = {},
): KubeObject {
  const containers = [{ name: 'app', image: 'app:1' }];
  return created(definition, object('Pod', { spec: { containers, ...spec } }, metadata));
}

/** What the registry does to a new object before validation. */
export function created(definition: ResourceDefinition, given: KubeObject): KubeObject {
  const copy = clone(given);
  definition.strategy?.applyDefaults?.(copy);
  definition.strategy?.prepareForCreate?.(copy);
  return copy;
}

/** A deep copy with the fields at some paths replaced (`spec.containers.0.image`); undefined removes one. */
export function changed(given: KubeObject, changes: { readonly [path: string]: unknown }): KubeObject {
  const copy = clone(given);
  for (const [path, value] of Object.entries(changes)) {
    const parts = path.split('.');
    const last = parts.pop() ?? '';
    let parent: unknown = copy;
    for (const part of parts) parent = (parent as JsonObject)[part];
    if (value === undefined) delete (parent as JsonObject)[last];
    else (parent as JsonObject)[last] = value as Json;
  }
  return copy;
}

/** A copy that shares nothing. */
export function clone<T>(value: T): T {
  if (Array.isArray(value)) return value.map(clone) as T;
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, clone(item)])) as T;
}

/** The cells of `kubectl get -o wide`. */
export function cells(definition: ResourceDefinition, given: KubeObject, nowMs: number): unknown[] {
  return definition.columns.map((column) => column.cell?.(given, nowMs));
}
