import { bool, double, int64, list, listMap, map, message, type Schema, str } from '../../schema.ts';

/**
 * The schemas that a CustomResourceDefinition carries, themselves described by a schema: it tells typos in definitions
 * from keywords, and documents them. It contains itself, through `properties` and others.
 */

const APIEXTENSIONS = 'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1';

/** Filled below, with fields that refer to it. */
const properties: Record<string, Schema> = {};

/** A JSON schema, as far as Kubernetes takes it. */
export const jsonSchemaProps: Schema = {
  name: `${APIEXTENSIONS}.JSONSchemaProps`,
  type: 'object',
  description: 'A JSON schema, as far as Kubernetes takes it.',
  properties,
};

const json: Schema = {
  name: `${APIEXTENSIONS}.JSON`,
  description: 'Any JSON value.',
  'x-kubernetes-preserve-unknown-fields': true,
};

/** What may be a schema or something simpler has no one type; as an object it is a schema. */
function schemaOr(what: string, description: string, extra: Partial<Schema> = {}): Schema {
  return { name: `${APIEXTENSIONS}.JSONSchemaPropsOr${what}`, description, properties, ...extra };
}

const schemaOrBool = schemaOr('Bool', 'A schema, or whether there may be any.');
const schemaOrArray = schemaOr('Array', 'A schema, or a list of schemas.', { items: jsonSchemaProps });
const schemaOrStringArray = schemaOr('StringArray', 'A schema, or a list of names.', { items: str() });

const externalDocumentation = message(`${APIEXTENSIONS}.ExternalDocumentation`, 'Where to read more.', {
  description: [1, str(), 'What there is to read.'],
  url: [2, str(), 'Where it is.'],
});

const validationRule = message(
  `${APIEXTENSIONS}.ValidationRule`,
  'A rule in CEL that values have to keep.',
  {
    rule: [1, str(), 'The expression; self is the value, oldSelf the one before.'],
    message: [2, str(), 'What to say when it is broken.'],
    messageExpression: [3, str(), 'An expression that says it.'],
    reason: [
      4,
      str({ pointer: true }),
      'FieldValueInvalid, FieldValueForbidden, FieldValueRequired or FieldValueDuplicate.',
    ],
    fieldPath: [5, str(), 'The field to blame, from here.'],
    optionalOldSelf: [6, bool({ pointer: true }), 'Whether the rule is also checked where there is no old value.'],
  },
  { required: ['rule'] },
);

const keywords = message('', '', {
  id: [1, str()],
  $schema: [2, str()],
  $ref: [3, str(), 'Not allowed in definitions.'],
  description: [4, str(), 'What the field is for.'],
  type: [5, str(), 'object, array, string, integer, number or boolean.'],
  format: [6, str(), 'A refinement of the type, such as date-time or int64.'],
  title: [7, str(), 'A name for people.'],
  default: [8, json, 'The value when there is none.'],
  maximum: [9, double({ pointer: true }), 'The greatest value.'],
  exclusiveMaximum: [10, bool(), 'Whether the maximum itself is too great.'],
  minimum: [11, double({ pointer: true }), 'The smallest value.'],
  exclusiveMinimum: [12, bool(), 'Whether the minimum itself is too small.'],
  maxLength: [13, int64({ pointer: true }), 'The most characters of a text.'],
  minLength: [14, int64({ pointer: true }), 'The fewest characters of a text.'],
  pattern: [15, str(), 'A regular expression that texts match.'],
  maxItems: [16, int64({ pointer: true }), 'The most items of a list.'],
  minItems: [17, int64({ pointer: true }), 'The fewest items of a list.'],
  uniqueItems: [18, bool(), 'Not allowed to be true in definitions.'],
  multipleOf: [19, double({ pointer: true }), 'What numbers are multiples of.'],
  enum: [20, list(json), 'The values that are allowed.'],
  maxProperties: [21, int64({ pointer: true }), 'The most fields of an object.'],
  minProperties: [22, int64({ pointer: true }), 'The fewest fields of an object.'],
  required: [23, list(str()), 'Fields that must be there.'],
  items: [24, schemaOrArray, 'The schema of items.'],
  allOf: [25, list(jsonSchemaProps), 'Schemas that all have to hold.'],
  oneOf: [26, list(jsonSchemaProps), 'Schemas of which exactly one has to hold.'],
  anyOf: [27, list(jsonSchemaProps), 'Schemas of which at least one has to hold.'],
  not: [28, jsonSchemaProps, 'A schema that must not hold.'],
  properties: [29, map(jsonSchemaProps), 'The schemas of fields.'],
  additionalProperties: [30, schemaOrBool, 'The schema of fields that are not named.'],
  patternProperties: [31, map(jsonSchemaProps), 'Not allowed in definitions.'],
  dependencies: [32, map(schemaOrStringArray), 'Not allowed in definitions.'],
  additionalItems: [33, schemaOrBool, 'Not allowed in definitions.'],
  definitions: [34, map(jsonSchemaProps), 'Not allowed in definitions.'],
  externalDocs: [35, externalDocumentation, 'Where to read more.'],
  example: [36, json, 'An example.'],
  nullable: [37, bool(), 'Whether null is a value.'],
  'x-kubernetes-preserve-unknown-fields': [38, bool({ pointer: true }), 'Whether fields without a schema are kept.'],
  'x-kubernetes-embedded-resource': [39, bool(), 'Whether this is a whole object, with kind and metadata.'],
  'x-kubernetes-int-or-string': [40, bool(), 'Whether this is a number or a text.'],
  'x-kubernetes-list-map-keys': [41, list(str()), 'The fields that tell items of a map-like list apart.'],
  'x-kubernetes-list-type': [42, str({ pointer: true }), 'atomic, set or map.'],
  'x-kubernetes-map-type': [43, str({ pointer: true }), 'granular or atomic.'],
  'x-kubernetes-validations': [44, listMap(['rule'], validationRule), 'Rules in CEL.'],
});

Object.assign(properties, keywords.properties);
