import { child, entry, type FieldError, typeInvalid } from '../../api/field-error.ts';
import type { Json, JsonObject } from '../../api/meta.ts';

/** Whether a schema's keywords are of the right JSON types, so that all that follows can trust them. */

type Shape =
  | 'array'
  | 'boolean'
  | 'integer'
  | 'number'
  | 'object'
  | 'rules'
  | 'schema'
  | 'schemas'
  | 'schemaMap'
  | 'schemaOrBoolean'
  | 'schemaOrSchemas'
  | 'string'
  | 'strings';

const SHAPES: ReadonlyMap<string, Shape> = new Map<string, Shape>([
  ...shapesOf('string', '$ref', '$schema', 'description', 'format', 'id', 'pattern', 'title', 'type'),
  ...shapesOf('string', 'x-kubernetes-list-type', 'x-kubernetes-map-type'),
  ...shapesOf('number', 'maximum', 'minimum', 'multipleOf'),
  ...shapesOf('integer', 'maxItems', 'maxLength', 'maxProperties', 'minItems', 'minLength', 'minProperties'),
  ...shapesOf('boolean', 'exclusiveMaximum', 'exclusiveMinimum', 'nullable', 'uniqueItems'),
  ...shapesOf('boolean', 'x-kubernetes-embedded-resource', 'x-kubernetes-int-or-string'),
  ...shapesOf('boolean', 'x-kubernetes-preserve-unknown-fields'),
  ...shapesOf('strings', 'required', 'x-kubernetes-list-map-keys'),
  ...shapesOf('schema', 'not'),
  ...shapesOf('schemas', 'allOf', 'anyOf', 'oneOf'),
  ...shapesOf('schemaMap', 'definitions', 'patternProperties', 'properties'),
  ...shapesOf('schemaOrBoolean', 'additionalItems', 'additionalProperties'),
  ...shapesOf('schemaOrSchemas', 'items'),
  ...shapesOf('object', 'dependencies'),
  ...shapesOf('array', 'enum'),
  ...shapesOf('rules', 'x-kubernetes-validations'),
]);

const RULE_SHAPES: ReadonlyMap<string, Shape> = new Map<string, Shape>([
  ...shapesOf('string', 'fieldPath', 'message', 'messageExpression', 'reason', 'rule'),
  ...shapesOf('boolean', 'optionalOldSelf'),
]);

function shapesOf(shape: Shape, ...keywords: string[]): [string, Shape][] {
  return keywords.map((keyword) => [keyword, shape]);
}

/** The errors of one schema and all below it; unknown keywords are not looked at. */
export function shapeErrors(schema: Json, path: string): FieldError[] {
  const errors: FieldError[] = [];
  checkFields(schema, path, SHAPES, errors);
  return errors;
}

function checkFields(value: Json, path: string, shapes: ReadonlyMap<string, Shape>, errors: FieldError[]): void {
  if (!isObject(value)) {
    errors.push(wrongType(path, value, 'object'));
    return;
  }
  for (const [field, inner] of Object.entries(value)) {
    const shape = shapes.get(field);
    if (shape !== undefined && inner !== null) checkShape(inner, child(path, field), shape, errors);
  }
}

function checkShape(value: Json, path: string, shape: Shape, errors: FieldError[]): void {
  switch (shape) {
    case 'schema':
      return checkFields(value, path, SHAPES, errors);
    case 'schemaOrBoolean':
      return typeof value === 'boolean' ? undefined : checkFields(value, path, SHAPES, errors);
    case 'schemaOrSchemas':
      return Array.isArray(value) ? checkItems(value, path, SHAPES, errors) : checkFields(value, path, SHAPES, errors);
    case 'schemas':
      return checkItems(value, path, SHAPES, errors);
    case 'rules':
      return checkItems(value, path, RULE_SHAPES, errors);
    case 'schemaMap':
      if (!isObject(value)) break;
      for (const [key, inner] of Object.entries(value)) checkFields(inner, entry(path, key), SHAPES, errors);
      return;
    case 'strings':
      if (!Array.isArray(value) || value.some((item) => typeof item !== 'string')) break;
      return;
    case 'array':
      if (!Array.isArray(value)) break;
      return;
    case 'object':
      if (!isObject(value)) break;
      return;
    case 'integer':
      if (!Number.isInteger(value)) break;
      return;
    case 'boolean':
    case 'number':
    case 'string':
      if (typeof value !== shape) break;
      return;
  }
  errors.push(wrongType(path, value, shape === 'schemaMap' ? 'object' : shape === 'strings' ? 'array' : shape));
}

function checkItems(value: Json, path: string, shapes: ReadonlyMap<string, Shape>, errors: FieldError[]): void {
  if (!Array.isArray(value)) {
    errors.push(wrongType(path, value, 'array'));
    return;
  }
  for (const [index, item] of value.entries()) checkFields(item, child(path, index), shapes, errors);
}

function wrongType(path: string, value: Json, expected: string): FieldError {
  const actual = value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value;
  return typeInvalid(path, actual, `${path} in body must be of type ${expected}: "${actual}"`);
}

function isObject(value: Json): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
