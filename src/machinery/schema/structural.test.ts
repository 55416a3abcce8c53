import { describe, expect, it } from 'vitest';
import type { Json } from '../../api/meta.ts';
import { structuralErrors } from './structural.ts';

const str = { type: 'string' };

/** A kind whose spec has these properties. */
function spec(properties: Json, extra: { [keyword: string]: Json } = {}): Json {
  return { type: 'object', properties: { spec: { type: 'object', properties, ...extra } } };
}

/** A kind with one field in its spec. */
function field(schema: Json): Json {
  return spec({ f: schema });
}

/** Errors with `F` for the path of the field above. */
function errors(schema: Json): string[] {
  return structuralErrors(schema, 'S').map((error) =>
    `${error.field}: ${error.message}`.replaceAll('S.properties[spec].properties[f]', 'F'),
  );
}

const keyed = { type: 'array', 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['n'] };
const union = [{ type: 'integer' }, { type: 'string' }];

describe('structural schemas', () => {
  it.each<[string, Json]>([
    ['a bare object', { type: 'object' }],
    [
      'fields of every type',
      spec({ a: str, b: { type: 'array', items: str }, c: { type: 'object', additionalProperties: str } }),
    ],
    ['int-or-string', field({ 'x-kubernetes-int-or-string': true })],
    ['int-or-string, written out', field({ 'x-kubernetes-int-or-string': true, anyOf: union })],
    [
      'int-or-string, written out and restricted',
      field({ 'x-kubernetes-int-or-string': true, allOf: [{ anyOf: union }, { pattern: 'a' }] }),
    ],
    ['unknown fields kept', field({ 'x-kubernetes-preserve-unknown-fields': true })],
    [
      'an embedded resource',
      field({ type: 'object', 'x-kubernetes-embedded-resource': true, 'x-kubernetes-preserve-unknown-fields': true }),
    ],
    [
      'restricted names',
      { type: 'object', properties: { metadata: { type: 'object', properties: { name: { ...str, maxLength: 5 } } } } },
    ],
    [
      'value validations in branches',
      spec({ a: str }, { anyOf: [{ required: ['a'] }, { properties: { a: { minLength: 1 } } }] }),
    ],
    ['a keyed list', field({ ...keyed, items: { type: 'object', required: ['n'], properties: { n: str } } })],
    [
      'a keyed list with a default for its key',
      field({ ...keyed, items: { type: 'object', properties: { n: { ...str, default: 'x' } } } }),
    ],
    [
      'a set of atomic objects',
      field({
        type: 'array',
        'x-kubernetes-list-type': 'set',
        items: { type: 'object', 'x-kubernetes-map-type': 'atomic' },
      }),
    ],
    ['defaults', field({ type: 'object', properties: { a: { type: 'integer', minimum: 1 } }, default: { a: 1 } })],
    [
      'keywords that are null',
      field({ ...str, items: null, default: null, pattern: null, 'x-kubernetes-validations': null }),
    ],
    ['a rule', field({ ...str, 'x-kubernetes-validations': [{ rule: 'self != ""', message: null, reason: null }] })],
  ])('accept %s', (_, schema) => {
    expect(errors(schema)).toEqual([]);
  });

  it.each<[string, Json, string[]]>([
    ['no type at the root', { properties: {} }, ['S.type: Required value: must not be empty at the root']],
    ['another type at the root', { type: 'string' }, ['S.type: Invalid value: "string": must be object at the root']],
    ['no type of a field', field({}), ['F.type: Required value: must not be empty for specified object fields']],
    [
      'no type of items',
      field({ type: 'array', items: {} }),
      ['F.items.type: Required value: must not be empty for specified array items'],
    ],
    ['no items', field({ type: 'array' }), ['F.items: Required value: must be specified']],
    [
      'several items',
      field({ type: 'array', items: [str] }),
      ['F.items: Forbidden: items must be a schema object and not an array'],
    ],
    [
      'an unknown type',
      field({ type: 'foo' }),
      [
        'F.type: Unsupported value: "foo": supported values: "array", "boolean", "integer", "number", "object", "string"',
      ],
    ],
    ['a reference', field({ $ref: '#/x' }), ['F.$ref: Forbidden: $ref is not supported']],
    [
      'patternProperties',
      field({ type: 'object', patternProperties: { a: str } }),
      ['F.patternProperties: Forbidden: patternProperties is not supported'],
    ],
    [
      'a nullable root',
      { type: 'object', nullable: true },
      ['S.nullable: Forbidden: nullable cannot be true at the root'],
    ],
    [
      'additionalProperties at the root',
      { type: 'object', additionalProperties: str },
      ['S.additionalProperties: Forbidden: must not be used at the root'],
    ],
    [
      'additionalProperties beside properties',
      field({ type: 'object', properties: { a: str }, additionalProperties: str }),
      ['F.additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive'],
    ],
    [
      'uniqueItems',
      field({ type: 'array', uniqueItems: true, items: str }),
      ['F.uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic'],
    ],
    [
      'preserve-unknown-fields: false',
      field({ type: 'object', 'x-kubernetes-preserve-unknown-fields': false }),
      ['F.x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or undefined'],
    ],
    [
      'int-or-string that keeps unknown fields',
      field({ 'x-kubernetes-int-or-string': true, 'x-kubernetes-preserve-unknown-fields': true }),
      [
        'F.x-kubernetes-preserve-unknown-fields: Invalid value: true: must be false if x-kubernetes-int-or-string is true',
      ],
    ],
    [
      'a pattern that is none',
      field({ ...str, pattern: '(' }),
      [
        `F.pattern: Invalid value: "(": must be a valid regular expression, but isn't: error parsing regexp: missing closing ): \`(\``,
      ],
    ],
    [
      'an embedded resource without a type',
      field({ 'x-kubernetes-embedded-resource': true }),
      [
        'F.type: Required value: must be object if x-kubernetes-embedded-resource is true',
        'F.properties: Required value: must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields',
      ],
    ],
    [
      'keywords of the wrong shape',
      field({ ...str, maxLength: 'x' }),
      ['F.maxLength: Invalid value: "string": F.maxLength in body must be of type integer: "string"'],
    ],
    [
      'properties of the wrong shape',
      { type: 'object', properties: [str] },
      ['S.properties: Invalid value: "array": S.properties in body must be of type object: "array"'],
    ],
    ['a schema that is none', 5, ['S: Invalid value: "number": S in body must be of type object: "number"']],
  ])('refuse %s', (_, schema, expected) => {
    expect(errors(schema)).toEqual(expected);
  });

  it.each<[string, Json, string[]]>([
    [
      'a type',
      spec({ f: { ...str, anyOf: [{ type: 'string' }] } }),
      ['F.anyOf[0].type: Forbidden: must be empty to be structural'],
    ],
    [
      'a default',
      field({ ...str, allOf: [{ default: 'x' }] }),
      ['F.allOf[0].default: Forbidden: must be undefined to be structural'],
    ],
    [
      'a description',
      field({ ...str, not: { description: 'x' } }),
      ['F.not.description: Forbidden: must be empty to be structural'],
    ],
    [
      'a rule',
      field({ ...str, allOf: [{ 'x-kubernetes-validations': [{ rule: 'true' }] }] }),
      ['F.allOf[0].x-kubernetes-validations: Forbidden: must be empty to be structural'],
    ],
    [
      'a field that is not there',
      { type: 'object', oneOf: [{ properties: { b: { minLength: 1 } } }] },
      ['S.properties[b]: Required value: because it is defined in S.oneOf[0].properties[b]'],
    ],
    [
      'items that are not there',
      { type: 'object', anyOf: [{ items: { minLength: 1 } }] },
      ['S.items: Required value: because it is defined in S.anyOf[0].items'],
    ],
    [
      'metadata',
      { type: 'object', anyOf: [{ properties: { metadata: { required: ['x'] } } }] },
      [
        'S.anyOf[0].properties[metadata]: Forbidden: must not be specified in a nested context',
        'S.properties[metadata]: Required value: because it is defined in S.anyOf[0].properties[metadata]',
      ],
    ],
  ])('refuse a branch with %s', (_, schema, expected) => {
    expect(errors(schema)).toEqual(expected);
  });

  it.each<[string, Json, string[]]>([
    [
      'more than names',
      { type: 'object', properties: { metadata: { type: 'object', properties: { labels: { type: 'object' } } } } },
      [
        'S.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified',
      ],
    ],
    [
      'another type',
      { type: 'object', properties: { metadata: str, kind: { type: 'integer' } } },
      [
        'S.properties[kind].type: Invalid value: "integer": must be string',
        'S.properties[metadata].type: Invalid value: "string": must be object',
      ],
    ],
    [
      'a default',
      { type: 'object', properties: { metadata: { type: 'object', properties: { name: { ...str, default: 'x' } } } } },
      ['S.properties[metadata].properties[name].default: Forbidden: must not be set in top-level metadata'],
    ],
  ])('refuse metadata with %s', (_, schema, expected) => {
    expect(errors(schema)).toEqual(expected);
  });

  it.each<[string, Json, string[]]>([
    [
      'an unknown type',
      field({ type: 'array', 'x-kubernetes-list-type': 'bag', items: str }),
      ['F.x-kubernetes-list-type: Unsupported value: "bag": supported values: "atomic", "set", "map"'],
    ],
    [
      'a type on what is no list',
      field({ ...str, 'x-kubernetes-list-type': 'set' }),
      ['F.type: Invalid value: "string": must be array if x-kubernetes-list-type is specified'],
    ],
    [
      'keys without the type',
      field({ type: 'array', 'x-kubernetes-list-map-keys': ['n'], items: { type: 'object', properties: { n: str } } }),
      ['F.x-kubernetes-list-type: Required value: must be map if x-kubernetes-list-map-keys is non-empty'],
    ],
    [
      'no keys',
      field({ type: 'array', 'x-kubernetes-list-type': 'map', items: { type: 'object' } }),
      ['F.x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map'],
    ],
    [
      'items that are no objects',
      field({ ...keyed, items: str }),
      [`F.items.type: Invalid value: "string": must be object if parent array's x-kubernetes-list-type is map`],
    ],
    [
      'a key that is no field',
      field({ ...keyed, items: { type: 'object', properties: { x: str } } }),
      ['F.x-kubernetes-list-map-keys: Invalid value: ["n"]: entries must all be names of item properties'],
    ],
    [
      'a key that may be missing',
      field({ ...keyed, items: { type: 'object', properties: { n: str } } }),
      [
        'F.items.properties[n].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property',
      ],
    ],
    [
      'a key that is no scalar',
      field({ ...keyed, items: { type: 'object', required: ['n'], properties: { n: { type: 'object' } } } }),
      [
        `F.items.properties[n].type: Invalid value: "object": must be a scalar type if parent array's x-kubernetes-list-type is map`,
      ],
    ],
    [
      'a set of objects',
      field({ type: 'array', 'x-kubernetes-list-type': 'set', items: { type: 'object' } }),
      [
        'F.items.x-kubernetes-map-type: Invalid value: null: must be atomic as item of a list with x-kubernetes-list-type=set',
      ],
    ],
    [
      'nullable items',
      field({ type: 'array', 'x-kubernetes-list-type': 'set', items: { ...str, nullable: true } }),
      ['F.items.nullable: Forbidden: cannot be nullable when x-kubernetes-list-type is set'],
    ],
    [
      'a map type on what is no map',
      field({ ...str, 'x-kubernetes-map-type': 'atomic' }),
      ['F.type: Invalid value: "string": must be object if x-kubernetes-map-type is specified'],
    ],
  ])('refuse lists with %s', (_, schema, expected) => {
    expect(errors(schema)).toEqual(expected);
  });

  it.each<[string, Json, string[]]>([
    [
      'of the wrong type',
      field({ ...str, default: 5 }),
      ['F.default: Invalid value: "integer":  in body must be of type string: "integer"'],
    ],
    [
      'with unknown fields',
      field({ type: 'object', properties: { a: str }, default: { b: 1 } }),
      ['F.default: Invalid value: {"b":1}: must not have unknown fields'],
    ],
    [
      'that break validations',
      field({ type: 'object', properties: { a: { type: 'integer', minimum: 3 } }, default: { a: 1 } }),
      ['F.default.a: Invalid value: 1: a in body should be greater than or equal to 3'],
    ],
    [
      'that break rules',
      field({ ...str, default: 'y', 'x-kubernetes-validations': [{ rule: 'self == "x"' }] }),
      ['F.default: Invalid value: "string": failed rule: self == "x"'],
    ],
    [
      'of embedded resources without a kind',
      field({
        type: 'object',
        'x-kubernetes-embedded-resource': true,
        'x-kubernetes-preserve-unknown-fields': true,
        default: { apiVersion: 'v1' },
      }),
      ['F.default.kind: Required value'],
    ],
  ])('refuse defaults %s', (_, schema, expected) => {
    expect(errors(schema)).toEqual(expected);
  });
});

describe('rules of structural schemas', () => {
  const ruled = (...rules: Json[]): Json =>
    field({ type: 'object', properties: { a: str }, 'x-kubernetes-validations': rules });
  const at = 'F.x-kubernetes-validations[0]';
  /** A rule that does not compile is shown whole. */
  const whole = (rule: string, messageExpression = ''): string =>
    JSON.stringify({
      Rule: rule,
      Message: '',
      MessageExpression: messageExpression,
      Reason: null,
      FieldPath: '',
      OptionalOldSelf: null,
    });

  it.each<[string, Json, string[]]>([
    ['nothing', { rule: ' ' }, [`${at}.rule: Required value: rule is not specified`]],
    [
      'an unknown field',
      { rule: 'self.nope == 1' },
      [
        `${at}.rule: Invalid value: ${whole('self.nope == 1')}: compilation failed: ERROR: <input>:1:5: undefined field 'nope'\n | self.nope == 1\n | ....^`,
      ],
    ],
    [
      'types that do not match',
      { rule: 'self.a == 1' },
      [
        `${at}.rule: Invalid value: ${whole('self.a == 1')}: compilation failed: ERROR: <input>:1:8: found no matching overload for '_==_' applied to '(string, int)'\n | self.a == 1\n | .......^`,
      ],
    ],
    [
      'no truth value',
      { rule: 'self.a' },
      [`${at}.rule: Invalid value: ${whole('self.a')}: cel expression must evaluate to a bool`],
    ],
    [
      'a pattern that is none',
      { rule: 'self.a.matches("[")' },
      [
        `${at}.rule: Invalid value: ${whole('self.a.matches("[")')}: compilation failed: ERROR: <input>:1:16: invalid matches argument\n | self.a.matches("[")\n | ...............^`,
      ],
    ],
    [
      'an empty message',
      { rule: 'true', message: ' ' },
      [`${at}.message: Invalid value: " ": must be non-empty if specified`],
    ],
    [
      'a message with line breaks',
      { rule: 'true', message: 'a\nb' },
      [`${at}.message: Invalid value: "a\\nb": must not contain line breaks`],
    ],
    [
      'line breaks without a message',
      { rule: 'true\n&& true' },
      [`${at}.message: Required value: message must be specified if rule contains line breaks`],
    ],
    [
      'a messageExpression that does not compile',
      { rule: 'true', messageExpression: 'self.b' },
      [
        `${at}.messageExpression: Invalid value: ${whole('true', 'self.b')}: messageExpression compilation failed: ERROR: <input>:1:5: undefined field 'b'\n | self.b\n | ....^`,
      ],
    ],
    [
      'a messageExpression that makes no text',
      { rule: 'true', messageExpression: '1' },
      [`${at}.messageExpression: Invalid value: ${whole('true', '1')}: messageExpression must evaluate to a string`],
    ],
    [
      'an unknown reason',
      { rule: 'true', reason: 'Nope' },
      [
        `${at}.reason: Unsupported value: "Nope": supported values: "FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"`,
      ],
    ],
    [
      'a fieldPath to nowhere',
      { rule: 'true', fieldPath: '.b' },
      [`${at}.fieldPath: Invalid value: ".b": must be a valid path`],
    ],
    [
      'a malformed fieldPath',
      { rule: 'true', fieldPath: 'a' },
      [`${at}.fieldPath: Invalid value: "a": must be a valid path`],
    ],
    [
      'an old value that it asks for and does not use',
      { rule: 'true', optionalOldSelf: true },
      [`${at}.optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule`],
    ],
  ])('refuse a rule with %s', (_, rule, expected) => {
    expect(errors(ruled(rule))).toEqual(expected);
  });

  it('refuse to look back where items have no past', () => {
    const items = { ...str, 'x-kubernetes-validations': [{ rule: 'self == oldSelf' }] };
    expect(errors(field({ type: 'array', items }))).toEqual([
      'F.items.x-kubernetes-validations[0].rule: Invalid value: "self == oldSelf": oldSelf cannot be used on the uncorrelatable portion of the schema within F',
    ]);
    const object = {
      type: 'object',
      required: ['n'],
      properties: { n: str },
      'x-kubernetes-validations': [{ rule: 'self == oldSelf' }],
    };
    expect(errors(field({ ...keyed, items: object }))).toEqual([]);
  });

  it('see names of the resource at the root, and no more of its metadata', () => {
    const root = (rule: string): Json => ({ type: 'object', 'x-kubernetes-validations': [{ rule }] });
    expect(errors(root('self.metadata.name != "" && self.kind != "" && self.metadata.generateName == ""'))).toEqual([]);
    expect(errors(root('self.metadata.labels.size() > 0'))[0]).toContain("undefined field 'labels'");
  });
});
