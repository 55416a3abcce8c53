import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bad, type Refusal, ROOT, VICTIM, Victim } from './victim.ts';

/** Requests for what is not there: each is refused, and nothing else happens. */

let victim: Victim;
beforeAll(async () => {
  victim = await Victim.start();
});
afterAll(() => victim.close());

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
    ['POST', `${ROOT}/pods/pod/exec`, missing],
    ['POST', `${ROOT}/pods/pod/log`, notAllowed],
    ['GET', `${ROOT}/pods/pod/log/more`, missing],
    ['GET', '/api/v1/nodes/nothing/proxy/x', { status: 404, reason: 'NotFound', message: 'nodes "nothing" not found' }],
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
  ])('%s %s', (method, path, expected) => victim.refuses(method, path, undefined, '', expected));

  it('a URL of 10 000 characters is one like any other, a longer one is not', async () => {
    const selector = (length: number): string =>
      `/api/v1/namespaces?labelSelector=a%20in%20(${'b,'.repeat(length / 2)}c)`;
    (await victim.cluster.api.request('GET', selector(10_000))).expect(200);
    expect((await victim.cluster.api.request('GET', selector(40_000))).status).toBeGreaterThanOrEqual(400);
  });

  it.each([
    ['labelSelector=a%20in', 400],
    ['labelSelector=(((', 400],
    ['fieldSelector=spec.secret=x', 400],
    ['limit=x', 400],
    ['continue=x', 400],
    ['resourceVersion=x', 400],
    ['resourceVersionMatch=Sometimes&resourceVersion=1', 422],
    ['watch=1&timeoutSeconds=x', 400],
    ['watch=1&resourceVersion=-1', 400],
    ['watch=1&sendInitialEvents=true', 422],
  ])('?%s', async (query, status) => {
    const answer = await victim.cluster.api.request('GET', `${ROOT}/configmaps?${query}`);
    expect([400, 422]).toContain(answer.status);
    expect(answer.status).toBe(status);
    expect(answer.json).toMatchObject({ kind: 'Status', code: status });
  });
});
