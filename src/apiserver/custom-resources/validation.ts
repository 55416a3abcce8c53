import { errorMessage } from '../../api/error-message.ts';
import {
  child,
  duplicate,
  entry,
  type FieldError,
  forbidden,
  invalid,
  notSupported,
  required,
  tooMany,
} from '../../api/field-error.ts';
import type { Json, KubeObject } from '../../api/meta.ts';
import { byteLength, dns1035LabelErrors, dnsSubdomainErrors } from '../../api/names.ts';
import type { Schema } from '../../api/schema.ts';
import { deepEqual } from '../../machinery/equal.ts';
import { compileJsonPath } from '../../machinery/json-path.ts';
import { structuralErrors } from '../../machinery/schema/structural.ts';
import {
  conditionOf,
  type CustomResourceColumn,
  type CustomResourceDefinition,
  type CustomResourceNames,
  type CustomResourceScale,
  type CustomResourceVersion,
} from './wire.ts';

/** What makes a CustomResourceDefinition unacceptable, beyond the types of its fields. */

const COLUMN_TYPES = ['boolean', 'date', 'integer', 'number', 'string'];
const COLUMN_FORMATS = ['byte', 'date', 'date-time', 'double', 'float', 'int32', 'int64', 'password'];
/** Each selectable field is looked at for every event of every watch that selects by it. */
const SELECTABLE_FIELDS_MAX = 8;
/** Warnings travel in a header. */
const DEPRECATION_WARNING_BYTES_MAX = 256;
const APPROVAL = 'api-approved.kubernetes.io';

/** Those that need no second look. */
type KnownSchemas = ReadonlySet<Schema | undefined>;

/** Everything wrong with a CRD. Schemas that it shares with `old` have been looked at when they were new, and are large. */
export function crdErrors(crd: KubeObject, old?: KubeObject): FieldError[] {
  const versions = (old as CustomResourceDefinition | undefined)?.spec?.versions ?? [];
  const errors = specErrors(crd as CustomResourceDefinition, new Set(versions.map(schemaOf)));
  // What it is made of does not change.
  return old ? errors : [...nameErrors(crd as CustomResourceDefinition), ...errors];
}

function schemaOf({ schema }: CustomResourceVersion): Schema | undefined {
  return schema?.openAPIV3Schema;
}

/** What may not change, and versions that objects may still be stored in. */
export function crdUpdateErrors(crd: KubeObject, old: KubeObject): FieldError[] {
  const before = (old as CustomResourceDefinition).spec ?? {};
  const after = (crd as CustomResourceDefinition).spec ?? {};
  const errors: FieldError[] = [];
  const fixed = (field: string, value: unknown, oldValue: unknown): void => {
    if (value !== oldValue) errors.push(invalid(field, value, 'field is immutable'));
  };
  // Until it is established nothing can be stored, so the kind and the scope are still open.
  if (conditionOf(old as CustomResourceDefinition, 'Established')?.status === 'True') {
    fixed('spec.scope', after.scope, before.scope);
    fixed('spec.names.kind', after.names?.kind, before.names?.kind);
  }
  fixed('spec.group', after.group, before.group);
  fixed('spec.names.plural', after.names?.plural, before.names?.plural);
  const names = new Set((after.versions ?? []).map((version) => version.name));
  const stored = (old as CustomResourceDefinition).status?.storedVersions ?? [];
  for (const [index, version] of stored.entries()) {
    if (names.has(version)) continue;
    const detail = `missing from spec.versions; ${version} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in ${version} and removes ${version} from status.storedVersions`;
    errors.push(invalid(child('status.storedVersions', index), version, detail));
  }
  return errors;
}

function nameErrors({ metadata, spec }: CustomResourceDefinition): FieldError[] {
  const { group = '', names = {} } = spec ?? {};
  if (metadata.name === `${names.plural ?? ''}.${group}`) return [];
  return [invalid('metadata.name', metadata.name, 'must be spec.names.plural+"."+spec.group')];
}

function specErrors(crd: CustomResourceDefinition, known: KnownSchemas): FieldError[] {
  const { group = '', names = {}, scope, versions = [], conversion, preserveUnknownFields } = crd.spec ?? {};
  const errors = [...groupErrors(group), ...approvalErrors(crd, group)];
  if (!scope) errors.push(required('spec.scope'));
  else if (scope !== 'Cluster' && scope !== 'Namespaced') {
    errors.push(notSupported('spec.scope', scope, ['Cluster', 'Namespaced']));
  }
  errors.push(...versionsErrors(versions, known), ...namesErrors(names));
  if (preserveUnknownFields === true) {
    const detail =
      'cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead';
    errors.push(invalid('spec.preserveUnknownFields', true, detail));
  }
  return [...errors, ...conversionErrors(conversion)];
}

function groupErrors(group: string): FieldError[] {
  if (group === '') return [required('spec.group')];
  const wrong = dnsSubdomainErrors(group);
  if (wrong.length > 0) return [invalid('spec.group', group, wrong.join(','))];
  return group.includes('.') ? [] : [invalid('spec.group', group, 'should be a domain with at least one dot')];
}

/** Groups of the Kubernetes community are not everybody's to extend. */
function approvalErrors(crd: CustomResourceDefinition, group: string): FieldError[] {
  const isProtected = ['k8s.io', 'kubernetes.io'].some((domain) => group === domain || group.endsWith(`.${domain}`));
  if (!isProtected) return [];
  const field = entry('metadata.annotations', APPROVAL);
  const annotations = crd.metadata.annotations ?? {};
  const approval = Object.hasOwn(annotations, APPROVAL) ? annotations[APPROVAL] : undefined;
  if (!approval) {
    const detail =
      'protected groups must have approval annotation "api-approved.kubernetes.io", see https://github.com/kubernetes/enhancements/pull/1111';
    return [required(field, detail)];
  }
  if (approval.startsWith('unapproved') || /^https?:\/\/[^/]+/.test(approval)) return [];
  const detail =
    'protected groups must have approval annotation "api-approved.kubernetes.io" with either a URL or a reason starting with "unapproved", see https://github.com/kubernetes/enhancements/pull/1111';
  return [invalid(field, approval, detail)];
}

function conversionErrors(conversion: { strategy?: string; webhook?: object } | undefined): FieldError[] {
  if (!conversion) return [];
  if (!conversion.strategy) return [required('spec.conversion.strategy')];
  if (conversion.strategy === 'Webhook') {
    const detail =
      'conversion webhooks are not supported by this server; versions that differ only in their schema can use strategy None';
    return [forbidden('spec.conversion.strategy', detail)];
  }
  if (conversion.strategy !== 'None') {
    return [notSupported('spec.conversion.strategy', conversion.strategy, ['None', 'Webhook'])];
  }
  if (!conversion.webhook) return [];
  return [forbidden('spec.conversion.webhook', 'should not be set when strategy is not set to Webhook')];
}

function namesErrors(names: CustomResourceNames): FieldError[] {
  const errors: FieldError[] = [];
  const path = 'spec.names';
  const label = (field: string, value: string | undefined): void => {
    if (!value) return void errors.push(required(field));
    const wrong = dns1035LabelErrors(value);
    if (wrong.length > 0) errors.push(invalid(field, value, wrong.join(',')));
  };
  const kind = (field: string, value: string | undefined): void => {
    if (!value) return void errors.push(required(field));
    const wrong = dns1035LabelErrors(value.toLowerCase());
    const detail = `may have mixed case, but should otherwise match: ${wrong.join(',')}`;
    if (wrong.length > 0) errors.push(invalid(field, value, detail));
  };
  label(`${path}.plural`, names.plural);
  // Absent ones are derived from the kind.
  if (names.singular !== undefined && names.singular !== '') label(`${path}.singular`, names.singular);
  kind(`${path}.kind`, names.kind);
  if (names.listKind) kind(`${path}.listKind`, names.listKind);
  for (const [index, name] of (names.shortNames ?? []).entries()) label(child(`${path}.shortNames`, index), name);
  if (names.kind && names.kind === names.listKind) {
    errors.push(invalid(`${path}.listKind`, names.listKind, 'kind and listKind may not be the same'));
  }
  for (const [index, name] of (names.categories ?? []).entries()) label(child(`${path}.categories`, index), name);
  return errors;
}

function versionsErrors(versions: readonly CustomResourceVersion[], known: KnownSchemas): FieldError[] {
  const path = 'spec.versions';
  const names = versions.map((version) => version.name);
  const shared = sharedPaths(versions);
  const errors = versions.flatMap((version, index) => {
    const isKnown = known.has(schemaOf(version));
    return versionErrors(version, child(path, index), shared, { isFirst: index === 0, isKnown });
  });
  if (new Set(names).size < names.length) errors.push(invalid(path, names, 'must contain unique version names'));
  if (versions.filter((version) => version.storage).length !== 1) {
    errors.push(invalid(path, names, 'must have exactly one version marked as storage version'));
  }
  if (!versions.some((version) => version.served)) {
    errors.push(invalid(path, names, 'must have at least one version marked as served'));
  }
  return errors;
}

/** What versions may say each on their own, and where Kubernetes speaks of it when they all say the same. */
const SHARED = {
  schema: 'spec.validation',
  subresources: 'spec.subresources',
  additionalPrinterColumns: 'spec.additionalPrinterColumns',
  selectableFields: 'spec.selectableFields',
} as const;

type SharedPaths = Partial<Record<keyof typeof SHARED, string>>;

function sharedPaths(versions: readonly CustomResourceVersion[]): SharedPaths {
  const shared: SharedPaths = {};
  for (const field of Object.keys(SHARED) as (keyof typeof SHARED)[]) {
    const isShared = versions.every((version) => deepEqual(version[field], versions[0]?.[field]));
    if (isShared) shared[field] = SHARED[field];
  }
  return shared;
}

function versionErrors(
  version: CustomResourceVersion,
  path: string,
  shared: SharedPaths,
  { isFirst, isKnown }: { readonly isFirst: boolean; readonly isKnown: boolean },
): FieldError[] {
  const errors: FieldError[] = [];
  const wrong = dns1035LabelErrors(version.name ?? '');
  if (wrong.length > 0) errors.push(invalid(`${path}.name`, version.name, wrong.join(',')));
  errors.push(...deprecationErrors(version, path));
  const schema = schemaOf(version);
  if (!schema) errors.push(required(`${path}.schema.openAPIV3Schema`));
  /** What all versions share is looked at once. */
  const within = (field: keyof SharedPaths, check: (at: string) => FieldError[]): void => {
    if (isFirst || shared[field] === undefined) errors.push(...check(shared[field] ?? `${path}.${field}`));
  };
  if (schema && !isKnown) within('schema', (at) => structuralErrors(schema as Json, `${at}.openAPIV3Schema`));
  within('subresources', (at) => scaleErrors(version.subresources?.scale, `${at}.scale`));
  within('additionalPrinterColumns', (at) =>
    (version.additionalPrinterColumns ?? []).flatMap((column, index) => columnErrors(column, child(at, index))),
  );
  within('selectableFields', (at) => selectableFieldErrors(version, schema, at));
  return errors;
}

function deprecationErrors(version: CustomResourceVersion, path: string): FieldError[] {
  const warning = version.deprecationWarning;
  if (warning === undefined) return [];
  const field = `${path}.deprecationWarning`;
  const wrong = (detail: string): FieldError => invalid(field, warning, detail);
  const errors: FieldError[] = [];
  if (!version.deprecated) errors.push(wrong('can only be set for deprecated versions'));
  if (warning === '') errors.push(wrong('must not be an empty string'));
  if (byteLength(warning) > DEPRECATION_WARNING_BYTES_MAX) errors.push(wrong('must be <= 256 characters long'));
  const control = warning.search(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
  if (control >= 0) {
    errors.push(
      wrong(`must only contain printable UTF-8 characters; non-printable character found at index ${control}`),
    );
  }
  return errors;
}

function scaleErrors(scale: CustomResourceScale | undefined, path: string): FieldError[] {
  if (!scale) return [];
  const under = (field: keyof CustomResourceScale, parents: readonly string[]): FieldError[] => {
    const value = scale[field] ?? '';
    const wrong = pathErrors(value, `${path}.${field}`);
    if (wrong.length > 0 || parents.some((parent) => value.startsWith(`.${parent}.`))) return wrong;
    const where =
      parents.length === 1 ? `.${parents[0]}` : `either ${parents.map((parent) => `.${parent}`).join(' or ')}`;
    return [invalid(`${path}.${field}`, value, `should be a json path under ${where}`)];
  };
  return [
    ...under('specReplicasPath', ['spec']),
    ...under('statusReplicasPath', ['status']),
    ...(scale.labelSelectorPath ? under('labelSelectorPath', ['spec', 'status']) : []),
  ];
}

function columnErrors(column: CustomResourceColumn, path: string): FieldError[] {
  const errors: FieldError[] = [];
  if (!column.name) errors.push(required(`${path}.name`));
  const types = `must be one of ${COLUMN_TYPES.join(',')}`;
  if (!column.type) errors.push(required(`${path}.type`, types));
  else if (!COLUMN_TYPES.includes(column.type)) errors.push(invalid(`${path}.type`, column.type, types));
  if (column.format && !COLUMN_FORMATS.includes(column.format)) {
    errors.push(invalid(`${path}.format`, column.format, `must be one of ${COLUMN_FORMATS.join(',')}`));
  }
  return [...errors, ...pathErrors(column.jsonPath ?? '', `${path}.jsonPath`)];
}

/** A path that can be compiled and starts at the object. */
function pathErrors(path: string, field: string): FieldError[] {
  if (path === '') return [required(field)];
  if (!path.startsWith('.')) return [invalid(field, path, 'must be a simple json path starting with .')];
  try {
    compileJsonPath(path);
    return [];
  } catch (error) {
    return [invalid(field, path, `is an invalid path: ${errorMessage(error)}`)];
  }
}

function selectableFieldErrors(version: CustomResourceVersion, schema: Schema | undefined, path: string): FieldError[] {
  const fields = version.selectableFields ?? [];
  const errors: FieldError[] = [];
  const seen = new Set<string>();
  for (const [index, { jsonPath = '' }] of fields.entries()) {
    const field = `${child(path, index)}.jsonPath`;
    if (jsonPath === '') errors.push(required(field));
    else if (seen.has(jsonPath)) errors.push(duplicate(field, jsonPath));
    else errors.push(...selectableErrors(jsonPath, schema, field));
    seen.add(jsonPath);
  }
  if (seen.size > SELECTABLE_FIELDS_MAX) errors.push(tooMany(path, seen.size, SELECTABLE_FIELDS_MAX));
  return errors;
}

function selectableErrors(jsonPath: string, schema: Schema | undefined, field: string): FieldError[] {
  const [root, ...segments] = jsonPath.split('.');
  if (root !== '' || segments.some((segment) => !/^[A-Za-z_][-A-Za-z0-9_]*$/.test(segment))) {
    return [invalid(field, jsonPath, 'is an invalid path: only fields joined by dots are allowed')];
  }
  if (segments[0] === 'metadata') return [invalid(field, jsonPath, 'must not point to fields in metadata')];
  let at: Schema | undefined = schema;
  for (const segment of segments) {
    const properties: { readonly [name: string]: Schema } = at?.properties ?? {};
    at = Object.hasOwn(properties, segment) ? properties[segment] : undefined;
    if (!at) return [invalid(field, jsonPath, `is an invalid path: does not refer to a valid field (at ${segment})`)];
  }
  if (at?.type === 'string' || at?.type === 'boolean' || at?.type === 'integer') return [];
  const detail =
    'must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.';
  return [invalid(field, jsonPath, detail)];
}
