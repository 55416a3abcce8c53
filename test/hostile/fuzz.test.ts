import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import type { ResourceDefinition } from '../../src/api/resource.ts';
import type { ApiResponse } from '../../src/apiserver/http/message.ts';
import { silentLogger } from '../../src/env/test.ts';
import type { Anything } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { InProcessApi } from '../support/in-process.ts';
import { IS_FULL } from '../support/sample.ts';
import { type WildRequest, wildRequest } from './generators.ts';
import { manifests } from './manifests.ts';

/** Generated requests into the whole server, sockets and disks excepted: every answer is well formed, none is a failure. */

const ROUNDS = IS_FULL ? 200 : 5;
const REQUESTS_PER_ROUND = 250;

/** Kinds that give the server orders of their own: what it then does is somebody else's fault. */
const MASTERS = ['apiservices', 'mutatingwebhookconfigurations', 'validatingwebhookconfigurations'];
/** Answers of 500 and more that are Kubernetes' own. */
const EXPECTED_FAILURES = /ResourceVersionTooLarge|This pod has more than one PodDisruptionBudget/;

// oxlint-disable-next-line no-control-regex -- exactly those are looked for
const CONTROL_CHARACTERS = /[\u0000-\u0008\u000a-\u001f\u007f]/;

const probe = { metadata: { name: 'probe', labels: { a: 'b' } }, data: { key: 'value' } };

let api: InProcessApi;
/** What the server itself called unexpected. */
let failures: string[] = [];

beforeAll(async () => {
  const error = (message: string, fields?: object): void => void failures.push(`${message} ${JSON.stringify(fields)}`);
  api = await InProcessApi.start({ env: { log: { ...silentLogger, error } } });
  for (const name of ['wild', 'probe'])
    (await api.request('POST', '/api/v1/namespaces', { body: { metadata: { name } } })).expect(201);
  (await api.request('POST', '/api/v1/namespaces/probe/configmaps', { body: probe })).expect(201);
  await populate();
  await eventually(() => expect(definitions().some(({ plural }) => plural === 'gadgets')).toBe(true));
});
afterAll(() => api.stop());

function definitions(): ResourceDefinition[] {
  return api.core.registry.definitions().filter(({ plural }) => !MASTERS.includes(plural));
}

/** Where requests have made quotas and limits that stand in the way of a good object, or have deleted its definition. */
const OBSTRUCTED = [403, 405, 422];

/** Makes the objects that requests will name, where they are gone. All of them are good. */
async function populate(obstructed: readonly number[] = []): Promise<void> {
  for (const { group, version, plural, namespaced, verbs, storage } of definitions()) {
    // Another face of the same objects has them already.
    if ((verbs && !verbs.includes('get')) || storage) continue;
    const root = group === '' ? `/api/${version}` : `/apis/${group}/${version}`;
    const path = `${root}/${namespaced ? 'namespaces/wild/' : ''}${plural}`;
    for (const name of plural === 'customresourcedefinitions' ? ['gadgets.wild.example.com'] : ['one', 'two']) {
      const body = { metadata: { name, labels: { app: 'web' } }, ...manifests.get(`${group}/${plural}`) };
      const { status, text } = await api.request('POST', path, { body });
      if (![201, 409, ...obstructed].includes(status)) throw new Error(`${path}: ${status} ${text}`);
    }
  }
}

async function send(request: WildRequest): Promise<{ status: number; text: string; response: ApiResponse }> {
  const gone = new AbortController();
  const response = await api.core.handle({
    method: request.method,
    path: request.path,
    query: new URLSearchParams(request.query),
    headers: request.headers,
    body: async () => request.body,
    certificate: { commonName: 'admin', organizations: ['system:masters'], fingerprint: 'AA' },
    remoteAddress: '192.0.2.1',
    signal: gone.signal,
  });
  const { status, body } = response;
  if (typeof body === 'string') return { status, text: body, response };
  if (body instanceof Uint8Array) return { status, text: Buffer.from(body).toString(), response };
  // A watch may have nothing to say: whatever it has said by now will do.
  const chunks = body[Symbol.asyncIterator]();
  setImmediate(() => gone.abort());
  const first = await chunks.next();
  await chunks.return?.();
  return { status, text: first.done === true ? '' : String(first.value), response };
}

/** What is wrong with an answer; undefined where nothing is. */
function flawOf(request: WildRequest, status: number, text: string, response: ApiResponse): string | undefined {
  const odd = Object.values(response.headers)
    .flat()
    .find((value) => CONTROL_CHARACTERS.test(value));
  if (odd !== undefined) return `a header with control characters: ${odd}`;
  if (status >= 500 && !EXPECTED_FAILURES.test(text)) return `status ${status}: ${text}`;
  if (status >= 500) return undefined;
  if (status >= 400) return isStatus(status, parse(text)) ? undefined : `no Status: ${text}`;
  const isWhole =
    response.headers['content-type'] === 'application/json' && text !== '' && !request.query.includes('watch');
  return isWhole && typeof JSON.parse(text).kind !== 'string' ? `no object: ${text}` : undefined;
}

function isStatus(code: number, body: Anything): boolean {
  const { message, reason, ...rest } = body;
  expect(rest).toMatchObject({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', code });
  return typeof message === 'string' && message !== '' && typeof reason === 'string' && reason !== '';
}

async function check(request: WildRequest): Promise<void> {
  failures = [];
  const { status, text, response } = await send(request);
  const flaw = flawOf(request, status, text, response);
  if (flaw === undefined) return;
  const { method, path, query, body } = request;
  throw new Error(`${method} ${path}?${query}\n${Buffer.from(body).toString()}\n${flaw}\n${failures.join('\n')}`);
}

describe('generated selectors', () => {
  const grammar = fc.stringMatching(/^[ab!=()<>, in\\.'"%]{0,12}$/);
  const texts = fc.oneof(grammar, fc.string(), fc.string({ unit: 'binary' }));

  it('are taken or refused, never a failure', () =>
    fc.assert(
      fc.asyncProperty(
        fc.constantFrom('labelSelector', 'fieldSelector'),
        texts,
        fc.boolean(),
        async (kind, text, isWatch) => {
          const query = new URLSearchParams({ [kind]: text, ...(isWatch ? { watch: '1' } : {}) }).toString();
          await check({
            method: 'GET',
            path: '/api/v1/namespaces/wild/pods',
            query,
            headers: {},
            body: new Uint8Array(),
          });
        },
      ),
      { numRuns: IS_FULL ? 20_000 : 1000 },
    ));
});

describe('generated continue tokens', () => {
  it('are taken or refused, whichever letter of a good one is changed', async () => {
    const path = '/apis/rbac.authorization.k8s.io/v1/clusterroles';
    const good: string = (await api.request('GET', `${path}?limit=3`)).json.metadata.continue;
    const bent = fc
      .tuple(fc.nat({ max: good.length - 1 }), fc.base64String({ minLength: 0, maxLength: 4 }))
      .map(([index, letters]) => good.slice(0, index) + letters + good.slice(index + 1));
    const forged = fc
      .record({
        v: fc.constantFrom('godwit.dev/v1', 'meta.k8s.io/v1', 1, null),
        rv: fc.oneof(fc.double(), fc.maxSafeInteger(), fc.string()),
        start: fc.oneof(fc.string(), fc.anything()),
      })
      .map((token) => Buffer.from(JSON.stringify(token) ?? '').toString('base64url'));
    await fc.assert(
      fc.asyncProperty(fc.oneof(bent, forged, fc.string()), async (token) => {
        const query = new URLSearchParams({ limit: '2', continue: token }).toString();
        await check({ method: 'GET', path, query, headers: {}, body: new Uint8Array() });
      }),
      { numRuns: IS_FULL ? 10_000 : 500 },
    );
  });
});

describe('generated requests', () => {
  it('are all answered, and none with a failure of the server', async () => {
    const { seed = 1 } = fc.readConfigureGlobal();
    for (let round = 0; round < ROUNDS; round++) {
      await fc.assert(fc.asyncProperty(wildRequest(definitions()), check), {
        numRuns: REQUESTS_PER_ROUND,
        seed: seed * 1000 + round,
      });
      await populate(OBSTRUCTED);
    }
  }, 1_800_000);

  it('that broke it once do so no more: a scale without a spec', () =>
    check({
      method: 'PATCH',
      path: '/apis/wild.example.com/v1/namespaces/wild/gadgets/one/scale',
      query: '',
      headers: { 'content-type': 'application/strategic-merge-patch+json' },
      body: Buffer.from('{"$retainKeys":[]}'),
    }));

  it('leave everything readable in every form', async () => {
    const forms = ['Table', 'PartialObjectMetadata'].map((as) => `application/json;as=${as};v=v1;g=meta.k8s.io`);
    for (const { group, version, plural, verbs } of api.core.registry.definitions()) {
      if (verbs && !verbs.includes('list')) continue;
      const path = `${group === '' ? '/api' : `/apis/${group}`}/${version}/${plural}`;
      for (const accept of ['application/json', 'application/yaml', ...forms])
        await check({ method: 'GET', path, query: '', headers: { accept }, body: new Uint8Array() });
    }
  });

  it('leave alone what they do not name', async () => {
    const { metadata, data } = (await api.request('GET', '/api/v1/namespaces/probe/configmaps/probe')).expect(200).json;
    expect({ metadata: { name: metadata.name, labels: metadata.labels }, data }).toEqual(probe);
    expect(Object.keys(Object.prototype)).toEqual([]);
  });
});
