import { child, entry, type FieldError, forbidden, invalid, notSupported, required } from '../../api/field-error.ts';
import type { Json } from '../../api/meta.ts';
import type { Schema } from '../../api/schema.ts';
import { isMetaField } from './resource.ts';

/** Rules for single keywords and their neighbours: which are supported, and where. */

const TYPES = ['array', 'boolean', 'integer', 'number', 'object', 'string'];
const LIST_TYPES = ['atomic', 'set', 'map'];
const MAP_TYPES = ['atomic', 'granular'];
const UNSUPPORTED = ['$ref', 'additionalItems', 'definitions', 'dependencies', 'id', 'patternProperties', '$schema'];

interface Surroundings {
  readonly isRoot: boolean;
  readonly isInsideMeta: boolean;
  /** Why defaults are refused here; undefined where they are fine. */
  readonly noDefaults: string | undefined;
}

/** Whether a schema is written in keywords that can be read at all; no further check makes sense where it is not. */
export function isReadable(schema: Schema): boolean {
  const keywords = schema as { readonly [keyword: string]: unknown };
  if (UNSUPPORTED.some((keyword) => keywords[keyword] !== undefined) || Array.isArray(schema.items)) return false;
  if (schema['x-kubernetes-preserve-unknown-fields'] === false) return false;
  const { items, not, additionalProperties, properties, allOf = [], anyOf = [], oneOf = [] } = schema;
  const below = [...Object.values(properties ?? {}), ...allOf, ...anyOf, ...oneOf];
  if (items) below.push(items);
  if (not) below.push(not);
  if (typeof additionalProperties === 'object') below.push(additionalProperties);
  return below.every(isReadable);
}

/** What is wrong with keywords anywhere in the schema. */
export function keywordErrors(schema: Schema, path: string): FieldError[] {
  const errors: FieldError[] = [];
  if (schema.nullable === true) errors.push(forbidden(child(path, 'nullable'), 'nullable cannot be true at the root'));
  check(schema, path, { isRoot: true, isInsideMeta: false, noDefaults: undefined }, errors);
  return errors;
}

function check(schema: Schema, path: string, around: Surroundings, errors: FieldError[]): void {
  checkSupported(schema, path, around, errors);
  checkLists(schema, path, errors);
  checkMaps(schema, path, errors);
  const inner: Surroundings = { ...around, isRoot: false };
  const additional = schema.additionalProperties;
  if (typeof additional === 'object') {
    const noDefaults = around.isInsideMeta
      ? 'inside additionalProperties applying to object metadata'
      : around.noDefaults;
    check(additional, child(path, 'additionalProperties'), { ...inner, noDefaults }, errors);
  }
  const isResource = around.isRoot || schema['x-kubernetes-embedded-resource'] === true;
  for (const [field, property] of Object.entries(schema.properties ?? {})) {
    const isMeta = isResource && isMetaField(field);
    const noDefaults = isMeta && around.isRoot ? `in top-level ${field}` : around.noDefaults;
    const isInsideMeta = around.isInsideMeta || isMeta;
    check(property, entry(child(path, 'properties'), field), { isRoot: false, isInsideMeta, noDefaults }, errors);
  }
  if (schema.items && !Array.isArray(schema.items)) check(schema.items, child(path, 'items'), inner, errors);
  if (schema.not) check(schema.not, child(path, 'not'), inner, errors);
  for (const junctor of ['allOf', 'anyOf', 'oneOf'] as const) {
    for (const [index, branch] of (schema[junctor] ?? []).entries()) {
      check(branch, child(child(path, junctor), index), inner, errors);
    }
  }
}

function checkSupported(schema: Schema, path: string, around: Surroundings, errors: FieldError[]): void {
  const keywords = schema as { readonly [keyword: string]: Json | undefined };
  for (const keyword of UNSUPPORTED) {
    if (keywords[keyword] !== undefined) {
      errors.push(forbidden(child(path, keyword), `${keyword} is not supported`));
    }
  }
  const type = keywords['type'];
  if (typeof type === 'string' && type !== '' && !TYPES.includes(type))
    errors.push(notSupported(child(path, 'type'), type, TYPES));
  if (type === 'null') {
    const detail = 'type cannot be set to null, use nullable as an alternative';
    errors.push(forbidden(child(path, 'type'), detail));
  }
  if (schema.default !== undefined && around.noDefaults !== undefined) {
    errors.push(forbidden(child(path, 'default'), `must not be set ${around.noDefaults}`));
  }
  if (Array.isArray(schema.items)) {
    errors.push(forbidden(child(path, 'items'), 'items must be a schema object and not an array'));
  }
  if (around.isInsideMeta && schema['x-kubernetes-embedded-resource'] === true) {
    errors.push(forbidden(child(path, 'x-kubernetes-embedded-resource'), 'must not be used inside of resource meta'));
  }
  if (schema.uniqueItems === true) {
    const detail = 'uniqueItems cannot be set to true since the runtime complexity becomes quadratic';
    errors.push(forbidden(child(path, 'uniqueItems'), detail));
  }
  if (schema['x-kubernetes-preserve-unknown-fields'] === false) {
    errors.push(invalid(child(path, 'x-kubernetes-preserve-unknown-fields'), false, 'must be true or undefined'));
  }
}

function checkMaps(schema: Schema, path: string, errors: FieldError[]): void {
  const additional = schema.additionalProperties;
  const hasProperties = Object.keys(schema.properties ?? {}).length > 0;
  if (hasProperties && additional !== undefined && additional !== true) {
    const detail = 'additionalProperties and properties are mutual exclusive';
    errors.push(forbidden(child(path, 'additionalProperties'), detail));
  }
  const mapType = schema['x-kubernetes-map-type'];
  if (mapType === undefined) return;
  requireType(schema, 'object', 'x-kubernetes-map-type', path, errors);
  if (!MAP_TYPES.includes(mapType)) {
    errors.push(notSupported(child(path, 'x-kubernetes-map-type'), mapType, MAP_TYPES));
  }
}

function requireType(schema: Schema, type: string, keyword: string, path: string, errors: FieldError[]): void {
  if (schema.type === type) return;
  const detail = `must be ${type} if ${keyword} is specified`;
  const at = child(path, 'type');
  errors.push(schema.type ? invalid(at, schema.type, detail) : required(at, detail));
}

function checkLists(schema: Schema, path: string, errors: FieldError[]): void {
  const listType = schema['x-kubernetes-list-type'];
  const keys = schema['x-kubernetes-list-map-keys'] ?? [];
  const at = child(path, 'x-kubernetes-list-type');
  if (listType !== undefined) {
    requireType(schema, 'array', 'x-kubernetes-list-type', path, errors);
    if (!LIST_TYPES.includes(listType)) errors.push(notSupported(at, listType, LIST_TYPES));
  }
  if (keys.length > 0 && listType !== 'map') {
    const detail = 'must be map if x-kubernetes-list-map-keys is non-empty';
    errors.push(listType === undefined ? required(at, detail) : invalid(at, listType, detail));
  }
  if (listType === 'map') checkListMap(schema, keys, path, errors);
  if (listType === 'set' && schema.type === 'array') checkSet(schema, path, errors);
  if ((listType === 'map' || listType === 'set') && schema.items?.nullable === true) {
    const detail = `cannot be nullable when x-kubernetes-list-type is ${listType}`;
    errors.push(forbidden(child(child(path, 'items'), 'nullable'), detail));
  }
}

function checkSet(schema: Schema, path: string, errors: FieldError[]): void {
  const items = schema.items;
  const at = child(path, 'items');
  const detail = 'must be atomic as item of a list with x-kubernetes-list-type=set';
  if (items?.type === 'array') {
    const inner = items['x-kubernetes-list-type'];
    if (inner !== undefined && inner !== 'atomic')
      errors.push(invalid(child(at, 'x-kubernetes-list-type'), inner, detail));
  } else if (items?.type === 'object' && items['x-kubernetes-map-type'] !== 'atomic') {
    errors.push(invalid(child(at, 'x-kubernetes-map-type'), items['x-kubernetes-map-type'], detail));
  }
}

function checkListMap(schema: Schema, keys: readonly string[], path: string, errors: FieldError[]): void {
  const keysPath = child(path, 'x-kubernetes-list-map-keys');
  const itemsPath = child(path, 'items');
  if (keys.length === 0) errors.push(required(keysPath, 'must not be empty if x-kubernetes-list-type is map'));
  const items = schema.items;
  if (items === undefined) {
    errors.push(required(itemsPath, 'must have a schema if x-kubernetes-list-type is map'));
    return;
  }
  if (items.type !== 'object') {
    const detail = "must be object if parent array's x-kubernetes-list-type is map";
    errors.push(invalid(child(itemsPath, 'type'), items.type ?? '', detail));
    return;
  }
  if (new Set(keys).size < keys.length) errors.push(invalid(keysPath, keys, 'must not contain duplicate entries'));
  for (const key of new Set(keys)) checkListMapKey(items, key, keys, path, errors);
}

function checkListMapKey(
  items: Schema,
  key: string,
  keys: readonly string[],
  path: string,
  errors: FieldError[],
): void {
  const property = items.properties && Object.hasOwn(items.properties, key) ? items.properties[key] : undefined;
  const at = entry(child(child(path, 'items'), 'properties'), key);
  if (property === undefined) {
    const keysPath = child(path, 'x-kubernetes-list-map-keys');
    errors.push(invalid(keysPath, keys, 'entries must all be names of item properties'));
    return;
  }
  if (property.type === 'array' || property.type === 'object') {
    const detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
    errors.push(invalid(child(at, 'type'), property.type, detail));
  }
  if (!(items.required ?? []).includes(key) && property.default === undefined) {
    const detail =
      'this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property';
    errors.push(required(child(at, 'default'), detail));
  }
  if (property.nullable === true) {
    const detail = 'this property is in x-kubernetes-list-map-keys, so it cannot be nullable';
    errors.push(forbidden(child(at, 'nullable'), detail));
  }
}
