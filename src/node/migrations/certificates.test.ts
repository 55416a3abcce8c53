import { X509Certificate } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { testEnv } from '../../env/test.ts';
import type { MigrationTls } from '../../hypervisor/migration.ts';
import { MigrationCertificates } from './certificates.ts';

const USER = { uid: 7, gid: 7 };

function setUp() {
  const files = new Map<string, string>([['/tls/old/client-key.pem', 'of a former agent']]);
  const owners = new Set<unknown>();
  const certificates = new MigrationCertificates({
    env: testEnv(),
    directory: '/tls',
    user: USER,
    files: {
      makeDirectory: async () => undefined,
      writePrivate: async (path, bytes, owner) => {
        files.set(path, Buffer.from(bytes).toString());
        owners.add(owner);
      },
      remove: async (path) => {
        for (const name of files.keys()) if (name.startsWith(`${path}/`)) files.delete(name);
      },
    },
  });
  const namesIn = ({ directory }: MigrationTls): string[] =>
    [...files.keys()].filter((name) => name.startsWith(directory)).map((name) => name.slice(directory.length + 1));
  return { certificates, files, owners, namesIn };
}

describe('the certificates of a migration', () => {
  it('are one for each side, of an authority whose key nobody has', async () => {
    const { certificates, files, owners, namesIn } = setUp();
    const { used, source } = await certificates.issue('pod', async (tls) => {
      expect(namesIn(tls)).toEqual(['ca-cert.pem', 'server-cert.pem', 'server-key.pem', 'dh-params.pem']);
      return { tls, server: new X509Certificate(files.get(`${tls.directory}/server-cert.pem`) ?? '') };
    });
    expect([...files]).toEqual([]);
    expect([...owners]).toEqual([USER]);
    const [authority, client] = [source.authorityPem, source.certificatePem].map((pem) => new X509Certificate(pem));
    if (!authority || !client) throw new Error('unreachable');
    // Each knows the other by the very name that it shows.
    expect(client.subject).toBe(`CN=${used.tls.peer}`);
    expect(used.server.subject).toBe(`CN=${source.peer}`);
    expect(used.server.checkHost(source.peer)).toBe(source.peer);
    for (const certificate of [client, used.server]) expect(certificate.verify(authority.publicKey)).toBe(true);
    expect([client.keyUsage, used.server.keyUsage]).toEqual([['1.3.6.1.5.5.7.3.2'], ['1.3.6.1.5.5.7.3.1']]);
    expect(Date.parse(client.validTo) - testEnv().clock.now()).toBe(7 * 86_400_000);
    expect(source.keyPem).toContain('PRIVATE KEY');
  });

  it('are of no use for another migration', async () => {
    const { certificates } = setUp();
    const [one, other] = [
      await certificates.issue('pod', async (tls) => tls),
      await certificates.issue('pod', async (tls) => tls),
    ];
    expect(new Set([one.used.peer, other.used.peer, one.source.peer, other.source.peer]).size).toBe(4);
    expect(one.used.directory).not.toBe(other.used.directory);
    const authority = new X509Certificate(other.source.authorityPem);
    expect(new X509Certificate(one.source.certificatePem).verify(authority.publicKey)).toBe(false);
  });

  it('are where the source can read them until it has', async () => {
    const { certificates, files, namesIn } = setUp();
    const credentials = { authorityPem: 'A', certificatePem: 'C', keyPem: 'K', peer: 'target' };
    const written = await certificates.write('pod', credentials);
    const { tls } = written;
    expect(tls.peer).toBe('target');
    expect(namesIn(tls)).toEqual(['ca-cert.pem', 'client-cert.pem', 'client-key.pem']);
    expect([...files.values()]).toEqual(['A', 'C', 'K']);
    await written.remove();
    await written.remove();
    expect([...files]).toEqual([]);
  });

  it('are gone also where they were of no use', async () => {
    const { certificates, files } = setUp();
    const failed = certificates.issue('pod', () => Promise.reject(new Error('no port is free')));
    await expect(failed).rejects.toThrow('no port is free');
    expect([...files]).toEqual([]);
  });
});
