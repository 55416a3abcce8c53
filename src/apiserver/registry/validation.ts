import type { FieldError } from '../../api/field-error.ts';
import type { KubeObject } from '../../api/meta.ts';
import { dnsLabelErrors, dnsSubdomainErrors, pathSegmentErrors } from '../../api/names.ts';
import type { ResourceDefinition } from '../../api/resource.ts';
import { invalidObject } from '../../api/status.ts';
import { validateObjectMeta, validateObjectMetaUpdate } from '../../api/validate-meta.ts';
import { compileSchema } from '../../machinery/schema/compile.ts';
import { ERRORS_MAX, unique } from '../../machinery/schema/validation-context.ts';
import type { Target } from './contract.ts';

/** What is wrong with an object that is about to be stored: its metadata, its schema's word, its kind's own rules. */

const NAME_ERRORS = {
  'dns-subdomain': dnsSubdomainErrors,
  'dns-label': dnsLabelErrors,
  'path-segment': pathSegmentErrors,
} as const;

/** Everything wrong with a new object. */
export function creationErrors(definition: ResourceDefinition, object: KubeObject): FieldError[] {
  return objectErrors(definition, object, undefined);
}

/** Everything wrong with an object and with changing `current` into it, through the target's subresource if it has one. */
export function updateErrors({ definition, subresource }: Target, updated: KubeObject, current: KubeObject) {
  const errors = objectErrors(definition, updated, current);
  return [
    ...validateObjectMetaUpdate(updated.metadata, current.metadata),
    ...(definition.custom && subresource === 'status' ? errors.map(withinStatus) : errors),
    ...transitionErrors(definition, updated, current, subresource),
  ];
}

/** Throws 422 with the first of what `find` finds. */
export function refuseInvalid(
  { group, kind }: ResourceDefinition,
  object: KubeObject,
  find: () => readonly FieldError[],
): void {
  const errors = findErrors(find);
  if (errors.length === 0) return;
  throw invalidObject(group, kind, object.metadata.name ?? '', unique(errors).slice(0, ERRORS_MAX));
}

function objectErrors(definition: ResourceDefinition, object: KubeObject, old: KubeObject | undefined): FieldError[] {
  const nameErrors = NAME_ERRORS[definition.nameRule ?? 'dns-subdomain'];
  return [
    ...validateObjectMeta(object.metadata, definition.namespaced, nameErrors),
    ...compileSchema(definition.schema, { builtin: !definition.custom }).validate(object as never, old as never),
    ...(definition.strategy?.validate?.(object, old) ?? []),
  ];
}

function transitionErrors(
  { strategy }: ResourceDefinition,
  updated: KubeObject,
  current: KubeObject,
  subresource: string | undefined,
): readonly FieldError[] {
  if (subresource === undefined) return strategy?.validateUpdate?.(updated, current) ?? [];
  if (subresource === 'status') return strategy?.validateStatusUpdate?.(updated, current) ?? [];
  return strategy?.validateSubresourceUpdate?.(subresource, updated, current) ?? [];
}

/** A status of a custom resource is validated by itself: its fields are named from there. */
function withinStatus(error: FieldError): FieldError {
  return { ...error, message: error.message.replace(': status.', ': ') };
}

/** What validation finds; where that is more than a call can carry as its arguments, then just that. */
function findErrors(find: () => readonly FieldError[]): readonly FieldError[] {
  try {
    return find();
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return [
      { type: 'FieldValueInvalid', field: '', message: 'Invalid value: it is wrong in too many places to name them' },
    ];
  }
}
