import { WireType } from '@bufbuild/protobuf/wire';
import type { Json, JsonObject, KubeObject } from '../../api/meta.ts';
import type { Schema } from '../../api/schema.ts';
import { badRequest } from '../../api/status.ts';
import { Cursor } from './cursor.ts';
import { readMessage } from './message.ts';

/**
 * Protobuf request bodies. kubectl sends them for the typed `create` commands and does not fall back to JSON, so the
 * built-in kinds have to be readable; we answer in JSON.
 *
 * Go's marshaller writes every field that is not a pointer, zero or not, and the wire does not tell which those are.
 * To get the JSON that the same client would have sent, a zero scalar is dropped unless its field is `required` or a
 * `pointer` in the schema; a zero time likewise (it is `null` where required); structs stay even when empty, because
 * `omitempty` does not apply to them (`status: {}`), and because some mean something (`emptyDir: {}`).
 */

const MAGIC = [0x6b, 0x38, 0x73, 0x00];

/** Whether a body begins as Kubernetes' protobuf envelope does. */
export function isProtobuf(body: Uint8Array): boolean {
  return MAGIC.every((byte, index) => body[index] === byte);
}

/**
 * Decodes an enveloped body into the object that JSON would have held. `schemaFor` finds the schema of a kind.
 * Throws a 400 that names the offset and the field; fields that the schema does not number are skipped.
 */
export function decodeProtobuf(
  body: Uint8Array,
  schemaFor: (apiVersion: string, kind: string) => Schema | undefined,
): KubeObject {
  if (!isProtobuf(body)) throw badRequest('the body does not begin as a Kubernetes protobuf body does');
  const { apiVersion, kind, raw } = readEnvelope(body);
  const schema = schemaFor(apiVersion, kind);
  if (schema === undefined) throw badRequest(`no kind "${kind}" is registered for version "${apiVersion}"`);
  const object: JsonObject = { apiVersion, kind };
  if (schema.properties?.metadata !== undefined) object.metadata = {};
  const cursor = new Cursor(raw, raw.byteOffset - body.byteOffset);
  readMessage(cursor, cursor.length, schema, object);
  return object as Json as unknown as KubeObject;
}

interface Envelope {
  apiVersion: string;
  kind: string;
  raw: Uint8Array;
}

/** runtime.Unknown: typeMeta 1, raw 2, contentEncoding 3, contentType 4. */
function readEnvelope(body: Uint8Array): Envelope {
  const envelope: Envelope = { apiVersion: '', kind: '', raw: new Uint8Array() };
  const bytes = body.subarray(MAGIC.length);
  const cursor = new Cursor(bytes, MAGIC.length);
  while (cursor.position < cursor.length) {
    const [number, wireType] = cursor.tag(cursor.length);
    if (number > 4 || wireType !== WireType.LengthDelimited) cursor.skip(wireType, cursor.length);
    else if (number === 1) cursor.within(cursor.length, (end) => readTypeMeta(cursor, end, envelope));
    else if (number === 2) envelope.raw = cursor.bytes(cursor.length);
    else refuseEncoding(number, cursor.string(cursor.length));
  }
  if (envelope.apiVersion === '' || envelope.kind === '')
    throw badRequest('the protobuf body has no apiVersion or kind');
  return envelope;
}

function refuseEncoding(number: number, value: string): void {
  const isPlain = number === 3 ? value === '' : value === '' || value === 'application/vnd.kubernetes.protobuf';
  if (!isPlain) throw badRequest(`the protobuf body wraps a content of another encoding: ${JSON.stringify(value)}`);
}

function readTypeMeta(cursor: Cursor, end: number, envelope: Envelope): void {
  while (cursor.position < end) {
    const [number, wireType] = cursor.tag(end);
    if (number > 2 || wireType !== WireType.LengthDelimited) cursor.skip(wireType, end);
    else envelope[number === 1 ? 'apiVersion' : 'kind'] = cursor.string(end);
  }
}
