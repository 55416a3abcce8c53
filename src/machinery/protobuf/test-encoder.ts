import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import type { Json, JsonObject } from '../../api/meta.ts';
import type { Schema } from '../../api/schema.ts';
import { shapeOf } from './plan.ts';

/** Writes protobuf bodies as clients do, so that tests can read them back. The server itself answers in JSON. */

/** An object in Kubernetes' envelope. */
export function encodeProtobuf(
  object: JsonObject & { readonly apiVersion: string; readonly kind: string },
  schema: Schema,
): Uint8Array {
  return encodeEnvelope(object.apiVersion, object.kind, encodeMessage(object, schema));
}

/** Any bytes in Kubernetes' envelope, as an object of this kind. */
export function encodeEnvelope(apiVersion: string, kind: string, raw: Uint8Array): Uint8Array {
  const typeMeta = new BinaryWriter().tag(1, WireType.LengthDelimited).string(apiVersion);
  typeMeta.tag(2, WireType.LengthDelimited).string(kind);
  const unknown = new BinaryWriter().tag(1, WireType.LengthDelimited).bytes(typeMeta.finish());
  unknown.tag(2, WireType.LengthDelimited).bytes(raw);
  unknown.tag(3, WireType.LengthDelimited).string('').tag(4, WireType.LengthDelimited).string('');
  return new Uint8Array([0x6b, 0x38, 0x73, 0x00, ...unknown.finish()]);
}

/** The fields of a message, those that Go embeds gathered in messages of their own. */
export function encodeMessage(object: JsonObject, schema: Schema): Uint8Array {
  const writer = new BinaryWriter();
  const embedded = new Map<number, BinaryWriter>();
  for (const [name, field] of Object.entries(schema.properties ?? {})) {
    const value = Object.hasOwn(object, name) ? object[name] : undefined;
    if (value === undefined || field.protobuf === undefined) continue;
    let target = writer;
    if (field.embedded !== undefined) {
      target = embedded.get(field.embedded) ?? new BinaryWriter();
      embedded.set(field.embedded, target);
    }
    writeField(target, field.protobuf, value, field);
  }
  for (const [number, inner] of embedded) writer.tag(number, WireType.LengthDelimited).bytes(inner.finish());
  return writer.finish();
}

function writeField(writer: BinaryWriter, number: number, value: Json, schema: Schema): void {
  const shape = shapeOf(schema);
  if (shape === 'list') {
    for (const item of value as Json[]) writeValue(writer, number, item, schema.items ?? {});
  } else if (shape === 'map') {
    for (const [key, item] of Object.entries(value as JsonObject)) {
      const entry = new BinaryWriter().tag(1, WireType.LengthDelimited).string(key);
      writeValue(entry, 2, item, schema.additionalProperties as Schema);
      writer.tag(number, WireType.LengthDelimited).bytes(entry.finish());
    }
  } else {
    writeValue(writer, number, value, schema);
  }
}

function writeValue(writer: BinaryWriter, number: number, value: Json, schema: Schema): void {
  const shape = shapeOf(schema);
  if (shape === 'int32' || shape === 'int64') writer.tag(number, WireType.Varint).int64(BigInt(value as number));
  else if (shape === 'bool') writer.tag(number, WireType.Varint).bool(value as boolean);
  else if (shape === 'double') writer.tag(number, WireType.Bit64).double(value as number);
  else if (shape === 'string') writer.tag(number, WireType.LengthDelimited).string(value as string);
  else if (shape === 'bytes')
    writer.tag(number, WireType.LengthDelimited).bytes(Buffer.from(value as string, 'base64'));
  else writer.tag(number, WireType.LengthDelimited).bytes(encodeNested(value, schema));
}

function encodeNested(value: Json, schema: Schema): Uint8Array {
  const writer = new BinaryWriter();
  const shape = shapeOf(schema);
  if (shape === 'message') return encodeMessage(value as JsonObject, schema);
  if (shape === 'list') {
    for (const item of value as Json[]) writeValue(writer, 1, item, schema.items ?? {});
  } else if (shape === 'quantity') {
    writer.tag(1, WireType.LengthDelimited).string(value as string);
  } else if (shape === 'raw') {
    writer.tag(1, WireType.LengthDelimited).bytes(Buffer.from(JSON.stringify(value)));
  } else if (shape === 'int-or-string') {
    writer.tag(1, WireType.Varint).int32(typeof value === 'string' ? 1 : 0);
    writer.tag(2, WireType.Varint).int32(typeof value === 'number' ? value : 0);
    writer.tag(3, WireType.LengthDelimited).string(typeof value === 'string' ? value : '');
  } else if ((shape === 'time' || shape === 'micro-time') && value !== null) {
    const microseconds = Number((/\.(\d{6})/.exec(value as string) ?? [])[1] ?? 0);
    writer.tag(1, WireType.Varint).int64(BigInt(Math.floor(Date.parse(value as string) / 1000)));
    writer.tag(2, WireType.Varint).int32(microseconds * 1000);
  }
  return writer.finish();
}
