import { X509Certificate } from 'node:crypto';
import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { KubeConfig } from '@kubernetes/client-node';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { testEnv } from '../../env/test.ts';
import { DAY_MS } from '../../machinery/x509/authority.ts';
import { loadOrCreatePki } from './cluster-pki.ts';
import { kubeconfigFor } from './kubeconfig.ts';

let parent: string;
let directory: string;
beforeEach(async () => {
  parent = await mkdtemp(join(tmpdir(), 'pki-'));
  directory = join(parent, 'pki');
});
afterEach(() => rm(parent, { recursive: true }));

describe('loadOrCreatePki', () => {
  it('makes private files, and finds the same keys again', async () => {
    const env = testEnv();
    const first = await loadOrCreatePki(directory, env, ['node-1']);
    expect((await stat(directory)).mode & 0o777).toBe(0o700);
    const files = await readdir(directory);
    expect(files.sort()).toEqual([
      'admin.pem',
      'cluster-authority.pem',
      'front-proxy-authority.pem',
      'front-proxy-client.pem',
      'node-client.pem',
      'server.pem',
      'service-account-key.pem',
    ]);
    for (const file of files) expect((await stat(join(directory, file))).mode & 0o777).toBe(0o600);

    env.clock.advance(30 * DAY_MS);
    const second = await loadOrCreatePki(directory, env, ['node-1']);
    expect(JSON.stringify(second)).toBe(JSON.stringify(first));
  });

  it('names its identities as Kubernetes expects', async () => {
    const pki = await loadOrCreatePki(directory, testEnv(), ['node-1', '[fd00::1]', '192.0.2.7', 'localhost']);
    const server = new X509Certificate(pki.server.certificatePem);
    for (const host of ['node-1', 'localhost', 'kubernetes.default.svc']) expect(server.checkHost(host)).toBe(host);
    for (const address of ['127.0.0.1', '::1', 'fd00::1', '192.0.2.7']) {
      expect(server.checkIP(address)).toBe(address);
    }
    expect(new X509Certificate(pki.admin.certificatePem).subject).toBe('O=system:masters\nCN=kubernetes-admin');
    const proxy = new X509Certificate(pki.frontProxyClient.certificatePem);
    expect(proxy.subject).toBe('CN=front-proxy-client');
    expect(proxy.verify(new X509Certificate(pki.clusterAuthority.certificatePem).publicKey)).toBe(false);
    expect(proxy.verify(new X509Certificate(pki.frontProxyAuthority.certificatePem).publicKey)).toBe(true);
  });

  it('renews the certificates, never the authorities, near the end and when the hosts change', async () => {
    const env = testEnv();
    const first = await loadOrCreatePki(directory, env, ['a']);
    const renamed = await loadOrCreatePki(directory, env, ['b']);
    expect(renamed.server.certificatePem).not.toBe(first.server.certificatePem);
    expect(new X509Certificate(renamed.server.certificatePem).checkHost('a')).toBeUndefined();
    expect(renamed.admin).toEqual(first.admin);

    env.clock.advance(300 * DAY_MS);
    const later = await loadOrCreatePki(directory, env, ['b']);
    expect(later.server.certificatePem).not.toBe(renamed.server.certificatePem);
    expect(later.admin.certificatePem).not.toBe(first.admin.certificatePem);
    expect(later.frontProxyClient.certificatePem).not.toBe(first.frontProxyClient.certificatePem);
    expect(later.clusterAuthority.certificatePem).toBe(first.clusterAuthority.certificatePem);
    expect(later.serviceAccountKeyPem).toBe(first.serviceAccountKeyPem);
  });

  it('completes what a killed start left, with the authority that was already there', async () => {
    const env = testEnv();
    const first = await loadOrCreatePki(directory, env, []);
    const order = ['cluster-authority', 'front-proxy-authority', 'server', 'admin', 'front-proxy-client'];
    for (let kept = 1; kept <= order.length; kept++) {
      for (const name of order.slice(kept)) await rm(join(directory, `${name}.pem`), { force: true });
      await writeFile(join(directory, 'server.pem.0badc0de.partial'), '-----BEGIN CERTI');
      const again = await loadOrCreatePki(directory, env, []);
      expect(again.clusterAuthority.certificatePem).toBe(first.clusterAuthority.certificatePem);
      expect((await readdir(directory)).some((name) => name.endsWith('.partial'))).toBe(false);
      expect(await readdir(directory)).toHaveLength(7);
    }
  });

  it('replaces leaves that are broken or of another authority', async () => {
    const env = testEnv();
    const first = await loadOrCreatePki(directory, env, []);
    const foreign = await loadOrCreatePki(join(parent, 'other'), env, []);
    await writeFile(join(directory, 'admin.pem'), 'nonsense');
    await writeFile(join(directory, 'server.pem'), foreign.server.certificatePem + foreign.server.keyPem);
    await writeFile(
      join(directory, 'front-proxy-client.pem'),
      first.frontProxyClient.certificatePem + foreign.frontProxyClient.keyPem,
    );
    const again = await loadOrCreatePki(directory, env, []);
    const authority = new X509Certificate(again.clusterAuthority.certificatePem).publicKey;
    expect(new X509Certificate(again.admin.certificatePem).verify(authority)).toBe(true);
    expect(new X509Certificate(again.server.certificatePem).verify(authority)).toBe(true);
    expect(again.frontProxyClient.certificatePem).not.toBe(first.frontProxyClient.certificatePem);
  });

  it.each(['cluster-authority.pem', 'service-account-key.pem'])('refuses to start on a broken %s', async (file) => {
    const env = testEnv();
    await loadOrCreatePki(directory, env, []);
    await writeFile(join(directory, file), 'nonsense');
    await expect(loadOrCreatePki(directory, env, [])).rejects.toThrow(join(directory, file));
    expect(await readFile(join(directory, file), 'utf8')).toBe('nonsense');
  });

  it('takes back permissions that grew too wide', async () => {
    const env = testEnv();
    await loadOrCreatePki(directory, env, []);
    await chmod(directory, 0o755);
    await chmod(join(directory, 'cluster-authority.pem'), 0o644);
    await loadOrCreatePki(directory, env, []);
    expect((await stat(directory)).mode & 0o777).toBe(0o700);
    expect((await stat(join(directory, 'cluster-authority.pem'))).mode & 0o777).toBe(0o600);
  });
});

describe('kubeconfigFor', () => {
  it('is read by the official client', async () => {
    const pki = await loadOrCreatePki(directory, testEnv(), []);
    const config = new KubeConfig();
    config.loadFromString(kubeconfigFor(pki, 'https://127.0.0.1:6443'));
    expect(config.getCurrentContext()).toBe('kubernetes-admin@godwit');
    expect(config.getCurrentCluster()).toMatchObject({ name: 'godwit', server: 'https://127.0.0.1:6443' });
    const decode = (data: string | undefined): string => Buffer.from(data ?? '', 'base64').toString('utf8');
    expect(decode(config.getCurrentCluster()?.caData)).toBe(pki.clusterAuthority.certificatePem);
    expect(decode(config.getCurrentUser()?.certData)).toBe(pki.admin.certificatePem);
    expect(decode(config.getCurrentUser()?.keyData)).toBe(pki.admin.keyPem);
  });
});
