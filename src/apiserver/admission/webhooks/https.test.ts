import { afterEach, describe, expect, it } from 'vitest';
import type { KubeObject } from '../../../api/meta.ts';
import { realEnv } from '../../../env/real.ts';
import { silentLogger } from '../../../env/test.ts';
import { AdmissionChain } from '../chain.ts';
import { attributesOf, configMaps, pods } from '../attributes.fixture.ts';
import { TestRegistry } from '../../registry/registry.fixture.ts';
import { mutatingConfiguration, validatingConfiguration, webhook } from './fake-transport.fixture.ts';
import { HttpsWebhookTransport } from './https-transport.ts';
import { MutatingWebhooks } from './mutating.ts';
import { ValidatingWebhooks } from './validating.ts';
import { answer, patchFields, type Respond, startWebhookServer, type WebhookServer } from './webhook-server.fixture.ts';

/** The whole way: plug-ins, service resolution, TLS with a private authority, a server that answers. */

const env = { ...realEnv('silent'), log: silentLogger };
const transport = new HttpsWebhookTransport(env.clock);
const servers: WebhookServer[] = [];

afterEach(async () => {
  transport.close();
  for (const server of servers.splice(0)) await server.close();
});

async function scene(respond: Respond, more: { failurePolicy?: string; timeoutSeconds?: number } = {}) {
  const server = await startWebhookServer(respond);
  servers.push(server);
  const registry = await TestRegistry.open();
  const metadata = { name: 'hook', namespace: 'ns' };
  const ports = [{ port: server.port }];
  await registry.put({ apiVersion: 'v1', kind: 'Service', metadata, spec: { ports: [{ port: 443 }] } });
  await registry.put({
    apiVersion: 'v1',
    kind: 'Endpoints',
    metadata,
    subsets: [{ addresses: [{ ip: '127.0.0.1' }], ports }],
  });
  const caBundle = Buffer.from(server.caPem).toString('base64');
  const hook = (path: string) =>
    webhook(path, { clientConfig: { service: { ...metadata, path: `/${path}` }, caBundle }, ...more });
  await registry.put(mutatingConfiguration('m', hook('mutate')));
  await registry.put(validatingConfiguration('v', hook('validate')));
  const options = { registry, env, transport };
  const chain = new AdmissionChain([
    new MutatingWebhooks({ ...options, afterMutation: () => undefined }),
    new ValidatingWebhooks(options),
  ]);
  return { server, chain };
}

const object = (): KubeObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'c', namespace: 'ns' },
  data: {},
});

describe('webhooks over HTTPS', () => {
  it('mutates, then denies, through a service', async () => {
    const { server, chain } = await scene((review, response, request) => {
      const isMutation = request.url?.startsWith('/mutate');
      if (isMutation) answer(review, response, patchFields([{ op: 'add', path: '/data/a', value: '1' }]));
      else answer(review, response, { allowed: false, status: { code: 429, message: 'not now' } });
    });
    const attributes = attributesOf(configMaps, object());
    await chain.mutate(attributes);
    expect(attributes.object?.['data']).toEqual({ a: '1' });
    await expect(chain.validate(attributes)).rejects.toMatchObject({
      code: 429,
      message: 'admission webhook "validate.example.com" denied the request: not now',
    });
    expect(server.reviews[1]?.request['object']).toMatchObject({ data: { a: '1' } });
    expect(server.paths).toEqual(['/mutate?timeout=10s', '/validate?timeout=10s']);
    // The same service, name and authority: the connection was kept.
    expect(server.connections).toBe(1);
  });

  it('fails closed after the timeout, in kube-apiserver’s words', async () => {
    const { chain } = await scene(() => undefined, { timeoutSeconds: 1 });
    const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'p', namespace: 'ns' } };
    await expect(chain.validate(attributesOf(pods, eviction, { subresource: 'eviction' }))).rejects.toMatchObject({
      code: 500,
      reason: 'InternalError',
      message:
        'Internal error occurred: failed calling webhook "validate.example.com": failed to call webhook: Post "https://hook.ns.svc:443/validate?timeout=1s": context deadline exceeded',
    });
  });

  it('fails open when nobody listens', async () => {
    const { server, chain } = await scene(() => undefined, { failurePolicy: 'Ignore' });
    await server.close();
    servers.pop();
    const attributes = attributesOf(configMaps, object());
    await chain.mutate(attributes);
    await chain.validate(attributes);
    expect(attributes.object).toEqual(object());
  });
});
