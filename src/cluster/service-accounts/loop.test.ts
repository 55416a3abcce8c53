import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../../../test/support/eventually.ts';
import type { JsonObject, KubeObject } from '../../api/meta.ts';
import type { Resource } from '../../kube/resource.ts';
import { LoopScene } from '../loops.fixture.ts';
import { configMaps, namespaces, secrets, serviceAccounts } from '../resources.ts';
import { rootCertificateLoop, serviceAccountLoop, tokensLoop } from './loop.ts';
import type { Secret } from './objects.ts';

const scene = new LoopScene(serviceAccountLoop, rootCertificateLoop, tokensLoop);
let rooms = 0;
beforeAll(() => scene.start());
afterAll(() => scene.stop());

async function room(): Promise<string> {
  const name = `room-${++rooms}`;
  await scene.namespace(name);
  return name;
}

const decoded = (secret: Secret, key: string) => Buffer.from(secret.data?.[key] ?? '', 'base64').toString('utf8');
const remove = (resource: Resource, namespace: string, name: string) =>
  scene.client.delete(resource, namespace, name, scene.signal);
const change = (resource: Resource, namespace: string, name: string, body: JsonObject) =>
  scene.client.patch(resource, namespace, name, { type: 'merge', body }, scene.signal);
const there = <T extends KubeObject>(resource: Resource<T>, namespace: string, name: string) =>
  scene.until(() => scene.get(resource, namespace, name));
const gone = (resource: Resource, namespace: string, name: string) =>
  scene.until(() => expect(scene.get(resource, namespace, name)).rejects.toMatchObject({ code: 404 }));

/** Tokens are signed by another thread, in real time, which a busy machine is short of. */
const filled = (namespace: string, name: string): Promise<Secret> =>
  eventually(() =>
    scene.until(async () => {
      const found = await scene.get(secrets, namespace, name);
      expect(found.data?.['token']).toBeDefined();
      return found;
    }),
  );

async function tokenSecret(namespace: string, name: string, account: string, annotations = {}): Promise<void> {
  const all = { 'kubernetes.io/service-account.name': account, ...annotations };
  const type = 'kubernetes.io/service-account-token';
  await scene.create(secrets, { metadata: { name, namespace, annotations: all }, type });
}

describe('the default account', () => {
  it('is in every namespace, also those that were there before', async () => {
    const namespace = await room();
    await there(serviceAccounts, namespace, 'default');
    for (const each of ['default', 'kube-system', 'kube-public', 'kube-node-lease'])
      await there(serviceAccounts, each, 'default');
  });

  it('comes back, but not in a namespace that ends', async () => {
    const [namespace, ending] = [await room(), await room()];
    const { metadata } = await there(serviceAccounts, namespace, 'default');
    await there(serviceAccounts, ending, 'default');
    await remove(serviceAccounts, namespace, 'default');
    const again = await there(serviceAccounts, namespace, 'default');
    expect(again.metadata.uid).not.toBe(metadata.uid);
    await remove(namespaces, '', ending);
    await scene.settle();
    await remove(serviceAccounts, ending, 'default');
    await remove(configMaps, ending, 'kube-root-ca.crt');
    await scene.settle();
    await gone(serviceAccounts, ending, 'default');
    await gone(configMaps, ending, 'kube-root-ca.crt');
  });

  it('is found missing after a restart', async () => {
    await scene.stopLoops();
    const namespace = await room();
    await scene.startLoops();
    await there(serviceAccounts, namespace, 'default');
  });
});

describe('the root certificate', () => {
  it('is told in every namespace, and mended', async () => {
    const namespace = await room();
    const { data, metadata } = await there(configMaps, namespace, 'kube-root-ca.crt');
    const authority = await scene.get(configMaps, 'kube-system', 'extension-apiserver-authentication');
    expect(data).toEqual({ 'ca.crt': authority.data?.['client-ca-file'] });
    expect(metadata.annotations?.['kubernetes.io/description']).toMatch(/^Contains a CA bundle/);
    await change(configMaps, namespace, 'kube-root-ca.crt', { data: { 'ca.crt': 'forged', more: 'x' } });
    const check = async () => expect((await scene.get(configMaps, namespace, 'kube-root-ca.crt')).data).toEqual(data);
    await scene.until(check);
    await remove(configMaps, namespace, 'kube-root-ca.crt');
    await scene.until(check);
  });

  it('is written once', async () => {
    const namespace = await room();
    await there(configMaps, namespace, 'kube-root-ca.crt');
    scene.writes.length = 0;
    await change(configMaps, namespace, 'kube-root-ca.crt', { metadata: { labels: { a: 'b' } } });
    await change(namespaces, '', namespace, { metadata: { labels: { a: 'b' } } });
    await scene.settle();
    expect(scene.writes).toEqual([]);
  });
});

describe('secrets for tokens', () => {
  it('are filled', async () => {
    const namespace = await room();
    const account = await there(serviceAccounts, namespace, 'default');
    await tokenSecret(namespace, 's', 'default');
    const secret = await filled(namespace, 's');
    expect(secret.metadata.annotations?.['kubernetes.io/service-account.uid']).toBe(account.metadata.uid);
    expect(decoded(secret, 'namespace')).toBe(namespace);
    expect(decoded(secret, 'ca.crt')).toMatch(/^-----BEGIN CERTIFICATE-----/);
    const [, payload = ''] = decoded(secret, 'token').split('.');
    const claims = JSON.parse(Buffer.from(payload, 'base64url').toString('utf8')) as JsonObject;
    expect(claims).toMatchObject({
      sub: `system:serviceaccount:${namespace}:default`,
      'kubernetes.io': { secret: { name: 's', uid: secret.metadata.uid } },
    });
    await change(secrets, namespace, 's', { data: { namespace: null } });
    await scene.until(async () =>
      expect(decoded(await scene.get(secrets, namespace, 's'), 'namespace')).toBe(namespace),
    );
    expect((await scene.get(secrets, namespace, 's')).data?.['token']).toBe(secret.data?.['token']);
  });

  it('go with their account, and without one', async () => {
    const namespace = await room();
    const account = { metadata: { name: 'robot', namespace } };
    await scene.create(serviceAccounts, account);
    await tokenSecret(namespace, 'kept', 'robot');
    await tokenSecret(namespace, 'lost', 'nobody');
    await tokenSecret(namespace, 'former', 'robot', { 'kubernetes.io/service-account.uid': 'of-another-life' });
    await gone(secrets, namespace, 'lost');
    await gone(secrets, namespace, 'former');
    await filled(namespace, 'kept');
    await remove(serviceAccounts, namespace, 'robot');
    await gone(secrets, namespace, 'kept');
  });

  it('are not deleted because the cache has not heard of their account', async () => {
    const namespace = await room();
    await there(serviceAccounts, namespace, 'default');
    scene.hold('serviceaccounts');
    await scene.create(serviceAccounts, { metadata: { name: 'new', namespace } });
    await tokenSecret(namespace, 's', 'new');
    await filled(namespace, 's');
    await scene.release('serviceaccounts');
  });

  it('leave their account when they are deleted', async () => {
    const namespace = await room();
    await scene.create<KubeObject>(serviceAccounts, {
      metadata: { name: 'robot', namespace },
      secrets: [{ name: 's' }, { name: 'other' }],
    });
    await tokenSecret(namespace, 's', 'robot');
    await filled(namespace, 's');
    await remove(secrets, namespace, 's');
    await scene.until(async () =>
      expect((await scene.get(serviceAccounts, namespace, 'robot')).secrets).toEqual([{ name: 'other' }]),
    );
  });

  it('are none of other types', async () => {
    const namespace = await room();
    const metadata = { name: 's', namespace, annotations: { 'kubernetes.io/service-account.name': 'default' } };
    await scene.create(secrets, { metadata, type: 'Opaque' });
    await scene.settle();
    expect((await scene.get(secrets, namespace, 's')).data).toBeUndefined();
  });
});
