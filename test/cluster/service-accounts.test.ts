import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { KubeObject } from '../../src/api/meta.ts';
import type { ConfigMap, Secret, ServiceAccount } from '../../src/cluster/service-accounts/objects.ts';
import type { Resource } from '../../src/kube/resource.ts';
import { ClusterUnderTest, resource } from '../support/cluster-under-test.ts';
import { eventually } from '../support/eventually.ts';
import { Room } from '../support/room.ts';

/** What namespaces and accounts are given, as seen through the API; kube-controller-manager gives the same. */

const serviceAccounts = resource<ServiceAccount>('serviceaccounts', 'ServiceAccount');
const configMaps = resource<ConfigMap>('configmaps', 'ConfigMap');
const secrets = resource<Secret>('secrets', 'Secret');
const reviews = resource<Review>('tokenreviews', 'TokenReview', 'authentication.k8s.io', false);

interface Review extends KubeObject {
  spec: { readonly token: string };
  status?: { readonly authenticated?: boolean; readonly user?: { readonly username?: string } };
}

let cluster: ClusterUnderTest;
const rooms: Room[] = [];

beforeAll(async () => {
  cluster = await ClusterUnderTest.start();
});
afterAll(async () => {
  for (const room of rooms) await room.clear();
  await cluster.stop();
});

async function makeRoom(): Promise<string> {
  const room = await Room.make(cluster);
  rooms.push(room);
  return room.namespace;
}

const there = <T extends KubeObject>(kind: Resource<T>, namespace: string, name: string): Promise<T> =>
  eventually(() => cluster.client.get(kind, namespace, name, cluster.signal));
const gone = (kind: Resource, namespace: string, name: string): Promise<void> =>
  eventually(() =>
    expect(cluster.client.get(kind, namespace, name, cluster.signal)).rejects.toMatchObject({ code: 404 }),
  );
const remove = (kind: Resource, namespace: string, name: string) =>
  cluster.client.delete(kind, namespace, name, cluster.signal);

async function account(namespace: string, name: string): Promise<void> {
  const object = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name, namespace } };
  await cluster.client.create(serviceAccounts, object, cluster.signal);
}

async function tokenSecret(namespace: string, name: string, accountName: string): Promise<void> {
  const annotations = { 'kubernetes.io/service-account.name': accountName };
  const metadata = { name, namespace, annotations };
  const object = { apiVersion: 'v1', kind: 'Secret', metadata, type: 'kubernetes.io/service-account-token' };
  await cluster.client.create(secrets, object, cluster.signal);
}

function filled(namespace: string, name: string): Promise<Secret> {
  return eventually(async () => {
    const secret = await cluster.client.get(secrets, namespace, name, cluster.signal);
    expect(Object.keys(secret.data ?? {}).sort()).toEqual(['ca.crt', 'namespace', 'token']);
    return secret;
  });
}

const text = ({ data }: Secret, key: string): string => Buffer.from(data?.[key] ?? '', 'base64').toString('utf8');

async function whoIs(token: string): Promise<string | undefined> {
  const review = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', metadata: {}, spec: { token } };
  const { status } = await cluster.client.create<Review>(reviews, review, cluster.signal);
  return status?.authenticated ? status.user?.username : undefined;
}

describe('a namespace', () => {
  it('has a default account, which comes back', async () => {
    const namespace = await makeRoom();
    const { metadata } = await there(serviceAccounts, namespace, 'default');
    await remove(serviceAccounts, namespace, 'default');
    await eventually(async () => {
      const again = await cluster.client.get(serviceAccounts, namespace, 'default', cluster.signal);
      expect(again.metadata.uid).not.toBe(metadata.uid);
    });
  });

  it('says how to know the server, whatever others write there', async () => {
    const namespace = await makeRoom();
    const { data } = await there(configMaps, namespace, 'kube-root-ca.crt');
    expect(data?.['ca.crt']).toMatch(/^-----BEGIN CERTIFICATE-----/);
    const forged = { type: 'merge', body: { data: { 'ca.crt': 'forged' } } } as const;
    await cluster.client.patch(configMaps, namespace, 'kube-root-ca.crt', forged, cluster.signal);
    await eventually(async () => expect((await there(configMaps, namespace, 'kube-root-ca.crt')).data).toEqual(data));
    await remove(configMaps, namespace, 'kube-root-ca.crt');
    expect((await there(configMaps, namespace, 'kube-root-ca.crt')).data).toEqual(data);
  });
});

describe('a secret for a token', () => {
  it('is filled with one that works until the secret goes', async () => {
    const namespace = await makeRoom();
    await account(namespace, 'robot');
    await tokenSecret(namespace, 'token', 'robot');
    const secret = await filled(namespace, 'token');
    const { metadata } = await there(serviceAccounts, namespace, 'robot');
    expect(secret.metadata.annotations?.['kubernetes.io/service-account.uid']).toBe(metadata.uid);
    expect(text(secret, 'namespace')).toBe(namespace);
    expect(text(secret, 'ca.crt')).toBe((await there(configMaps, namespace, 'kube-root-ca.crt')).data?.['ca.crt']);
    const user = `system:serviceaccount:${namespace}:robot`;
    expect(await whoIs(text(secret, 'token'))).toBe(user);
    await remove(secrets, namespace, 'token');
    await eventually(async () => expect(await whoIs(text(secret, 'token'))).toBeUndefined());
  });

  it('goes with its account, and where there is none', async () => {
    const namespace = await makeRoom();
    await account(namespace, 'robot');
    await tokenSecret(namespace, 'token', 'robot');
    await tokenSecret(namespace, 'stray', 'nobody');
    await gone(secrets, namespace, 'stray');
    const token = text(await filled(namespace, 'token'), 'token');
    await remove(serviceAccounts, namespace, 'robot');
    await gone(secrets, namespace, 'token');
    expect(await whoIs(token)).toBeUndefined();
  });
});
