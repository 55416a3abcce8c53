import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import type { Published } from './openapi-well-known.ts';

/**
 * OpenAPI v2 in the protobuf form that client-go reads (message `openapi.v2.Document` of gnostic). Only what our own
 * documents contain is encoded. Maps become lists of name and value, in the order of their keys in the document;
 * anything free-form travels as YAML, of which JSON is a part.
 */
export function encodeOpenApiV2(document: Published): Uint8Array {
  const writer = new BinaryWriter();
  text(writer, 1, document['swagger']);
  nested(writer, 2, () => {
    const info = document['info'] as Published;
    text(writer, 1, info['title']);
    text(writer, 2, info['version']);
  });
  nested(writer, 8, () => named(writer, 2, document['paths'], pathItem));
  nested(writer, 9, () => named(writer, 1, document['definitions'], schema));
  return writer.finish();
}

type Encode = (writer: BinaryWriter, value: Published) => void;

function nested(writer: BinaryWriter, field: number, write: () => void): void {
  writer.tag(field, WireType.LengthDelimited).fork();
  write();
  writer.join();
}

function text(writer: BinaryWriter, field: number, value: unknown): void {
  if (typeof value === 'string' && value !== '') writer.tag(field, WireType.LengthDelimited).string(value);
}

function texts(writer: BinaryWriter, field: number, values: unknown): void {
  for (const value of (values ?? []) as string[]) writer.tag(field, WireType.LengthDelimited).string(value);
}

function flag(writer: BinaryWriter, field: number, value: unknown): void {
  if (value === true) writer.tag(field, WireType.Varint).bool(true);
}

function integer(writer: BinaryWriter, field: number, value: unknown): void {
  if (Number.isSafeInteger(value) && value !== 0) writer.tag(field, WireType.Varint).int64(value as number);
}

function double(writer: BinaryWriter, field: number, value: unknown): void {
  if (typeof value === 'number' && value !== 0) writer.tag(field, WireType.Bit64).double(value);
}

/** A map: one entry of name and value for each key. */
function named(writer: BinaryWriter, field: number, map: unknown, encode: Encode): void {
  for (const [name, value] of Object.entries((map ?? {}) as Published)) {
    nested(writer, field, () => {
      text(writer, 1, name);
      nested(writer, 2, () => encode(writer, value as Published));
    });
  }
}

/** `Any`: the value as YAML. */
function any(writer: BinaryWriter, field: number, value: unknown): void {
  if (value !== undefined) nested(writer, field, () => text(writer, 2, JSON.stringify(value)));
}

function extensions(writer: BinaryWriter, field: number, value: Published): void {
  for (const key of Object.keys(value)) {
    if (!key.startsWith('x-')) continue;
    nested(writer, field, () => {
      text(writer, 1, key);
      any(writer, 2, value[key]);
    });
  }
}

const METHOD_FIELDS: { readonly [method: string]: number } = { get: 2, put: 3, post: 4, delete: 5, patch: 8 };

function pathItem(writer: BinaryWriter, item: Published): void {
  for (const [method, field] of Object.entries(METHOD_FIELDS)) {
    const value = item[method] as Published | undefined;
    if (value) nested(writer, field, () => operation(writer, value));
  }
}

function operation(writer: BinaryWriter, value: Published): void {
  texts(writer, 1, value['tags']);
  text(writer, 3, value['description']);
  text(writer, 5, value['operationId']);
  texts(writer, 6, value['produces']);
  texts(writer, 7, value['consumes']);
  for (const each of value['parameters'] as Published[]) {
    // ParametersItem { Parameter { ... } }
    nested(writer, 8, () => nested(writer, 1, () => parameter(writer, each)));
  }
  nested(writer, 9, () =>
    named(writer, 1, value['responses'], (inner, response) => nested(inner, 1, () => responseOf(inner, response))),
  );
  extensions(writer, 13, value);
}

function parameter(writer: BinaryWriter, value: Published): void {
  if (value['in'] === 'body') {
    return nested(writer, 1, () => {
      text(writer, 2, value['name']);
      text(writer, 3, value['in']);
      flag(writer, 4, value['required']);
      nested(writer, 5, () => schema(writer, value['schema'] as Published));
    });
  }
  // NonBodyParameter { query = 3 | path = 4 }; the two number their later fields differently.
  const isQuery = value['in'] === 'query';
  nested(writer, 2, () =>
    nested(writer, isQuery ? 3 : 4, () => {
      flag(writer, 1, value['required']);
      text(writer, 2, value['in']);
      text(writer, 3, value['description']);
      text(writer, 4, value['name']);
      text(writer, isQuery ? 6 : 5, value['type']);
      flag(writer, isQuery ? 20 : 19, value['uniqueItems']);
    }),
  );
}

function responseOf(writer: BinaryWriter, value: Published): void {
  text(writer, 1, value['description']);
  nested(writer, 2, () => nested(writer, 1, () => schema(writer, value['schema'] as Published)));
}

function schema(writer: BinaryWriter, value: Published): void {
  text(writer, 1, value['$ref']);
  text(writer, 2, value['format']);
  text(writer, 3, value['title']);
  text(writer, 4, value['description']);
  any(writer, 5, value['default']);
  double(writer, 6, value['multipleOf']);
  double(writer, 7, value['maximum']);
  flag(writer, 8, value['exclusiveMaximum']);
  double(writer, 9, value['minimum']);
  flag(writer, 10, value['exclusiveMinimum']);
  integer(writer, 11, value['maxLength']);
  integer(writer, 12, value['minLength']);
  text(writer, 13, value['pattern']);
  integer(writer, 14, value['maxItems']);
  integer(writer, 15, value['minItems']);
  flag(writer, 16, value['uniqueItems']);
  integer(writer, 17, value['maxProperties']);
  integer(writer, 18, value['minProperties']);
  texts(writer, 19, value['required']);
  for (const each of (value['enum'] ?? []) as unknown[]) any(writer, 20, each);
  const additional = value['additionalProperties'];
  if (typeof additional === 'object' && additional !== null) {
    nested(writer, 21, () => nested(writer, 1, () => schema(writer, additional as Published)));
  } else if (typeof additional === 'boolean') {
    nested(writer, 21, () => writer.tag(2, WireType.Varint).bool(additional));
  }
  if (value['type'] !== undefined) nested(writer, 22, () => text(writer, 1, value['type']));
  const items = value['items'];
  if (items !== undefined) nested(writer, 23, () => nested(writer, 1, () => schema(writer, items as Published)));
  const properties = value['properties'];
  if (properties !== undefined) nested(writer, 25, () => named(writer, 1, properties, schema));
  extensions(writer, 31, value);
}
