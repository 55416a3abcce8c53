import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Cluster } from '../support/cluster.ts';
import { eventually } from '../support/eventually.ts';
import { RawConnection } from '../support/raw-connection.ts';
import { manifests } from './manifests.ts';

/** Bodies that no client should send, to a real server: each is refused by name, and nothing else happens. */

const ROOT = '/api/v1/namespaces/target';
const VICTIM = `${ROOT}/configmaps/victim`;
const GADGETS = '/apis/wild.example.com/v1/namespaces/target/gadgets';

let cluster: Cluster;
let pid: number;
let before: string;
let revision = '';

beforeAll(async () => {
  cluster = await Cluster.start();
  pid = cluster.godwit.pid;
  await cluster.create('/api/v1/namespaces', { metadata: { name: 'target' } });
  await cluster.create(`${ROOT}/configmaps`, {
    metadata: { name: 'victim', labels: { a: 'b' } },
    data: { key: 'value' },
  });
  await cluster.create(`${ROOT}/secrets`, { metadata: { name: 'secret' }, data: { password: 'aHVudGVyMg==' } });
  await cluster.create(`${ROOT}/pods`, { metadata: { name: 'pod' }, ...manifests.get('/pods') });
  await cluster.create('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', {
    metadata: { name: 'gadgets.wild.example.com' },
    ...manifests.get('apiextensions.k8s.io/customresourcedefinitions'),
  });
  await eventually(() =>
    cluster.create(GADGETS, { metadata: { name: 'gadget' }, ...manifests.get('wild.example.com/gadgets') }),
  );
  before = await state();
});

afterAll(() => cluster.close());

/** Everything that the requests speak of. */
async function state(): Promise<string> {
  const paths = [
    `${ROOT}/configmaps`,
    `${ROOT}/secrets`,
    `${ROOT}/pods`,
    GADGETS,
    '/api/v1/namespaces',
    '/apis/rbac.authorization.k8s.io/v1/clusterroles',
  ];
  const lists = await Promise.all(paths.map((path) => cluster.get(path)));
  return JSON.stringify(lists.map(({ items }) => items));
}

/** Every write moves the revision on; only where something did is it looked at what. */
async function nothingChanged(): Promise<void> {
  const { metadata } = await cluster.get('/api/v1/namespaces?limit=1');
  if (metadata.resourceVersion === revision) return;
  expect(await state()).toBe(before);
  revision = metadata.resourceVersion;
}

interface Refusal {
  readonly status: number;
  readonly reason: string;
  readonly message: RegExp | string;
}

const bad = (message: RegExp | string): Refusal => ({ status: 400, reason: 'BadRequest', message });
const invalid = (message: RegExp | string): Refusal => ({ status: 422, reason: 'Invalid', message });

/** Sends, and expects exactly this Status, the server alive, and everything as it was. */
async function refused(
  method: string,
  path: string,
  body: unknown,
  contentType: string,
  expected: Refusal,
): Promise<void> {
  const headers: Record<string, string> = contentType === '' ? {} : { 'content-type': contentType };
  const answer = await cluster.api.request(method, path, { ...(body === undefined ? {} : { body }), headers });
  const { status, text } = answer;
  expect(`${status} ${text}`).toMatch(new RegExp(`^${expected.status} `));
  const { message, ...rest } = answer.json;
  expect(rest).toMatchObject({
    kind: 'Status',
    apiVersion: 'v1',
    status: 'Failure',
    code: expected.status,
    reason: expected.reason,
  });
  if (typeof expected.message === 'string') expect(message).toContain(expected.message);
  else expect(message).toMatch(expected.message);
  expect(message.length).toBeLessThan(20_000);
  expect(cluster.godwit.pid).toBe(pid);
  expect((await cluster.api.request('GET', '/livez')).text).toBe('ok');
  await nothingChanged();
}

const podSpec = manifests.get('/pods')?.['spec'] as object;

const JSON_TYPE = 'application/json';
const YAML_TYPE = 'application/yaml';
const PROTOBUF = 'application/vnd.kubernetes.protobuf';
const JSON_PATCH = 'application/json-patch+json';
const MERGE_PATCH = 'application/merge-patch+json';
const STRATEGIC_PATCH = 'application/strategic-merge-patch+json';
const APPLY_PATCH = 'application/apply-patch+yaml';

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
    it.each(texts)('%s', (_name, body, message) => refused(method, path, body, contentType, bad(message)));
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
    it.each(texts)('%s', (_name, body, message) => refused(method, path, body, contentType, bad(message)));
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
  ])('%s', (_name, body, message) => refused('POST', `${ROOT}/configmaps`, body, PROTOBUF, bad(message)));

  it('of another kind', () =>
    refused(
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
    refused(method, path, '{"metadata":{"name":"x"}}', contentType, expected),
  );

  it.each(['gzip', 'deflate', 'br', 'gzip, gzip'])(
    'a body packed by %s is refused, however small',
    async (encoding) => {
      const headers = { 'content-type': JSON_TYPE, 'content-encoding': encoding };
      const body = gzipSync(JSON.stringify({ metadata: { name: 'packed' } }));
      const answer = await cluster.api.request('POST', `${ROOT}/configmaps`, { body, headers });
      expect(answer.expect(415).json.message).toContain(`content-encoding "${encoding}" is not accepted`);
      await nothingChanged();
    },
  );

  it.each([
    ['POST', `${ROOT}/configmaps`, JSON_TYPE, /the request has no body; a ConfigMap is expected/],
    ['PUT', VICTIM, JSON_TYPE, /the request has no body; a ConfigMap is expected/],
    ['PATCH', VICTIM, MERGE_PATCH, /unexpected end of JSON input/],
    ['PATCH', VICTIM, JSON_PATCH, /unexpected end of JSON input/],
  ])('%s %s without a body', (method, path, contentType, message) =>
    refused(method, path, undefined, contentType, bad(message)),
  );
});

describe('values of the wrong type', () => {
  const cases: [string, object, RegExp][] = [
    ['metadata: a list', { metadata: [] }, /metadata/],
    ['metadata: text', { metadata: 'x' }, /metadata/],
    ['name: an object', { metadata: { name: {} } }, /metadata\.name/],
    ['name: a number', { metadata: { name: 5 } }, /metadata\.name/],
    ['namespace: a list', { metadata: { name: 'x', namespace: [] } }, /metadata\.namespace/],
    ['labels: a list', { metadata: { name: 'x', labels: [] } }, /metadata\.labels/],
    ['labels: values that are numbers', { metadata: { name: 'x', labels: { a: 1 } } }, /metadata\.labels/],
    ['annotations: numbers', { metadata: { name: 'x', annotations: { a: 1 } } }, /metadata\.annotations/],
    ['annotations: objects', { metadata: { name: 'x', annotations: { a: {} } } }, /metadata\.annotations/],
    ['finalizers: text', { metadata: { name: 'x', finalizers: 'x' } }, /metadata\.finalizers/],
    ['ownerReferences: an object', { metadata: { name: 'x', ownerReferences: {} } }, /metadata\.ownerReferences/],
    ['ownerReferences: of numbers', { metadata: { name: 'x', ownerReferences: [1] } }, /metadata\.ownerReferences/],
    ['managedFields: of text', { metadata: { name: 'x', managedFields: ['x'] } }, /metadata\.managedFields/],
    ['generation: text', { metadata: { name: 'x', generation: '1' } }, /metadata\.generation/],
    ['creationTimestamp: a number', { metadata: { name: 'x', creationTimestamp: 1 } }, /[tT]ime/],
    ['resourceVersion: a number', { metadata: { name: 'x', resourceVersion: 1 } }, /metadata\.resourceVersion/],
    ['kind: an object that answers nothing', { kind: { toString: 1, valueOf: 1 } }, /cannot be handled as a/],
    ['kind: another', { kind: 'Pod' }, /Pod.* cannot be handled as a/],
    ['kind: a list of the right one', { kind: 'ConfigMapList', items: [] }, /cannot be handled as a/],
    ['apiVersion: another', { apiVersion: 'v2' }, /v2/],
    ['apiVersion: a number', { apiVersion: 1 }, /apiVersion|API version/],
  ];
  it.each(cases)('%s: refused on POST of a built-in kind', (_name, body, message) =>
    refused('POST', `${ROOT}/configmaps`, body, JSON_TYPE, bad(message)),
  );
  it.each(cases)('%s: refused on PUT of a built-in kind', (_name, body, message) =>
    refused('PUT', VICTIM, body, JSON_TYPE, bad(message)),
  );
  it.each(cases)('%s: refused on POST of a custom kind', (_name, body, message) =>
    refused('POST', GADGETS, body, JSON_TYPE, bad(message)),
  );
  it.each(cases)('%s: refused on PUT of a custom kind', (_name, body, message) =>
    refused('PUT', `${GADGETS}/gadget`, body, JSON_TYPE, bad(message)),
  );
  it.each(cases.filter(([name]) => !/kind|apiVersion|metadata/.test(name)))(
    '%s: refused as a patch',
    (_name, body, message) => refused('PATCH', VICTIM, body, MERGE_PATCH, invalid(message)),
  );
  // What is applied has to say what it is, before anything else is looked at.
  const typed = { apiVersion: 'v1', kind: 'ConfigMap' };
  it.each(cases)('%s: refused as an applied object', (_name, body, message) =>
    refused(
      'PATCH',
      `${VICTIM}?fieldManager=me&force=true`,
      { ...typed, ...body },
      APPLY_PATCH,
      bad(new RegExp(`${message.source}|invalid object type`)),
    ),
  );

  it.each<[string, string, object, RegExp]>([
    ['data: a list', 'configmaps', { data: [] }, /data/],
    ['data: of numbers', 'configmaps', { data: { a: 1 } }, /data/],
    ['binaryData: no base64', 'configmaps', { binaryData: { a: '!' } }, /illegal base64/],
    ['data of a secret: no base64', 'secrets', { data: { a: 'hunter2!' } }, /illegal base64/],
    ['immutable: text', 'configmaps', { immutable: 'yes' }, /immutable/],
    ['spec: text', 'pods', { spec: 'x' }, /spec/],
    ['status: text', 'pods', { spec: { containers: [] }, status: 'x' }, /status/],
    ['status: a list', 'pods', { spec: { containers: [] }, status: [] }, /status/],
    ['containers: an object', 'pods', { spec: { containers: {} } }, /spec\.containers/],
    ['containers: of text', 'pods', { spec: { containers: ['x'] } }, /spec\.containers/],
    [
      'a port: beyond 32 bits',
      'pods',
      { spec: { containers: [{ name: 'a', image: 'b', ports: [{ containerPort: 2 ** 40 }] }] } },
      /containerPort/,
    ],
    [
      'a port: a fraction',
      'pods',
      { spec: { containers: [{ name: 'a', image: 'b', ports: [{ containerPort: 1.5 }] }] } },
      /containerPort/,
    ],
    [
      'a quantity: an object',
      'pods',
      { spec: { containers: [{ name: 'a', image: 'b', resources: { limits: { cpu: {} } } }] } },
      /quantit/i,
    ],
    [
      'a time: text that is none',
      'pods',
      { spec: { containers: [] }, status: { startTime: 'now' } },
      /parsing time|startTime/,
    ],
  ])('%s is refused on POST', (_name, plural, body, message) =>
    refused('POST', `${ROOT}/${plural}`, { metadata: { name: 'x' }, ...body }, JSON_TYPE, bad(message)),
  );

  it('a null where an owner should be counts as one without a name', () =>
    refused(
      'POST',
      `${ROOT}/configmaps`,
      { metadata: { name: 'x', ownerReferences: [null] } },
      JSON_TYPE,
      invalid(/metadata.ownerReferences.*must not be empty/),
    ));

  it('says nothing of what a secret holds', async () => {
    for (const data of [{ a: 'hunter2!' }, { a: ['hunter2'] }, 'hunter2', { hunter2: 1 }])
      expect(
        (await cluster.api.request('POST', `${ROOT}/secrets`, { body: { metadata: { name: 'x' }, data } }))
          .expect(400)
          .text.replace('data.hunter2', ''),
      ).not.toContain('hunter2');
  });
});

describe('names that are none', () => {
  it.each<[string, string, RegExp]>([
    ['empty', '', /metadata.name: Required value: name or generateName is required/],
    ['with upper case', 'Name', /metadata.name: Invalid value: "Name": a lowercase RFC 1123 subdomain/],
    ['dots', '..', /metadata.name: Invalid value: ".."/],
    ['with a slash', 'a/b', /metadata.name: Invalid value: "a\/b"/],
    ['with an encoded slash', 'a%2fb', /metadata.name: Invalid value: "a%2fb"/],
    ['with a NUL', 'a\u0000', /metadata.name: Invalid value: "a\\u0000"/],
    ['in other letters', '\u0444\u00fc\u{1f600}', /metadata.name: Invalid value/],
    ['254 letters', 'a'.repeat(254), /metadata.name: Invalid value: .*must be no more than 253/],
    ['a million letters', 'a'.repeat(1_000_000), /metadata.name: Invalid value: .*must be no more than 253/],
  ])('%s', (_name, name, message) =>
    refused('POST', `${ROOT}/configmaps`, { metadata: { name } }, JSON_TYPE, invalid(message)),
  );

  it.each<[string, string, RegExp]>([
    ['dots', '..', /may not be '\.\.'/],
    ['with a slash', 'a/b', /may not contain '\/'/],
    ['with a percent sign', 'a%2fb', /may not contain '%'/],
    ['with a NUL', 'a\u0000', /metadata.name/],
    ['a million letters', 'a'.repeat(1_000_000), /metadata.name/],
  ])('of a role, which may have almost any: %s', (_name, name, message) =>
    refused(
      'POST',
      '/apis/rbac.authorization.k8s.io/v1/clusterroles',
      { metadata: { name } },
      JSON_TYPE,
      invalid(message),
    ),
  );

  it.each<[string, object, RegExp]>([
    [
      'another namespace than the path',
      { metadata: { name: 'x', namespace: 'default' } },
      /the namespace of the provided object does not match the namespace sent on the request/,
    ],
    ['a generated name of nonsense', { metadata: { generateName: 'A/' } }, /./],
  ])('%s', async (_name, body, message) => {
    const answer = await cluster.api.request('POST', `${ROOT}/configmaps`, { body });
    expect([400, 422]).toContain(answer.status);
    expect(answer.json.message).toMatch(message);
    await nothingChanged();
  });
  it('another name than the path', () =>
    refused(
      'PUT',
      VICTIM,
      { metadata: { name: 'other' } },
      JSON_TYPE,
      bad('the name of the object (other) does not match the name on the URL (victim)'),
    ));
});

describe('writes that come too late, or touch what is fixed', () => {
  it.each<[string, string, object, Refusal]>([
    [
      'PUT',
      VICTIM,
      { metadata: { name: 'victim', resourceVersion: '1' } },
      { status: 409, reason: 'Conflict', message: 'the object has been modified' },
    ],
    [
      'PUT',
      VICTIM,
      { metadata: { name: 'victim', resourceVersion: 'x' } },
      { status: 409, reason: 'Conflict', message: 'the object has been modified' },
    ],
    [
      'PUT',
      VICTIM,
      { metadata: { name: 'victim', uid: 'x' } },
      { status: 409, reason: 'Conflict', message: 'Precondition failed: UID in precondition: x' },
    ],
    [
      'PUT',
      `${ROOT}/configmaps/absent`,
      { metadata: { name: 'absent' } },
      { status: 404, reason: 'NotFound', message: 'configmaps "absent" not found' },
    ],
    [
      'POST',
      `${ROOT}/configmaps`,
      { metadata: { name: 'victim' } },
      { status: 409, reason: 'AlreadyExists', message: 'configmaps "victim" already exists' },
    ],
    [
      'POST',
      `${ROOT}/configmaps`,
      { metadata: { name: 'x', resourceVersion: '5' } },
      bad('resourceVersion should not be set on objects to be created'),
    ],
    [
      'PUT',
      `${ROOT}/secrets/secret`,
      { metadata: { name: 'secret' }, type: 'kubernetes.io/tls', data: {} },
      invalid(/type: Invalid value: "kubernetes.io\/tls": field is immutable/),
    ],
    [
      'PUT',
      `${ROOT}/pods/pod`,
      { metadata: { name: 'pod' }, spec: { ...podSpec, hostname: 'other' } },
      invalid(/spec: Forbidden: pod updates may not/),
    ],
  ])('%s %s %j', (method, path, body, expected) => refused(method, path, body, JSON_TYPE, expected));
});

describe('unknown and repeated fields', () => {
  const strict = (path: string): string => `${path}${path.includes('?') ? '&' : '?'}fieldValidation=Strict`;
  it.each<[string, string, string, RegExp]>([
    [
      'POST',
      `${ROOT}/configmaps`,
      '{"metadata":{"name":"x"},"extra":1,"data":{}}',
      /strict decoding error: unknown field "extra"/,
    ],
    [
      'POST',
      `${ROOT}/pods`,
      '{"metadata":{"name":"x"},"spec":{"containers":[{"name":"a","image":"b","imagee":"c"}]}}',
      /unknown field "spec.containers\[0\].imagee"/,
    ],
    ['POST', `${ROOT}/configmaps`, '{"metadata":{"name":"x","name":"y"}}', /duplicate field "metadata.name"/],
    [
      'POST',
      `${ROOT}/configmaps`,
      '{"metadata":{"name":"x","constructor":{"prototype":{}}},"prototype":1}',
      /unknown field "metadata.constructor", unknown field "prototype"/,
    ],
    ['POST', GADGETS, '{"metadata":{"name":"x"},"spec":{"sizee":1}}', /unknown field "spec.sizee"/],
    ['PUT', VICTIM, '{"metadata":{"name":"victim"},"extra":1,"data":{"key":"value"}}', /unknown field "extra"/],
  ])('are refused where the client says so: %s %s %s', (method, path, body, message) =>
    refused(method, strict(path), body, JSON_TYPE, bad(message)),
  );

  it('are told of in warnings otherwise, a hundred at most, in headers that arrive', async () => {
    const fields = Array.from({ length: 100_000 }, (_, index) => [`\u4e2d${index}`, 0] as const);
    const answer = await cluster.api.request('POST', `${ROOT}/configmaps?dryRun=All`, {
      body: { metadata: { name: 'x' }, ...Object.fromEntries(fields) },
    });
    answer.expect(201);
    expect(answer.warnings.length).toBeGreaterThan(10);
    expect(answer.warnings.join('').length).toBeLessThan(10_000);
  });

  it('are as much data as any other where any are allowed', async () => {
    const any = {
      constructor: { prototype: { polluted: 1 } },
      prototype: 1,
      toString: 'x',
      hasOwnProperty: null,
      valueOf: [],
    };
    const { spec } = (
      await cluster.api.request('POST', `${GADGETS}?dryRun=All`, { body: { metadata: { name: 'x' }, spec: { any } } })
    ).expect(201).json;
    expect(JSON.stringify(spec.any)).toBe(JSON.stringify(any));
  });
});

describe('patches that do not apply, or explode', () => {
  const copies = (count: number, path: string): object[] =>
    Array.from({ length: count }, () => ({ op: 'copy', from: '/data', path }));
  const doubling = [
    { op: 'add', path: '/spec/any', value: { a: 'x'.repeat(1000) } },
    ...Array.from({ length: 30 }, (_, index) => ({ op: 'copy', from: '/spec/any', path: `/spec/any/b${index}` })),
  ];
  const deepening = [
    { op: 'add', path: '/spec/any', value: {} },
    ...Array.from({ length: 2000 }, () => [
      { op: 'move', from: '/spec/any', path: '/spec/tmp' },
      { op: 'add', path: '/spec/any', value: {} },
      { op: 'move', from: '/spec/tmp', path: '/spec/any/a' },
    ]).flat(),
  ];
  /** As much as kube-apiserver tells. */
  const rejected = invalid('the server rejected our request due to an error in our request');

  it.each<[string, string, unknown, Refusal]>([
    ['an object', VICTIM, {}, bad(/error decoding patch|cannot unmarshal object/)],
    ['a list of numbers', VICTIM, [1], bad(/error decoding patch|cannot unmarshal number/)],
    ['an operation without a path', VICTIM, [{ op: 'add' }], rejected],
    ['an operation that is none', VICTIM, [{ op: 'explode', path: '/a' }], rejected],
    ['a test that fails', VICTIM, [{ op: 'test', path: '/data/key', value: 'other' }], rejected],
    ['removal of what is not there', VICTIM, [{ op: 'remove', path: '/data/absent' }], rejected],
    ['a path through text', VICTIM, [{ op: 'add', path: '/data/key/deeper', value: 1 }], rejected],
    ['an index beyond the list', `${ROOT}/pods/pod`, [{ op: 'remove', path: '/spec/containers/7' }], rejected],
    ['an index that is no number', `${ROOT}/pods/pod`, [{ op: 'remove', path: '/spec/containers/x' }], rejected],
    [
      'another kind',
      VICTIM,
      [{ op: 'replace', path: '/kind', value: 'Pod' }],
      bad(/cannot be handled as a ConfigMap|does not match/),
    ],
    ['another name', VICTIM, [{ op: 'replace', path: '/metadata/name', value: 'other' }], bad(/other/)],
    ['the whole document by text', VICTIM, [{ op: 'replace', path: '', value: 'x' }], rejected],
    ['a prototype', VICTIM, [{ op: 'add', path: '/__proto__/polluted', value: 1 }], rejected],
    ['labels by a list', VICTIM, [{ op: 'replace', path: '/metadata/labels', value: [] }], invalid(/labels/)],
    [
      '10 001 operations',
      VICTIM,
      Array.from({ length: 10_001 }, () => ({ op: 'test', path: '/kind', value: 'ConfigMap' })),
      {
        status: 413,
        reason: 'RequestEntityTooLarge',
        message: /allowed maximum operations in a JSON patch is 10000, got 10001/,
      },
    ],
    ['copies that double each time', `${GADGETS}/gadget`, doubling, rejected],
    ['moves that nest ever deeper', `${GADGETS}/gadget`, deepening, rejected],
    ['copies into the copied', VICTIM, copies(3, '/data/key2'), invalid(/of type string/)],
  ])('JSON patch: %s', (_name, path, patch, expected) => refused('PATCH', path, patch, JSON_PATCH, expected));

  it.each<[string, string, unknown, string, Refusal]>([
    ['a list', VICTIM, [], MERGE_PATCH, bad(/./)],
    ['null', VICTIM, 'null', MERGE_PATCH, bad(/./)],
    ['a number', VICTIM, '5', STRATEGIC_PATCH, bad(/./)],
    ['labels by text', VICTIM, { metadata: { labels: 'x' } }, STRATEGIC_PATCH, invalid(/labels/)],
    ['an unknown directive', VICTIM, { $patch: 'explode' }, STRATEGIC_PATCH, bad(/unknown patch type|explode/i)],
    ['a directive of the wrong type', VICTIM, { $patch: {} }, STRATEGIC_PATCH, bad(/unknown patch type/i)],
    ['retained keys that are no list', VICTIM, { data: { $retainKeys: 5 } }, STRATEGIC_PATCH, bad(/retainKeys/)],
    [
      'an order that is no list',
      `${ROOT}/pods/pod`,
      { spec: { '$setElementOrder/containers': 'x' } },
      STRATEGIC_PATCH,
      bad(/setElementOrder/),
    ],
    [
      'an order of items without keys',
      `${ROOT}/pods/pod`,
      { spec: { '$setElementOrder/containers': [{}], containers: [{ name: 'main', image: 'x' }] } },
      STRATEGIC_PATCH,
      bad(/merge key/),
    ],
    [
      'a list item without its key',
      `${ROOT}/pods/pod`,
      { spec: { containers: [{ image: 'x' }] } },
      STRATEGIC_PATCH,
      bad(/does not contain declared merge key: name/),
    ],
    ['a list of lists', `${ROOT}/pods/pod`, { spec: { containers: [[]] } }, STRATEGIC_PATCH, invalid(/./)],
    ['everything deleted', VICTIM, { $patch: 'delete' }, STRATEGIC_PATCH, bad(/name must be provided/)],
    ['all metadata deleted', VICTIM, { metadata: null }, MERGE_PATCH, bad(/name must be provided/)],
    [
      'all metadata replaced',
      VICTIM,
      { metadata: { $patch: 'replace' } },
      STRATEGIC_PATCH,
      bad(/name must be provided/),
    ],
  ])('merge patches: %s', (_name, path, patch, contentType, expected) =>
    refused('PATCH', path, patch, contentType, expected),
  );
});

describe('objects that cannot be applied', () => {
  const apply = `${VICTIM}?fieldManager=me`;
  it.each<[string, string, unknown, Refusal]>([
    ['nothing', apply, '', bad(/./)],
    ['a list', apply, '[]', bad(/./)],
    ['without a manager', VICTIM, { apiVersion: 'v1', kind: 'ConfigMap' }, invalid(/fieldManager: Required value/)],
    [
      'with managed fields of its own',
      apply,
      { apiVersion: 'v1', kind: 'ConfigMap', metadata: { managedFields: [{ manager: 'x' }] } },
      bad(/managedFields must be nil/),
    ],
    ['with another name', apply, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'other' } }, bad(/other/)],
    [
      'with two items of one key',
      `${GADGETS}/gadget?fieldManager=me`,
      { apiVersion: 'wild.example.com/v1', kind: 'Gadget', spec: { list: [{ key: 'a' }, { key: 'a' }] } },
      bad(/duplicate entries for key/),
    ],
    [
      'with an item without its key',
      `${GADGETS}/gadget?fieldManager=me`,
      { apiVersion: 'wild.example.com/v1', kind: 'Gadget', spec: { list: [{ value: 'a' }] } },
      bad(/key/),
    ],
    [
      'against another manager',
      apply,
      { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'victim' }, data: { key: 'mine' } },
      { status: 409, reason: 'Conflict', message: 'Apply failed with 1 conflict' },
    ],
  ])('%s', (_name, path, body, expected) => refused('PATCH', path, body, APPLY_PATCH, expected));
});

describe('delete options that are none', () => {
  it.each<[string, unknown, RegExp]>([
    ['a list', [], /./],
    ['of another kind', { kind: 'ConfigMap' }, /DeleteOptions/],
    ['a dry run that is text', { dryRun: 'All' }, /dryRun/],
    ['a dry run of nonsense', { dryRun: ['Some'] }, /dryRun/],
    ['preconditions that are text', { preconditions: 'x' }, /preconditions/],
    ['a precondition that is a number', { preconditions: { uid: 1 } }, /preconditions\.uid/],
    ['a grace period that is text', { gracePeriodSeconds: '1' }, /gracePeriodSeconds/],
    ['a grace period that is a fraction', { gracePeriodSeconds: 1.5 }, /gracePeriodSeconds/],
    ['a policy of nonsense', { propagationPolicy: 'Nuke' }, /propagationPolicy/],
    ['a policy that is an object', { propagationPolicy: {} }, /propagationPolicy/],
    ['two policies', { propagationPolicy: 'Orphan', orphanDependents: true }, /orphanDependents/],
  ])('%s', async (_name, body, message) => {
    for (const path of [VICTIM, `${ROOT}/configmaps`]) {
      const answer = await cluster.api.request('DELETE', path, { body });
      expect([400, 422]).toContain(answer.status);
      expect(answer.json).toMatchObject({ kind: 'Status', status: 'Failure' });
      expect(answer.json.message).toMatch(message);
    }
    await nothingChanged();
  });
  it('of an object that has changed meanwhile', () =>
    refused('DELETE', VICTIM, { preconditions: { resourceVersion: '1' } }, JSON_TYPE, {
      status: 409,
      reason: 'Conflict',
      message: 'the ResourceVersion in the precondition',
    }));
});

describe('bodies that are too large', () => {
  const large: Refusal = { status: 413, reason: 'RequestEntityTooLarge', message: 'limit is 3145728' };
  const body = JSON.stringify({ metadata: { name: 'x' }, data: { a: 'x'.repeat(3 * 1024 * 1024) } });

  it.each([
    ['POST', `${ROOT}/configmaps`, JSON_TYPE],
    ['PUT', VICTIM, JSON_TYPE],
    ['PATCH', VICTIM, MERGE_PATCH],
    ['DELETE', VICTIM, JSON_TYPE],
  ])('%s %s over HTTP/2', (method, path, contentType) => refused(method, path, body, contentType, large));

  it.each([
    ['announced', `Content-Length: ${body.length}\r\n\r\n${body}`],
    ['in chunks', `Transfer-Encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`],
  ])('over HTTP/1.1, %s', async (_name, rest) => {
    const { url, certificate, key } = cluster.godwit.access();
    const connection = await RawConnection.tls(url, { cert: certificate, key });
    await connection.write(`POST ${ROOT}/configmaps HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n${rest}`);
    expect(await connection.receive('limit is 3145728')).toMatch(/^HTTP\/1\.1 413 /);
    connection.destroy();
    await nothingChanged();
  });

  it('ends with a refusal that names the field where the kind has its own limit', async () => {
    const answer = await cluster.api.request('POST', `${ROOT}/configmaps`, {
      body: { metadata: { name: 'x' }, data: { a: 'x'.repeat(1024 * 1024 + 1) } },
    });
    expect(answer.expect(422).json.message).toMatch(/Too long: .*1048576/);
  });

  it('cannot be put together from patches', async () => {
    await cluster.create(GADGETS, { metadata: { name: 'growing' }, spec: { any: {} } });
    const piece = 'x'.repeat(1024 * 1024);
    let answer = await cluster.api.request('GET', `${GADGETS}/growing`);
    for (let part = 0; part < 5 && answer.status === 200; part++)
      answer = await cluster.api.request('PATCH', `${GADGETS}/growing`, {
        body: { spec: { any: { [`p${part}`]: piece } } },
        headers: { 'content-type': MERGE_PATCH },
      });
    expect(answer.expect(413).json).toMatchObject({ kind: 'Status', reason: 'RequestEntityTooLarge' });
    (await cluster.api.request('DELETE', `${GADGETS}/growing`)).expect(200);
  });
});

describe('paths and methods that lead nowhere', () => {
  const missing: Refusal = {
    status: 404,
    reason: 'NotFound',
    message: 'the server could not find the requested resource',
  };
  const notAllowed: Refusal = { status: 405, reason: 'MethodNotAllowed', message: /not (?:allow|supported)/ };
  it.each<[string, string, Refusal]>([
    ['GET', '/api/v1/namespaces/../secrets', bad(/dotted segments/)],
    ['GET', '/api/v1/namespaces/%2e%2e/secrets', bad(/encoded slashes, dots/)],
    ['GET', '/api/v1/namespaces/target%2fsecrets/configmaps', bad(/encoded slashes/)],
    ['GET', `${ROOT}/configmaps/a%00b`, bad(/control characters/)],
    ['GET', `${ROOT}/configmaps/%ff`, bad(/not percent-encoded correctly/)],
    ['GET', `${ROOT}/configmaps//victim`, bad(/empty or dotted segments/)],
    ['GET', '//api/v1/namespaces', bad(/empty or dotted segments/)],
    ['GET', '/api/v1/nothings', missing],
    ['GET', '/api/v9/pods', missing],
    ['GET', '/apis/nobody.example.com/v1/things', missing],
    ['GET', '/nowhere', missing],
    ['GET', `${ROOT}/nothings/x`, missing],
    ['GET', `${VICTIM}/nothing`, missing],
    ['GET', `${ROOT}/pods/pod/status/more`, missing],
    ['POST', `${ROOT}/pods/pod/log`, missing],
    ['GET', '/api/v1/namespaces/target/nodes', missing],
    ['GET', `/api/v1/configmaps/${'x'.repeat(10)}`, bad(/empty namespace/)],
    ['GET', `${ROOT}/configmaps/${'x'.repeat(5000)}`, { status: 404, reason: 'NotFound', message: 'not found' }],
    ['POST', VICTIM, notAllowed],
    ['PUT', `${ROOT}/configmaps`, notAllowed],
    ['PATCH', `${ROOT}/configmaps`, notAllowed],
    ['DELETE', '/api/v1/namespaces', notAllowed],
    ['POST', `${ROOT}/pods/pod/status`, notAllowed],
    ['PUT', `${ROOT}/pods/pod/eviction`, notAllowed],
    ['GET', '/apis/authorization.k8s.io/v1/subjectaccessreviews', notAllowed],
    ['OPTIONS', `${ROOT}/configmaps`, notAllowed],
    ['TRACE', VICTIM, notAllowed],
    ['deletecollection', `${ROOT}/configmaps`, notAllowed],
    ['watch', VICTIM, notAllowed],
    ['constructor', VICTIM, notAllowed],
    ['__proto__', VICTIM, notAllowed],
    ['POST', '/livez', notAllowed],
    ['DELETE', '/apis', notAllowed],
  ])('%s %s', (method, path, expected) => refused(method, path, undefined, '', expected));

  it('a URL of 10 000 characters is one like any other, a longer one is not', async () => {
    const selector = (length: number): string =>
      `/api/v1/namespaces?labelSelector=a%20in%20(${'b,'.repeat(length / 2)}c)`;
    (await cluster.api.request('GET', selector(10_000))).expect(200);
    expect((await cluster.api.request('GET', selector(40_000))).status).toBeGreaterThanOrEqual(400);
  });

  it.each([
    ['labelSelector=a%20in', 400],
    ['labelSelector=(((', 400],
    ['fieldSelector=spec.secret=x', 400],
    ['limit=-1', 400],
    ['limit=x', 400],
    ['continue=x', 400],
    ['resourceVersion=x', 400],
    ['resourceVersionMatch=Sometimes&resourceVersion=1', 422],
    ['watch=1&timeoutSeconds=x', 400],
    ['watch=1&resourceVersion=-1', 400],
    ['watch=1&sendInitialEvents=true', 422],
  ])('?%s', async (query, status) => {
    const answer = await cluster.api.request('GET', `${ROOT}/configmaps?${query}`);
    expect([400, 422]).toContain(answer.status);
    expect(answer.status).toBe(status);
    expect(answer.json).toMatchObject({ kind: 'Status', code: status });
  });
});
