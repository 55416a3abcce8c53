import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RawConnection } from '../support/raw-connection.ts';
import {
  APPLY_PATCH,
  bad,
  GADGETS,
  JSON_PATCH,
  JSON_TYPE,
  MERGE_PATCH,
  type Refusal,
  ROOT,
  STRATEGIC_PATCH,
  VICTIM,
  Victim,
} from './victim.ts';

/** Bodies that no client should send, to a real server: each is refused by name, and nothing else happens. */

let victim: Victim;
beforeAll(async () => {
  victim = await Victim.start();
});
afterAll(() => victim.close());

const YAML_TYPE = 'application/yaml';
const PROTOBUF = 'application/vnd.kubernetes.protobuf';
const nested = (depth: number, open = '[', close = ']'): string => open.repeat(depth) + close.repeat(depth);

describe('text that is no JSON, whatever it is sent for', () => {
  const texts: [string, string | Uint8Array, RegExp][] = [
    ['an unfinished object', '{"a":', /unexpected end of JSON input/],
    ['a bare word', '{"a": hunter2}', /invalid character .h. looking for beginning of value/],
    ['a trailing comma', '{"a":1,}', /invalid character .}. looking for beginning of object key string/],
    ['two values', '{} {}', /invalid character .{. after top-level value/],
    ['a NUL byte', '{"a":"\u0000"}', /invalid character .* in string literal/],
    ['bytes that are no UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]), /not valid UTF-8/],
    ['half a surrogate pair', '{"a":"\\ud83d"}', /half a surrogate pair is no text, at a/],
    ['a number without end', '{"a":1e999}', /the number 1e999 is out of range, at a/],
    [
      'a number that a double would change',
      '{"a":9007199254740993}',
      /the number 9007199254740993 is out of range, at a/,
    ],
    ['100 000 levels of lists', nested(100_000), /nested deeper than 512 levels/],
    ['100 000 levels of objects', `${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`, /nested deeper than 512 levels/],
    ['the key __proto__', '{"a":{"__proto__":{"polluted":1}}}', /the key "__proto__" is not accepted, at a.__proto__/],
    ['the key __proto__ in escapes', '{"\\u005f\\u005fproto__":1}', /the key "__proto__" is not accepted/],
  ];
  const doors: [string, string, string][] = [
    ['POST', `${ROOT}/configmaps`, JSON_TYPE],
    ['POST', GADGETS, JSON_TYPE],
    ['POST', `${ROOT}/pods/pod/eviction`, JSON_TYPE],
    ['PUT', VICTIM, JSON_TYPE],
    ['PUT', `${ROOT}/pods/pod/status`, JSON_TYPE],
    ['PATCH', VICTIM, JSON_PATCH],
    ['PATCH', VICTIM, MERGE_PATCH],
    ['PATCH', VICTIM, STRATEGIC_PATCH],
    ['PATCH', `${GADGETS}/gadget/scale`, MERGE_PATCH],
    ['DELETE', VICTIM, JSON_TYPE],
    ['DELETE', `${ROOT}/configmaps`, JSON_TYPE],
  ];
  describe.each(doors)('%s %s (%s)', (method, path, contentType) => {
    it.each(texts)('%s', (_name, body, message) => victim.refuses(method, path, body, contentType, bad(message)));
  });
});

describe('YAML that is none, or a trap', () => {
  const bomb = (): string => {
    const lines = ['a: &a [x,x,x,x,x,x,x,x,x]'];
    for (let index = 1; index < 9; index++)
      lines.push(
        `${index}: &${'abcdefghi'[index]} [${Array.from({ length: 9 }, () => `*${'abcdefghi'[index - 1]}`).join()}]`,
      );
    return lines.join('\n');
  };
  const merges = `a: &a {x: 1}\n${Array.from({ length: 5000 }, (_, index) => `k${index}: {<<: [*a, *a]}`).join('\n')}`;
  const texts: [string, string, RegExp][] = [
    ['an unclosed list', 'a: [1', /error converting YAML to JSON/],
    ['an alias to nothing', 'a: *nothing', /error converting YAML to JSON/],
    ['an alias bomb', bomb(), /error converting YAML to JSON: Excessive alias count/],
    ['a bomb of merge keys', merges, /error converting YAML to JSON: Excessive alias count/],
    ['a list that contains itself', '&a [*a]', /error converting YAML to JSON|Unresolved alias/],
    ['100 000 levels of flow lists', `a: ${nested(100_000)}`, /nested deeper than 512 levels/],
    ['100 000 levels of block lists', `${'- '.repeat(100_000)}x`, /nested deeper than 512 levels/],
    ['infinity', 'a: .inf', /the number Infinity is out of range/],
    [
      'a number that a double would change',
      'a: 18446744073709551615',
      /the number 18446744073709551615 is out of range/,
    ],
    ['the key __proto__', 'a:\n  __proto__: {b: 1}', /the key "__proto__" is not accepted/],
    ['two documents', 'a: 1\n---\nb: 2', /error converting YAML to JSON/],
  ];
  const doors: [string, string, string][] = [
    ['POST', `${ROOT}/configmaps?fieldValidation=Strict`, YAML_TYPE],
    ['PUT', `${VICTIM}?fieldValidation=Strict`, YAML_TYPE],
    ['PATCH', `${VICTIM}?fieldManager=me&fieldValidation=Strict`, APPLY_PATCH],
  ];
  describe.each(doors)('%s %s (%s)', (method, path, contentType) => {
    it.each(texts)('%s', (_name, body, message) => victim.refuses(method, path, body, contentType, bad(message)));
  });
});

describe('protobuf that is none', () => {
  const magic = Buffer.from([0x6b, 0x38, 0x73, 0x00]);
  /** runtime.Unknown with the type of a ConfigMap and this content. */
  const envelope = (raw: Uint8Array): Buffer => {
    const type = Buffer.concat([
      Buffer.from([0x0a, 2]),
      Buffer.from('v1'),
      Buffer.from([0x12, 9]),
      Buffer.from('ConfigMap'),
    ]);
    return Buffer.concat([magic, Buffer.from([0x0a, type.length]), type, Buffer.from([0x12, raw.length]), raw]);
  };
  it.each<[string, Uint8Array, RegExp]>([
    ['no magic', Buffer.from('{"a":1}'), /does not begin as a Kubernetes protobuf body does/],
    ['the magic alone', magic, /has no apiVersion or kind/],
    ['a truncated envelope', envelope(Buffer.from([1, 2, 3])).subarray(0, 12), /malformed at byte \d+/],
    ['a length beyond the end', envelope(Buffer.from([0x0a, 0x7f])), /malformed at byte \d+/],
    ['a length of 4 GiB', envelope(Buffer.from([0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f])), /malformed at byte \d+/],
    ['an endless varint', envelope(Buffer.alloc(20, 0xff)), /malformed at byte \d+/],
    ['a group', envelope(Buffer.from([0x0b, 0x0c])), /groups are not accepted/],
    [
      'text that is no UTF-8',
      envelope(Buffer.from([0x0a, 3, 0x0a, 1, 0xff])),
      /in metadata.name: a text is not valid UTF-8/,
    ],
  ])('%s', (_name, body, message) => victim.refuses('POST', `${ROOT}/configmaps`, body, PROTOBUF, bad(message)));

  it('of another kind', () =>
    victim.refuses(
      'POST',
      `${ROOT}/secrets`,
      envelope(Buffer.alloc(0)),
      PROTOBUF,
      bad(/no kind "ConfigMap" is registered|cannot be handled as a Secret/),
    ));
});

describe('content that is not announced, or announced as something else', () => {
  const types: Refusal = {
    status: 415,
    reason: 'UnsupportedMediaType',
    message: 'accepted media types include: application/json',
  };
  it.each([
    ['POST', `${ROOT}/configmaps`, 'text/plain', types],
    ['POST', `${ROOT}/configmaps`, 'application/x-www-form-urlencoded', types],
    ['POST', `${ROOT}/configmaps`, MERGE_PATCH, types],
    ['PUT', VICTIM, 'text/html', types],
    ['PATCH', VICTIM, JSON_TYPE, { ...types, message: 'accepted media types include: application/json-patch+json' }],
    [
      'PATCH',
      VICTIM,
      'multipart/form-data; boundary=x',
      { ...types, message: 'accepted media types include: application/json-patch+json' },
    ],
    [
      'PATCH',
      `${GADGETS}/gadget`,
      STRATEGIC_PATCH,
      { ...types, message: 'accepted media types include: application/json-patch+json' },
    ],
    ['DELETE', VICTIM, 'text/plain', types],
  ])('%s %s with %s', (method, path, contentType, expected) =>
    victim.refuses(method, path, '{"metadata":{"name":"x"}}', contentType, expected),
  );

  it.each(['gzip', 'deflate', 'br', 'gzip, gzip'])(
    'a body packed by %s is refused, however small',
    async (encoding) => {
      const headers = { 'content-type': JSON_TYPE, 'content-encoding': encoding };
      const body = gzipSync(JSON.stringify({ metadata: { name: 'packed' } }));
      const answer = await victim.cluster.api.request('POST', `${ROOT}/configmaps`, { body, headers });
      expect(answer.expect(415).json.message).toContain(`content-encoding "${encoding}" is not accepted`);
      await victim.isUnchanged();
    },
  );

  it.each([
    ['POST', `${ROOT}/configmaps`, JSON_TYPE, /the request has no body; a ConfigMap is expected/],
    ['PUT', VICTIM, JSON_TYPE, /the request has no body; a ConfigMap is expected/],
    ['PATCH', VICTIM, MERGE_PATCH, /unexpected end of JSON input/],
    ['PATCH', VICTIM, JSON_PATCH, /unexpected end of JSON input/],
  ])('%s %s without a body', (method, path, contentType, message) =>
    victim.refuses(method, path, undefined, contentType, bad(message)),
  );
});

describe('bodies that are too large', () => {
  const large: Refusal = { status: 413, reason: 'RequestEntityTooLarge', message: 'limit is 3145728' };
  const body = JSON.stringify({ metadata: { name: 'x' }, data: { a: 'x'.repeat(3 * 1024 * 1024) } });

  it.each([
    ['POST', `${ROOT}/configmaps`, JSON_TYPE],
    ['PUT', VICTIM, JSON_TYPE],
    ['PATCH', VICTIM, MERGE_PATCH],
    ['DELETE', VICTIM, JSON_TYPE],
  ])('%s %s over HTTP/2', (method, path, contentType) => victim.refuses(method, path, body, contentType, large));

  it.each([
    ['announced', `Content-Length: ${body.length}\r\n\r\n${body}`],
    ['in chunks', `Transfer-Encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`],
  ])('over HTTP/1.1, %s', async (_name, rest) => {
    const { url, certificate, key } = victim.cluster.godwit.access();
    const connection = await RawConnection.tls(url, { cert: certificate, key });
    await connection.write(`POST ${ROOT}/configmaps HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n${rest}`);
    expect(await connection.receive('limit is 3145728')).toMatch(/^HTTP\/1\.1 413 /);
    connection.destroy();
    await victim.isUnchanged();
  });

  it('ends with a refusal that names the field where the kind has its own limit', async () => {
    const answer = await victim.cluster.api.request('POST', `${ROOT}/configmaps`, {
      body: { metadata: { name: 'x' }, data: { a: 'x'.repeat(1024 * 1024 + 1) } },
    });
    expect(answer.expect(422).json.message).toMatch(/Too long: .*1048576/);
  });

  it('cannot be put together from patches', async () => {
    await victim.cluster.create(GADGETS, { metadata: { name: 'growing' }, spec: { any: {} } });
    const piece = 'x'.repeat(1024 * 1024);
    let answer = await victim.cluster.api.request('GET', `${GADGETS}/growing`);
    for (let part = 0; part < 5 && answer.status === 200; part++)
      answer = await victim.cluster.api.request('PATCH', `${GADGETS}/growing`, {
        body: { spec: { any: { [`p${part}`]: piece } } },
        headers: { 'content-type': MERGE_PATCH },
      });
    expect(answer.expect(413).json).toMatchObject({ kind: 'Status', reason: 'RequestEntityTooLarge' });
    (await victim.cluster.api.request('DELETE', `${GADGETS}/growing`)).expect(200);
  });
});
