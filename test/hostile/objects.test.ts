import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { manifests } from './manifests.ts';
import {
  APPLY_PATCH,
  bad,
  GADGETS,
  invalid,
  JSON_TYPE,
  MERGE_PATCH,
  type Refusal,
  ROOT,
  VICTIM,
  Victim,
} from './victim.ts';

/** Objects that no kind has: each is refused by the field that is wrong, and nothing else happens. */

let victim: Victim;
beforeAll(async () => {
  victim = await Victim.start();
});
afterAll(() => victim.close());

const podSpec = manifests.get('/pods')?.['spec'] as object;

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
    victim.refuses('POST', `${ROOT}/configmaps`, body, JSON_TYPE, bad(message)),
  );
  it.each(cases)('%s: refused on PUT of a built-in kind', (_name, body, message) =>
    victim.refuses('PUT', VICTIM, body, JSON_TYPE, bad(message)),
  );
  it.each(cases)('%s: refused on POST of a custom kind', (_name, body, message) =>
    victim.refuses('POST', GADGETS, body, JSON_TYPE, bad(message)),
  );
  it.each(cases)('%s: refused on PUT of a custom kind', (_name, body, message) =>
    victim.refuses('PUT', `${GADGETS}/gadget`, body, JSON_TYPE, bad(message)),
  );
  it.each(cases.filter(([name]) => !/kind|apiVersion|metadata/.test(name)))(
    '%s: refused as a patch',
    (_name, body, message) => victim.refuses('PATCH', VICTIM, body, MERGE_PATCH, invalid(message)),
  );
  // What is applied has to say what it is, before anything else is looked at.
  const typed = { apiVersion: 'v1', kind: 'ConfigMap' };
  it.each(cases)('%s: refused as an applied object', (_name, body, message) =>
    victim.refuses(
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
    victim.refuses('POST', `${ROOT}/${plural}`, { metadata: { name: 'x' }, ...body }, JSON_TYPE, bad(message)),
  );

  it('a null where an owner should be counts as one without a name', () =>
    victim.refuses(
      'POST',
      `${ROOT}/configmaps`,
      { metadata: { name: 'x', ownerReferences: [null] } },
      JSON_TYPE,
      invalid(/metadata.ownerReferences.*must not be empty/),
    ));

  it('says nothing of what a secret holds', async () => {
    for (const data of [{ a: 'hunter2!' }, { a: ['hunter2'] }, 'hunter2', { hunter2: 1 }])
      expect(
        (await victim.cluster.api.request('POST', `${ROOT}/secrets`, { body: { metadata: { name: 'x' }, data } }))
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
    victim.refuses('POST', `${ROOT}/configmaps`, { metadata: { name } }, JSON_TYPE, invalid(message)),
  );

  it.each<[string, string, RegExp]>([
    ['dots', '..', /may not be '\.\.'/],
    ['with a slash', 'a/b', /may not contain '\/'/],
    ['with a percent sign', 'a%2fb', /may not contain '%'/],
    ['with a NUL', 'a\u0000', /metadata.name/],
    ['a million letters', 'a'.repeat(1_000_000), /metadata.name/],
  ])('of a role, which may have almost any: %s', (_name, name, message) =>
    victim.refuses(
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
    const answer = await victim.cluster.api.request('POST', `${ROOT}/configmaps`, { body });
    expect([400, 422]).toContain(answer.status);
    expect(answer.json.message).toMatch(message);
    await victim.isUnchanged();
  });
  it('another name than the path', () =>
    victim.refuses(
      'PUT',
      VICTIM,
      { metadata: { name: 'other' } },
      JSON_TYPE,
      bad('the name of the object (other) does not match the name on the URL (victim)'),
    ));
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
    victim.refuses(method, strict(path), body, JSON_TYPE, bad(message)),
  );

  it('are told of in warnings otherwise, a hundred at most, in headers that arrive', async () => {
    const fields = Array.from({ length: 100_000 }, (_, index) => [`\u4e2d${index}`, 0] as const);
    const answer = await victim.cluster.api.request('POST', `${ROOT}/configmaps?dryRun=All`, {
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
      await victim.cluster.api.request('POST', `${GADGETS}?dryRun=All`, {
        body: { metadata: { name: 'x' }, spec: { any } },
      })
    ).expect(201).json;
    expect(JSON.stringify(spec.any)).toBe(JSON.stringify(any));
  });
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
  ])('%s %s %j', (method, path, body, expected) => victim.refuses(method, path, body, JSON_TYPE, expected));
});
