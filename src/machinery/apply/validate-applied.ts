/**
 * What an applied configuration must be for its fields to have owners: of the schema's types, without undeclared
 * fields, and with list items that can be told apart. The sentences are those that kubectl users know.
 */

import type { Json, JsonObject } from '../../api/meta.ts';
import type { Schema } from '../../api/schema.ts';
import { type PathElement, showElement } from './path-element.ts';
import { type MaybeSchema, elementOf, isDeclared, schemaOfField, shapeOf } from './typed.ts';

/** Where a walk is, and what it has found so far. One for all of an object: nothing is made for a value that is as it should be. */
interface Walk {
  /** The way from the root, in steps as they are shown. */
  readonly steps: string[];
  readonly errors: string[];
}

/** As much as anyone reads, of sentences and of values: an object may be wrong in all of its parts. */
const ERRORS_MAX = 100;
const SHOWN_LENGTH_MAX = 1024;

/** What is wrong with the object, as `.path: sentence`; the first hundred. */
export function validateApplied(object: JsonObject, schema: Schema): string[] {
  const walk: Walk = { steps: [], errors: [] };
  validateValue(object, schema, false, walk);
  return walk.errors;
}

function complain({ steps, errors }: Walk, sentence: string): void {
  errors.push(`${steps.join('')}: ${sentence}`);
}

/** Unknown fields may be kept: a schema that keeps them keeps them all the way down. */
function validateValue(value: Json, schema: MaybeSchema, isOpenAbove: boolean, walk: Walk): void {
  if (schema === undefined || value === null || walk.errors.length >= ERRORS_MAX) return;
  const keepsUnknown = isOpenAbove || schema['x-kubernetes-preserve-unknown-fields'] === true;
  const expected = schema.type ?? (schema['x-kubernetes-int-or-string'] === true ? 'scalar' : typeOf(value));
  if (expected === 'object') {
    if (typeOf(value) === 'object') validateMap(value as JsonObject, schema, keepsUnknown, walk);
    else complain(walk, `expected map, got &{${showPlainly(value)}}`);
    return;
  }
  if (expected === 'array') {
    if (Array.isArray(value)) validateList(value, schema, keepsUnknown, walk);
    else complain(walk, `expected list, got &{${showPlainly(value)}}`);
    return;
  }
  const sentence = validateScalar(value, expected, schema.format);
  if (sentence !== undefined) complain(walk, sentence);
}

function validateMap(object: JsonObject, schema: Schema, keepsUnknown: boolean, walk: Walk): void {
  const isOpen = keepsUnknown || allowsOthers(schema);
  for (const key of Object.keys(object)) {
    const value = object[key];
    if (value === undefined) continue;
    walk.steps.push(`.${key}`);
    const isKnown = isOpen || isDeclared(schema, key);
    if (isKnown) validateValue(value, schemaOfField(schema, key), keepsUnknown, walk);
    else complain(walk, 'field not declared in schema');
    walk.steps.pop();
    if (!isKnown) return;
  }
}

function allowsOthers(schema: Schema): boolean {
  if (schema.additionalProperties !== undefined) return schema.additionalProperties !== false;
  // Not their number: some have hundreds.
  for (const _ in schema.properties) return false;
  return true;
}

function validateList(list: readonly Json[], schema: Schema, keepsUnknown: boolean, walk: Walk): void {
  const isGranular = shapeOf(list, schema) === 'list';
  const seen = new Set<PathElement>();
  for (const [index, item] of list.entries()) {
    let step = `[${index}]`;
    if (isGranular) {
      const element = item === null ? undefined : elementOf(item, schema);
      if (element === undefined) return complain(walk, `element ${index}: ${whyUnidentified(item, schema)}`);
      step = showElement(element);
      if (seen.has(element)) complain(walk, `duplicate entries for key ${step}`);
      seen.add(element);
    }
    if (walk.errors.length >= ERRORS_MAX) return;
    walk.steps.push(step);
    validateValue(item, schema.items, keepsUnknown, walk);
    walk.steps.pop();
  }
}

function whyUnidentified(item: Json, schema: Schema): string {
  const isKeyed = schema['x-kubernetes-list-type'] === 'map';
  if (item === null) {
    return isKeyed
      ? 'associative list with keys may not have a null element'
      : "associative list without keys has an element that's an explicit null";
  }
  if (typeOf(item) !== 'object') return 'associative list with keys may not have non-map elements';
  const keys = (schema['x-kubernetes-list-map-keys'] ?? []).map((key) => JSON.stringify(key)).join(' ');
  return `associative list with keys has an element that omits all key fields [${keys}] (and doesn't have default values for any key fields)`;
}

function validateScalar(value: Json, expected: string, format: string | undefined): string | undefined {
  const actual = typeOf(value);
  if (expected === 'integer' || expected === 'number') {
    return actual === 'number' ? undefined : `expected numeric (int or float), got ${GO_TYPES[actual]}`;
  }
  if (expected === 'boolean')
    return actual === 'boolean' ? undefined : `expected boolean, got &{${showPlainly(value)}}`;
  if (expected === 'string' && (format === undefined || format === 'byte')) {
    return actual === 'string' ? undefined : `expected string, got &value.valueUnstructured{Value:${show(value)}}`;
  }
  return actual === 'object' || actual === 'array' ? `expected any scalar, got &{${showPlainly(value)}}` : undefined;
}

type JsonType = 'object' | 'array' | 'string' | 'number' | 'boolean';

const GO_TYPES: Readonly<Record<JsonType, string>> = {
  object: 'map[string]interface {}',
  array: '[]interface {}',
  string: 'string',
  number: 'float64',
  boolean: 'bool',
};

/** The type of a value that is not null. */
function typeOf(value: Json): JsonType {
  return Array.isArray(value) ? 'array' : (typeof value as JsonType);
}

function showPlainly(value: Json): string {
  return typeof value === 'string' ? value.slice(0, SHOWN_LENGTH_MAX) : show(value);
}

function show(value: Json): string {
  return JSON.stringify(value).slice(0, SHOWN_LENGTH_MAX);
}
