import { child, entry, type FieldError, forbidden, invalid, required } from '../../api/field-error.ts';
import type { Schema } from '../../api/schema.ts';
import { deepEqual } from '../equal.ts';
import { compilePattern } from './pattern.ts';

/**
 * What makes a schema structural: its skeleton (types, properties, items) says all about the shape of objects, and
 * the junctors (allOf, anyOf, oneOf, not) only restrict values of fields that the skeleton knows.
 */

type Level = 'root' | 'item' | 'field';

const EMPTY_TYPE: Readonly<Record<Level, string>> = {
  root: 'must not be empty at the root',
  item: 'must not be empty for specified array items',
  field: 'must not be empty for specified object fields',
};

const INT_OR_STRING: readonly Schema[] = [{ type: 'integer' }, { type: 'string' }];

/** Violations of structure anywhere in the schema. */
export function invariantErrors(schema: Schema, path: string): FieldError[] {
  const errors: FieldError[] = [];
  checkSkeleton(schema, 'root', path, errors);
  checkComplete(schema, schema, path, path, errors);
  return errors;
}

function checkSkeleton(schema: Schema, level: Level, path: string, errors: FieldError[]): void {
  if (schema.type === 'array' && schema.items === undefined) {
    errors.push(required(child(path, 'items'), 'must be specified'));
  }
  if (schema.items) checkSkeleton(schema.items, 'item', child(path, 'items'), errors);
  for (const [field, property] of Object.entries(schema.properties ?? {})) {
    checkSkeleton(property, 'field', entry(child(path, 'properties'), field), errors);
  }
  const additional = schema.additionalProperties;
  if (additional !== undefined && level === 'root') {
    errors.push(forbidden(child(path, 'additionalProperties'), 'must not be used at the root'));
  }
  if (typeof additional === 'object') {
    checkSkeleton(additional, 'field', child(path, 'additionalProperties'), errors);
  }
  checkExtensions(schema, path, errors);
  const isUnion = deepEqual(schema.anyOf, INT_OR_STRING);
  const isUnionInside = deepEqual(schema.allOf?.[0]?.anyOf, INT_OR_STRING);
  checkValues(schema, isUnion, isUnionInside, path, errors);
  checkType(schema, level, path, errors);
  checkMeta(schema, level, path, errors);
}

function checkExtensions(schema: Schema, path: string, errors: FieldError[]): void {
  if (schema['x-kubernetes-int-or-string'] !== true) return;
  for (const extension of ['x-kubernetes-preserve-unknown-fields', 'x-kubernetes-embedded-resource'] as const) {
    if (schema[extension] !== true) continue;
    errors.push(invalid(child(path, extension), true, 'must be false if x-kubernetes-int-or-string is true'));
  }
}

function checkType(schema: Schema, level: Level, path: string, errors: FieldError[]): void {
  const at = child(path, 'type');
  const isEmbedded = schema['x-kubernetes-embedded-resource'] === true;
  const mayBeUntyped =
    schema['x-kubernetes-int-or-string'] === true || schema['x-kubernetes-preserve-unknown-fields'] === true;
  if (isEmbedded && schema.type !== 'object') {
    const detail = 'must be object if x-kubernetes-embedded-resource is true';
    errors.push(schema.type ? invalid(at, schema.type, detail) : required(at, detail));
  } else if (!schema.type && !mayBeUntyped) {
    errors.push(required(at, EMPTY_TYPE[level]));
  }
  if (isEmbedded && schema.additionalProperties !== undefined) {
    const detail = 'must not be used if x-kubernetes-embedded-resource is set';
    errors.push(forbidden(child(path, 'additionalProperties'), detail));
  }
  if (level === 'root' && schema.type && schema.type !== 'object') {
    errors.push(invalid(at, schema.type, 'must be object at the root'));
  }
  const isOpen = schema['x-kubernetes-preserve-unknown-fields'] === true;
  if (isEmbedded && !isOpen && Object.keys(schema.properties ?? {}).length === 0) {
    const detail =
      'must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields';
    errors.push(required(child(path, 'properties'), detail));
  }
}

function checkMeta(schema: Schema, level: Level, path: string, errors: FieldError[]): void {
  const isResource = level === 'root' || schema['x-kubernetes-embedded-resource'] === true;
  if (!isResource) return;
  const properties = schema.properties ?? {};
  for (const [field, type] of [
    ['kind', 'string'],
    ['apiVersion', 'string'],
    ['metadata', 'object'],
  ] as const) {
    const property = properties[field];
    if (!property || property.type === type) continue;
    errors.push(
      invalid(child(entry(child(path, 'properties'), field), 'type'), property.type ?? '', `must be ${type}`),
    );
  }
  const metadata = properties['metadata'];
  if (level !== 'root' || !metadata || restrictsOnlyNames(metadata)) return;
  const detail = 'must not specify anything other than name and generateName, but metadata is implicitly specified';
  errors.push(forbidden(entry(child(path, 'properties'), 'metadata'), detail));
}

function restrictsOnlyNames(metadata: Schema): boolean {
  const { type: _type, default: _default, properties = {}, ...rest } = metadata;
  const isBare = !Object.values(rest).some(isPresent);
  return isBare && Object.keys(properties).every((field) => field === 'name' || field === 'generateName');
}

/** The junctors of a node: `isUnion` excuses the types that int-or-string is traditionally spelled with. */
function checkValues(
  schema: Schema,
  isUnion: boolean,
  isUnionInside: boolean,
  path: string,
  errors: FieldError[],
): void {
  if (!isUnion) {
    for (const [index, branch] of (schema.anyOf ?? []).entries()) {
      checkBranch(branch, false, child(child(path, 'anyOf'), index), errors);
    }
  }
  for (const [index, branch] of (schema.allOf ?? []).entries()) {
    checkBranch(branch, isUnionInside && index === 0, child(child(path, 'allOf'), index), errors);
  }
  for (const [index, branch] of (schema.oneOf ?? []).entries()) {
    checkBranch(branch, false, child(child(path, 'oneOf'), index), errors);
  }
  if (schema.not) checkBranch(schema.not, false, child(path, 'not'), errors);
  if (schema.pattern) checkPattern(schema.pattern, child(path, 'pattern'), errors);
}

function checkPattern(pattern: string, path: string, errors: FieldError[]): void {
  try {
    compilePattern(pattern);
  } catch (error) {
    const reason = (error as Error).message;
    errors.push(invalid(path, pattern, `must be a valid regular expression, but isn't: ${reason}`));
  }
}

const FORBIDDEN_IN_BRANCHES: readonly (readonly [keyof Schema, string])[] = [
  ['type', 'must be empty to be structural'],
  ['additionalProperties', 'must be undefined to be structural'],
  ['default', 'must be undefined to be structural'],
  ['title', 'must be empty to be structural'],
  ['description', 'must be empty to be structural'],
  ['nullable', 'must be false to be structural'],
  ['x-kubernetes-preserve-unknown-fields', 'must be false to be structural'],
  ['x-kubernetes-embedded-resource', 'must be false to be structural'],
  ['x-kubernetes-int-or-string', 'must be false to be structural'],
  ['x-kubernetes-list-map-keys', 'must be empty to be structural'],
  ['x-kubernetes-list-type', 'must be undefined to be structural'],
  ['x-kubernetes-map-type', 'must be undefined to be structural'],
  ['x-kubernetes-validations', 'must be empty to be structural'],
];

function checkBranch(branch: Schema, isUnion: boolean, path: string, errors: FieldError[]): void {
  checkValues(branch, isUnion, false, path, errors);
  if (branch.items) checkBranch(branch.items, false, child(path, 'items'), errors);
  for (const [field, property] of Object.entries(branch.properties ?? {})) {
    checkBranch(property, false, entry(child(path, 'properties'), field), errors);
  }
  for (const [keyword, detail] of FORBIDDEN_IN_BRANCHES) {
    const value = branch[keyword];
    const isSet = keyword === 'default' ? value !== undefined : isPresent(value);
    if (isSet) errors.push(forbidden(child(path, keyword), detail));
  }
  if (branch.properties && Object.hasOwn(branch.properties, 'metadata')) {
    const at = entry(child(path, 'properties'), 'metadata');
    errors.push(forbidden(at, 'must not be specified in a nested context'));
  }
}

function isPresent(value: unknown): boolean {
  return value !== undefined && value !== false && value !== '' && !(Array.isArray(value) && value.length === 0);
}

/** Every field that a junctor speaks of must be part of the skeleton. */
function checkComplete(
  values: Schema,
  skeleton: Schema | undefined,
  skeletonPath: string,
  valuesPath: string,
  errors: FieldError[],
): void {
  const branches: [Schema, string][] = [];
  if (values.not) branches.push([values.not, child(valuesPath, 'not')]);
  for (const junctor of ['allOf', 'anyOf', 'oneOf'] as const) {
    for (const [index, branch] of (values[junctor] ?? []).entries()) {
      branches.push([branch, child(child(valuesPath, junctor), index)]);
    }
  }
  for (const [branch, path] of branches) checkBranchComplete(branch, skeleton, skeletonPath, path, errors);
}

function checkBranchComplete(
  branch: Schema,
  skeleton: Schema | undefined,
  skeletonPath: string,
  path: string,
  errors: FieldError[],
): void {
  if (skeleton === undefined) {
    errors.push(required(skeletonPath, `because it is defined in ${path}`));
    return;
  }
  checkComplete(branch, skeleton, skeletonPath, path, errors);
  if (branch.items) {
    checkBranchComplete(branch.items, skeleton.items, child(skeletonPath, 'items'), child(path, 'items'), errors);
  }
  for (const [field, property] of Object.entries(branch.properties ?? {})) {
    const at = entry(child(skeletonPath, 'properties'), field);
    const known = skeleton.properties && Object.hasOwn(skeleton.properties, field);
    const below = known ? skeleton.properties?.[field] : undefined;
    checkBranchComplete(property, below, at, entry(child(path, 'properties'), field), errors);
  }
}
