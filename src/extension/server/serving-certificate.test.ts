import { X509Certificate } from 'node:crypto';
import { beforeEach, describe, expect, it } from 'vitest';
import type { KubeObject } from '../../api/meta.ts';
import { alreadyExists, ApiError, staleObject } from '../../api/status.ts';
import { testEnv } from '../../env/test.ts';
import type { Client } from '../../kube/client.ts';
import { servingCertificate, type ServingCertificate } from './serving-certificate.ts';

const DAY_MS = 86_400_000;
const SECRETS = { group: '', plural: 'secrets' };
const { signal } = new AbortController();

/** A server that keeps one Secret. */
class OneSecret {
  secret: KubeObject | undefined;
  writes = 0;

  async find(): Promise<KubeObject | undefined> {
    return structuredClone(this.secret);
  }

  async create(_resource: unknown, object: KubeObject): Promise<KubeObject> {
    if (this.secret) throw alreadyExists(SECRETS, 'certs');
    return this.#keep(object);
  }

  async update(_resource: unknown, object: KubeObject): Promise<KubeObject> {
    if (object.metadata.resourceVersion !== this.secret?.metadata.resourceVersion) throw staleObject(SECRETS, 'certs');
    return this.#keep(object);
  }

  #keep(object: KubeObject): KubeObject {
    this.secret = { ...object, metadata: { ...object.metadata, resourceVersion: String(++this.writes) } };
    return this.secret;
  }
}

let env: ReturnType<typeof testEnv>;
let server: OneSecret;

beforeEach(() => {
  env = testEnv();
  server = new OneSecret();
});

function current(hosts: readonly string[] = ['virt-api.kubevirt.svc', '127.0.0.1']): Promise<ServingCertificate> {
  return servingCertificate({ env, client: server as unknown as Client, namespace: 'kubevirt', hosts }, signal);
}

function isTrusted({ certificatePem, authoritiesPem }: ServingCertificate): boolean {
  const authorities = authoritiesPem.split(/(?<=-----END CERTIFICATE-----\n)/).filter((pem) => pem.trim() !== '');
  const leaf = new X509Certificate(certificatePem);
  return authorities.some((pem) => leaf.verify(new X509Certificate(pem).publicKey));
}

describe('the certificate', () => {
  it('is made once, and is the same for all', async () => {
    const [first, second] = await Promise.all([current(), current()]);
    expect(second).toEqual(first);
    expect(await current()).toEqual(first);
    expect(server.writes).toBe(1);
    expect(isTrusted(first)).toBe(true);
    expect(new X509Certificate(first.certificatePem).checkIP('127.0.0.1')).toBe('127.0.0.1');
  });

  it('is made anew for other hosts, and of the same authority', async () => {
    const first = await current();
    const second = await current(['virt-api.kubevirt.svc', '::1']);
    expect(second.certificatePem).not.toBe(first.certificatePem);
    expect(second.authoritiesPem).toBe(first.authoritiesPem);
  });

  it('is renewed long before it ends', async () => {
    const first = await current();
    env.clock.advance(244 * DAY_MS);
    expect((await current()).certificatePem).toBe(first.certificatePem);
    env.clock.advance(2 * DAY_MS);
    const second = await current();
    expect(second.certificatePem).not.toBe(first.certificatePem);
    expect(second.authoritiesPem).toBe(first.authoritiesPem);
  });

  it('is trusted through a change of authority, by those who know the old one too', async () => {
    const first = await current();
    env.clock.advance(9 * 365 * DAY_MS);
    const second = await current();
    expect(second.authoritiesPem).toContain(first.authoritiesPem);
    expect(second.authoritiesPem).not.toBe(first.authoritiesPem);
    expect(isTrusted(second)).toBe(true);
    expect(isTrusted({ ...first, authoritiesPem: second.authoritiesPem })).toBe(true);
  });

  it('replaces what is none', async () => {
    server.secret = {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { resourceVersion: '7' },
      data: { 'tls.crt': 'eA==' },
    };
    expect(isTrusted(await current())).toBe(true);
  });

  it('is not made where nobody may', async () => {
    server.find = () => Promise.reject(new ApiError(403, 'Forbidden', 'no'));
    await expect(current()).rejects.toThrow('no');
  });
});
