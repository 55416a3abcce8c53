import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Cluster, ROOT_CERTIFICATE } from '../support/cluster.ts';
import { ExtensionServer } from '../support/extension-server.ts';
import type { Kubectl } from '../support/kubectl.ts';
import { outerAddress } from '../support/network.ts';

/** A group that another server implements, registered as an APIService, as kubectl sees it. */

const ADDRESS = outerAddress('aggregation');
const GROUP_VERSION = 'stats.example.com/v1beta1';
const NAME = 'v1beta1.stats.example.com';

let cluster: Cluster;
let kubectl: Kubectl;
let namespace: string;
let server: ExtensionServer;

beforeAll(async () => {
  cluster = await Cluster.start();
  ({ kubectl, namespace } = await cluster.namespace('stats'));
  // Every extension server finds here whom to believe.
  const { data } = await cluster.get('/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication');
  server = await ExtensionServer.start(`stats.${namespace}.svc`, data['requestheader-client-ca-file']);
});
afterAll(async () => {
  await cluster.close();
});

const available = async (): Promise<string> =>
  (await kubectl.ok(['get', 'apiservice', NAME, '--no-headers'])).trim().split(/ {2,}/).slice(0, 3).join('|');

describe.runIf(ADDRESS !== undefined)('an aggregated group', () => {
  it('is not available before there is somebody to serve it', async () => {
    await kubectl.apply({
      apiVersion: 'apiregistration.k8s.io/v1',
      kind: 'APIService',
      metadata: { name: NAME },
      spec: {
        group: 'stats.example.com',
        version: 'v1beta1',
        service: { name: 'stats', namespace, port: 8443 },
        caBundle: Buffer.from(server.caPem).toString('base64'),
        groupPriorityMinimum: 100,
        versionPriority: 10,
      },
    });
    await expect.poll(available, { timeout: 20_000 }).toBe(`${NAME}|${namespace}/stats|False (ServiceNotFound)`);
    await kubectl.apply({
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'stats' },
      spec: { ports: [{ name: 'https', port: 8443, targetPort: server.port }] },
    });
    await expect.poll(available, { timeout: 20_000 }).toBe(`${NAME}|${namespace}/stats|False (EndpointsNotFound)`);
    expect(await kubectl.fails(['get', '--raw', `/apis/${GROUP_VERSION}/namespaces/${namespace}/readings`])).toBe(
      'Error from server (ServiceUnavailable): the server is currently unable to handle the request\n',
    );
  });

  it('is available once its server answers', async () => {
    const ports = [{ name: 'https', port: server.port }];
    await cluster.create(`/api/v1/namespaces/${namespace}/endpoints`, {
      apiVersion: 'v1',
      kind: 'Endpoints',
      metadata: { name: 'stats' },
      subsets: [{ addresses: [{ ip: ADDRESS }], ports }],
    });
    // Kubernetes looks at slices instead, where it has them.
    await cluster.api.request('POST', `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices`, {
      body: {
        apiVersion: 'discovery.k8s.io/v1',
        kind: 'EndpointSlice',
        metadata: { name: 'stats', labels: { 'kubernetes.io/service-name': 'stats' } },
        addressType: 'IPv4',
        endpoints: [{ addresses: [ADDRESS] }],
        ports,
      },
    });
    await kubectl.ok(['wait', '--for=condition=Available', `apiservice/${NAME}`, '--timeout=60s']);
    expect(await available()).toBe(`${NAME}|${namespace}/stats|True`);
    await expect
      .poll(() => kubectl.ok('api-resources --api-group=stats.example.com --no-headers'), { timeout: 20_000 })
      .toMatch(/^readings +rd +stats\.example\.com\/v1beta1 +true +Reading\n$/);
    expect((await kubectl.ok('api-versions')).split('\n')).toContain(GROUP_VERSION);
  });

  it('is read like any other', async () => {
    const [header = '', ...rows] = (await kubectl.ok('get readings')).trimEnd().split('\n');
    expect(header).toMatch(/^NAME +AGE$/);
    expect(rows.map((row) => row.split(' ')[0])).toEqual(['one', 'two']);
    expect(await kubectl.ok('get rd one -o jsonpath={.value}')).toBe('42');
    expect(await kubectl.json('get reading.v1beta1.stats.example.com two')).toMatchObject({
      apiVersion: GROUP_VERSION,
      kind: 'Reading',
      metadata: { name: 'two', namespace },
    });
    expect(await kubectl.fails('get reading none')).toBe(
      'Error from server (NotFound): readings.stats.example.com "none" not found\n',
    );
  });

  it('gets bodies and parameters as they were sent', async () => {
    server.seen.length = 0;
    const answer = await kubectl.ok(
      [
        'create',
        '--raw',
        `/apis/${GROUP_VERSION}/namespaces/${namespace}/readings/one/calibrate?offset=a%20b`,
        '-f',
        '-',
      ],
      { stdin: '{"by": 3}' },
    );
    expect(JSON.parse(answer)).toMatchObject({ kind: 'Reading', metadata: { name: 'one' } });
    expect(server.seen).toMatchObject([
      {
        method: 'POST',
        path: `/apis/${GROUP_VERSION}/namespaces/${namespace}/readings/one/calibrate`,
        body: '{"by": 3}',
      },
    ]);
  });

  it('learns from the front proxy who asks, and from nobody else', async () => {
    server.seen.length = 0;
    await kubectl.ok('get reading one --as=jane --as-group=system:masters --as-group=devs');
    const path = `/apis/${GROUP_VERSION}/namespaces/${namespace}/readings/one`;
    const headers = { 'x-remote-user': 'mallory', 'x-remote-group': 'evil', 'x-remote-extra-scopes': 'all' };
    (await cluster.api.request('GET', path, { headers })).expect(200);
    const [impersonated, plain] = server.seen;
    expect(impersonated?.headers['x-remote-user']).toBe('jane');
    expect(impersonated?.headers['x-remote-group']).toBe('system:masters, devs, system:authenticated');
    expect(impersonated?.headers['impersonate-user']).toBeUndefined();
    expect(plain?.headers['x-remote-user']).not.toBe('mallory');
    expect(plain?.headers['x-remote-group']).not.toContain('evil');
    expect(plain?.headers['x-remote-extra-scopes']).toBeUndefined();
    expect(plain?.headers.authorization).toBeUndefined();
    expect(plain?.proxy).toBe('front-proxy-client');
  });

  it('is guarded by the roles of this server', async () => {
    server.seen.length = 0;
    expect(await kubectl.fails('get readings --as=jane')).toBe(
      `Error from server (Forbidden): readings.stats.example.com is forbidden: User "jane" cannot list resource "readings" in API group "stats.example.com" in the namespace "${namespace}"\n`,
    );
    await kubectl.ok('create role reader --verb=get --resource=readings.stats.example.com');
    await kubectl.ok('create rolebinding jane --role=reader --user=jane');
    await expect
      .poll(() => kubectl.run(['get', 'reading', 'one', '--as=jane', '-o', 'name']).then(({ stdout }) => stdout), {
        timeout: 20_000,
      })
      .toBe('reading.stats.example.com/one\n');
    expect(server.seen.map(({ headers }) => headers['x-remote-user'])).toEqual(['jane']);
  });

  it('is missed when its server is gone, and nothing else is', async () => {
    await server.stop();
    await expect
      .poll(() => kubectl.run(['get', '--raw', `/apis/${GROUP_VERSION}/namespaces/${namespace}/readings`]), {
        timeout: 60_000,
      })
      .toMatchObject({
        code: 1,
        stderr: 'Error from server (ServiceUnavailable): the server is currently unable to handle the request\n',
      });
    await expect.poll(available, { timeout: 60_000 }).toBe(`${NAME}|${namespace}/stats|False (FailedDiscoveryCheck)`);
    expect(await kubectl.ok('get configmaps -o name')).toBe(`configmap/${ROOT_CERTIFICATE}\n`);
    expect(await kubectl.ok('api-resources -o name')).toContain('configmaps\n');

    expect(await kubectl.ok(['delete', 'apiservice', NAME])).toContain(`"${NAME}" deleted\n`);
    await expect
      .poll(async () => (await kubectl.ok('api-versions')).split('\n'), { timeout: 60_000 })
      .not.toContain(GROUP_VERSION);
    expect(await kubectl.fails(['get', '--raw', `/apis/${GROUP_VERSION}`])).toContain(
      'Error from server (NotFound): the server could not find the requested resource',
    );
  });
});
