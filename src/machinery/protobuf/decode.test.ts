import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { objectMeta, objectSchema } from '../../api/kinds/meta.ts';
import type { Json, JsonObject } from '../../api/meta.ts';
import {
  anything,
  bool,
  bytes,
  double,
  duration,
  embedded,
  int32,
  int64,
  intOrString,
  list,
  map,
  message,
  microTime,
  quantity,
  type Schema,
  str,
  time,
} from '../../api/schema.ts';
import { ApiError } from '../../api/status.ts';
import { MESSAGE_DEPTH_MAX, VALUES_MAX } from './cursor.ts';
import { decodeProtobuf, isProtobuf } from './decode.ts';
import { type Shape, shapeOf } from './plan.ts';
import { encodeEnvelope, encodeMessage, encodeProtobuf } from './test-encoder.ts';

const part = message(
  'Part',
  'A part.',
  {
    name: [1, str()],
    optional: [2, str()],
    explicit: [3, int32({ pointer: true })],
    required: [4, bool()],
    at: [5, time()],
    requiredAt: [6, time()],
  },
  { required: ['name', 'required', 'requiredAt'] },
);

const thing = objectSchema('Thing', 'Has a field of every shape.', {
  text: [2, str()],
  small: [3, int32()],
  large: [4, int64()],
  flag: [5, bool()],
  real: [6, double()],
  data: [7, bytes()],
  at: [8, time()],
  microAt: [9, microTime()],
  every: [10, duration()],
  size: [11, quantity()],
  port: [12, intOrString()],
  raw: [13, anything()],
  part: [14, part],
  parts: [15, list(part)],
  texts: [16, list(str())],
  numbers: [17, list(int32())],
  labels: [18, map(str())],
  secrets: [19, map(bytes())],
  amounts: [20, map(quantity())],
  partsByName: [21, map(part)],
  extra: [22, map(list(str()))],
  ...embedded(23, { source: [1, part], kindOfSource: [2, str()] }),
  opaque: [24, { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }],
  unnumbered: [25, str()],
});

const schemaFor = (apiVersion: string, kind: string): Schema | undefined =>
  apiVersion === 'v1' && kind === 'Thing' ? thing : undefined;

function decode(raw: Uint8Array): JsonObject {
  return decodeProtobuf(encodeEnvelope('v1', 'Thing', raw), schemaFor) as unknown as JsonObject;
}

function wire(write: (writer: BinaryWriter) => void): Uint8Array {
  const writer = new BinaryWriter();
  write(writer);
  return writer.finish();
}

/** The field that a body of these fields decodes to. */
function roundTrip(fields: JsonObject): JsonObject {
  const decoded = decode(encodeMessage(fields, thing));
  expect(decoded).toMatchObject({ apiVersion: 'v1', kind: 'Thing', metadata: {} });
  const { apiVersion: _apiVersion, kind: _kind, metadata: _metadata, ...rest } = decoded;
  return rest;
}

const FULL_PART = { name: 'n', required: true, requiredAt: '2026-01-02T03:04:05Z' };

describe('values', () => {
  it.each<[string, JsonObject]>([
    ['text', { text: 'grüße' }],
    ['a negative number', { small: -7 }],
    ['the least number', { small: -2147483648 }],
    ['a large number', { large: 9007199254740991 }],
    ['a large negative number', { large: -9007199254740991 }],
    ['true', { flag: true }],
    ['a fraction', { real: 0.25 }],
    ['bytes', { data: 'AP8B' }],
    ['a time', { at: '2026-01-02T03:04:05Z' }],
    ['the epoch', { at: '1970-01-01T00:00:00Z' }],
    ['a time before the epoch', { at: '1960-01-01T00:00:00Z' }],
    ['microseconds', { microAt: '2026-01-02T03:04:05.000123Z' }],
    ['a quantity', { size: '1Gi' }],
    ['a number that may be a text', { port: 80 }],
    ['zero that may be a text', { port: 0 }],
    ['a text that may be a number', { port: 'http' }],
    ['raw JSON', { raw: { a: [1, { b: null }] } }],
    ['a message', { part: FULL_PART }],
    ['messages', { parts: [FULL_PART, { ...FULL_PART, optional: 'o' }] }],
    ['texts, empty ones too', { texts: ['a', '', 'b'] }],
    ['numbers, zero too', { numbers: [1, 0, -1] }],
    ['a map, empty values too', { labels: { a: 'b', empty: '' } }],
    ['a map of bytes', { secrets: { token: 'AP8B', none: '' } }],
    ['a map of quantities', { amounts: { cpu: '100m' } }],
    ['a map of messages', { partsByName: { one: FULL_PART } }],
    ['a map of lists', { extra: { scopes: ['a', 'b'], none: [] } }],
    ['an embedded struct', { source: FULL_PART, kindOfSource: 'x' }],
    ['keys that objects have by nature', { labels: { constructor: 'x', toString: 'y' } }],
  ])('reads %s', (_what, fields) => {
    expect(roundTrip(fields)).toEqual(fields);
  });

  it.each([
    [0n, '0s'],
    [1n, '1ns'],
    [1_500n, '1.5µs'],
    [2_000_000n, '2ms'],
    [1_500_000_000n, '1.5s'],
    [90_000_000_000n, '1m30s'],
    [3_600_000_000_000n, '1h0m0s'],
    [-5_000_000_000n, '-5s'],
  ])('reads a duration of %d nanoseconds', (nanoseconds, text) => {
    const inner = wire((writer) => writer.tag(1, WireType.Varint).int64(nanoseconds));
    expect(decode(wire((writer) => writer.tag(10, WireType.LengthDelimited).bytes(inner)))).toMatchObject({
      every: text,
    });
  });

  it('reads packed numbers', () => {
    const packed = wire((writer) => writer.int32(1).int32(-2).int32(3));
    const body = wire((writer) =>
      writer.tag(17, WireType.LengthDelimited).bytes(packed).tag(17, WireType.Varint).int32(4),
    );
    expect(decode(body)).toMatchObject({ numbers: [1, -2, 3, 4] });
  });

  it('merges a message that comes in pieces, and lets the last scalar win', () => {
    const first = encodeMessage({ part: { name: 'first', optional: 'kept' }, text: 'first' }, thing);
    const second = encodeMessage({ part: { name: 'second' }, text: '' }, thing);
    const decoded = decode(new Uint8Array([...first, ...second]));
    expect(decoded).toMatchObject({ part: { name: 'second', optional: 'kept' } });
    expect(decoded).not.toHaveProperty('text');
  });

  it('fills in what a map entry leaves out', () => {
    const entry = (number: number): Uint8Array =>
      wire((writer) => writer.tag(number, WireType.LengthDelimited).bytes(new Uint8Array()));
    const body = new Uint8Array([18, 20, 21, 22].flatMap((number) => [...entry(number)]));
    expect(decode(body)).toMatchObject({
      labels: { '': '' },
      amounts: { '': '0' },
      partsByName: { '': {} },
      extra: { '': [] },
    });
  });

  it('skips fields that it does not know', () => {
    const body = wire((writer) =>
      writer
        .tag(200, WireType.Varint)
        .int32(1)
        .tag(201, WireType.Bit32)
        .fixed32(1)
        .tag(202, WireType.Bit64)
        .double(1)
        .tag(203, WireType.LengthDelimited)
        .string('x')
        .tag(2, WireType.LengthDelimited)
        .string('seen'),
    );
    expect(decode(body)).toEqual({ apiVersion: 'v1', kind: 'Thing', metadata: {}, text: 'seen' });
  });
});

describe('zeros, which Go writes for every field that is no pointer', () => {
  it('drops those that JSON would leave out', () => {
    expect(
      roundTrip({ text: '', small: 0, large: 0, flag: false, real: 0, data: '', at: null, microAt: null }),
    ).toEqual({});
  });

  it('keeps pointers, required fields and structs', () => {
    const zero = { name: '', optional: '', explicit: 0, required: false, at: null, requiredAt: null };
    expect(roundTrip({ part: zero })).toEqual({ part: { name: '', explicit: 0, required: false, requiredAt: null } });
    expect(roundTrip({ source: {} })).toEqual({ source: {} });
  });

  it('shows an empty quantity as JSON does', () => {
    expect(roundTrip({ size: '' })).toEqual({ size: '0' });
  });
});

describe('bodies that are refused', () => {
  const refusals: [what: string, body: Uint8Array, text: string][] = [
    ['nothing', new Uint8Array(), 'does not begin as'],
    ['JSON', Buffer.from('{}'), 'does not begin as'],
    ['an envelope without content', new Uint8Array([0x6b, 0x38, 0x73, 0]), 'has no apiVersion or kind'],
    [
      'an unknown kind',
      encodeEnvelope('v1', 'Other', new Uint8Array()),
      'no kind "Other" is registered for version "v1"',
    ],
  ];

  it.each(refusals)('%s', (_what, body, text) => {
    expect(() => decodeProtobuf(body, schemaFor)).toThrow(text);
  });

  const malformed: [what: string, raw: Uint8Array, text: string][] = [
    ['a cut text', new Uint8Array([0x12, 5, 0x61]), 'in text: it ends too early'],
    ['a cut number', new Uint8Array([0x18, 0x80]), 'in small: '],
    ['a cut fraction', new Uint8Array([0x31, 1, 2]), 'in real: it ends too early'],
    ['a cut tag', new Uint8Array([0x80]), 'malformed at byte'],
    ['a length past the end of its message', new Uint8Array([0x72, 2, 0x0a, 9]), 'in part.name: it ends too early'],
    ['field number zero', new Uint8Array([0x02, 0]), 'illegal tag'],
    ['a group', new Uint8Array([0x13, 0x14]), 'groups are not accepted'],
    ['a wrong wire type', new Uint8Array([0x10, 1]), 'in text: wire type 0 where 2 belongs'],
    ['a wrong wire type for a map', new Uint8Array([0x90, 0x01, 1]), 'in labels: wire type 0 where 2 belongs'],
    ['a text that is not UTF-8', new Uint8Array([0x12, 1, 0xff]), 'in text: a text is not valid UTF-8'],
    [
      'a time beyond the calendar',
      wire((w) => w.tag(8, WireType.LengthDelimited).bytes(wire((t) => t.tag(1, WireType.Varint).int64(10n ** 15n)))),
      'in at: a time outside',
    ],
    [
      'a number that is none',
      wire((w) => w.tag(6, WireType.Bit64).double(Number.NaN)),
      'in real: a number that JSON cannot hold',
    ],
    [
      'raw JSON that is none',
      wire((w) =>
        w.tag(13, WireType.LengthDelimited).bytes(wire((r) => r.tag(1, WireType.LengthDelimited).string('{'))),
      ),
      'in raw: ',
    ],
    [
      'a field that is only read from JSON',
      wire((w) => w.tag(24, WireType.LengthDelimited).bytes(new Uint8Array())),
      'in opaque: this field is not read',
    ],
    [
      'a key that would reach the prototype',
      encodeMessage(JSON.parse('{"labels":{"__proto__":"x"}}') as JsonObject, thing),
      '"__proto__" is not accepted',
    ],
    [
      'such a key in raw JSON',
      wire((w) =>
        w
          .tag(13, WireType.LengthDelimited)
          .bytes(wire((r) => r.tag(1, WireType.LengthDelimited).string('{"__proto__":{}}'))),
      ),
      '"__proto__" is not accepted',
    ],
  ];

  it.each(malformed)('%s', (_what, raw, text) => {
    expect(() => decode(raw)).toThrow(text);
    expect(() => decode(raw)).toThrow(ApiError);
  });

  it('names the item of a list and the offset in the whole body', () => {
    const bad = encodeMessage({ parts: [FULL_PART] }, thing);
    const raw = new Uint8Array([...bad, 0x7a, 2, 0x0a, 9]);
    const body = encodeEnvelope('v1', 'Thing', raw);
    const offset = body.length - 4; // The empty contentEncoding and contentType come last.
    expect(() => decodeProtobuf(body, schemaFor)).toThrow(`at byte ${offset}, in parts[1].name: it ends too early`);
  });

  it('another encoding inside the envelope', () => {
    const envelope = encodeEnvelope('v1', 'Thing', new Uint8Array());
    const withType = wire((writer) => writer.tag(4, WireType.LengthDelimited).string('application/json'));
    expect(() => decodeProtobuf(new Uint8Array([...envelope, ...withType]), schemaFor)).toThrow('another encoding');
  });

  it('more values than a body may hold', () => {
    const raw = new Uint8Array(2 * (VALUES_MAX + 1)).fill(0x7a);
    for (let index = 1; index < raw.length; index += 2) raw[index] = 0;
    expect(() => decode(raw)).toThrow(`more than ${VALUES_MAX} values`);
  });

  it('deeper nesting than any kind has', () => {
    const properties: Record<string, Schema> = {};
    const endless: Schema = { type: 'object', properties };
    properties['inner'] = { ...endless, protobuf: 1 };
    let raw = new Uint8Array();
    for (let depth = 0; depth <= MESSAGE_DEPTH_MAX; depth++)
      raw = wire((w) => w.tag(1, WireType.LengthDelimited).bytes(raw)) as typeof raw;
    const body = encodeEnvelope('v1', 'Endless', raw);
    expect(() => decodeProtobuf(body, () => endless)).toThrow('nested deeper');
  });
});

const texts = fc.string({ minLength: 1, maxLength: 40, unit: 'grapheme' });
const keys = texts.filter((key) => key !== '__proto__');
const seconds = fc.integer({ min: -62_000_000_000, max: 253_000_000_000 });
const secondText = (moment: number): string => new Date(moment * 1000).toISOString().slice(0, 19);

/** Values as clients would send them: no zeros, since those need not come back. */
const scalars: { readonly [shape in Shape]?: fc.Arbitrary<Json> } = {
  string: texts,
  int32: fc.integer().filter((value) => value !== 0),
  int64: fc.maxSafeInteger().filter((value) => value !== 0),
  bool: fc.constant(true),
  double: fc.double({ noNaN: true, noDefaultInfinity: true }).filter((value) => value !== 0),
  bytes: fc.uint8Array({ minLength: 1 }).map((value) => Buffer.from(value).toString('base64')),
  time: seconds.map((moment) => `${secondText(moment)}Z`),
  'micro-time': fc
    .tuple(seconds, fc.nat(999_999))
    .map(([moment, micro]) => `${secondText(moment)}.${String(micro).padStart(6, '0')}Z`),
  quantity: fc.constantFrom('1', '100m', '1Gi'),
  'int-or-string': fc.oneof(fc.integer(), texts),
  raw: fc.dictionary(keys, fc.oneof(texts, fc.integer(), fc.boolean())),
};

function valueOf(schema: Schema): fc.Arbitrary<Json> {
  const shape = shapeOf(schema);
  const scalar = scalars[shape];
  if (scalar !== undefined) return scalar;
  if (shape === 'list') return fc.array(valueOf(schema.items ?? {}), { minLength: 1, maxLength: 3 });
  if (shape === 'map') {
    return fc.dictionary(keys, valueOf(schema.additionalProperties as Schema), { minKeys: 1, maxKeys: 3 });
  }
  const readable = Object.entries(schema.properties ?? {}).filter(
    ([, field]) => field.protobuf !== undefined && !['opaque', 'duration'].includes(shapeOf(field)),
  );
  const fields = Object.fromEntries(readable.map(([name, field]) => [name, valueOf(field)]));
  return fc.record(fields, { requiredKeys: [] }) as fc.Arbitrary<Json>;
}

const things = valueOf(thing).map((value) => ({
  metadata: {},
  ...(value as JsonObject),
  apiVersion: 'v1',
  kind: 'Thing',
}));

describe('any body', () => {
  it('comes back as it was', () => {
    fc.assert(
      fc.property(things, (object) => {
        expect(decodeProtobuf(encodeProtobuf(object, thing), schemaFor)).toEqual(object);
      }),
    );
  });

  it('decodes or is refused with a 400, cut and changed anywhere', () => {
    const changes = fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 6 });
    fc.assert(
      fc.property(things, changes, fc.nat(), (object, bytesChanged, cut) => {
        const body = encodeProtobuf(object, thing);
        for (const [position, byte] of bytesChanged) body[4 + (position % (body.length - 4))] = byte;
        expectDecodedOrRefused(body.subarray(0, cut % 3 === 0 ? cut % (body.length + 1) : body.length));
      }),
      { numRuns: 500 },
    );
  });

  it('decodes or is refused with a 400, random from the start', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (raw) => {
        expectDecodedOrRefused(encodeEnvelope('v1', 'Thing', raw));
        expectDecodedOrRefused(new Uint8Array([0x6b, 0x38, 0x73, 0x00, ...raw]));
        expectDecodedOrRefused(raw);
      }),
      { numRuns: 500 },
    );
  });
});

function expectDecodedOrRefused(body: Uint8Array): void {
  try {
    const decoded = decodeProtobuf(body, schemaFor);
    expect(JSON.parse(JSON.stringify(decoded))).toEqual(decoded);
  } catch (error) {
    expect(error).toBeInstanceOf(ApiError);
    expect((error as ApiError).code).toBe(400);
  }
}

describe('isProtobuf', () => {
  it('tells by the first four bytes', () => {
    expect(isProtobuf(encodeEnvelope('v1', 'Thing', encodeMessage({ name: 'x' }, objectMeta)))).toBe(true);
    expect(isProtobuf(new Uint8Array([0x6b, 0x38, 0x73]))).toBe(false);
    expect(isProtobuf(Buffer.from('k8s!'))).toBe(false);
  });
});
