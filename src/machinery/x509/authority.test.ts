import { createPublicKey, generateKeyPairSync, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { connect, createServer, type PeerCertificate, type TLSSocket } from 'node:tls';
import { describe, expect, it } from 'vitest';
import { realClock, realRandom } from '../../env/real.ts';
import { testEnv } from '../../env/test.ts';
import { createAuthority, DAY_MS, HOUR_MS, type Identity, issueCertificate, issueIdentity } from './authority.ts';

const real = { clock: realClock, random: realRandom };

/** Runs one handshake; answers what the server saw of the client, or why it failed. */
async function handshake(options: {
  readonly server: Identity;
  readonly trustedByServer: string;
  readonly trustedByClient: string;
  readonly client?: Identity;
  readonly servername?: string;
}): Promise<{ authorized: boolean; peer: PeerCertificate } | { failure: string }> {
  const server = createServer({
    cert: options.server.certificatePem,
    key: options.server.keyPem,
    ca: options.trustedByServer,
    requestCert: true,
    rejectUnauthorized: false,
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const accepted = once(server, 'secureConnection') as Promise<[TLSSocket]>;
  // A handshake that the client gives up never reaches this event.
  accepted.catch(() => undefined);
  const socket = connect({
    host: '127.0.0.1',
    port: (server.address() as AddressInfo).port,
    servername: options.servername ?? 'localhost',
    ca: options.trustedByClient,
    ...(options.client ? { cert: options.client.certificatePem, key: options.client.keyPem } : {}),
  });
  try {
    await once(socket, 'secureConnect');
    const [seen] = await accepted;
    return { authorized: seen.authorized, peer: seen.getPeerCertificate() };
  } catch (error) {
    return { failure: (error as NodeJS.ErrnoException).code ?? String(error) };
  } finally {
    socket.destroy();
    server.close();
  }
}

describe('an authority', () => {
  it('issues certificates that a TLS server and its client accept, and names the client', async () => {
    const authority = await createAuthority(real, 'test-ca');
    const server = await issueIdentity(authority, {
      commonName: 'server',
      dnsNames: ['localhost'],
      ipAddresses: ['127.0.0.1', '::1'],
      usages: ['server'],
      validityMs: DAY_MS,
    });
    const client = await issueIdentity(authority, {
      commonName: 'system:node:ümlaut, CN=evil "q" #1',
      organizations: ['system:masters', 'a+b=c'],
      usages: ['client'],
      validityMs: DAY_MS,
    });
    const trust = { trustedByServer: authority.certificatePem, trustedByClient: authority.certificatePem };
    const result = await handshake({ server, client, ...trust });
    if ('failure' in result) throw new Error(result.failure);
    expect(result.authorized).toBe(true);
    expect(result.peer.subject.CN).toBe('system:node:ümlaut, CN=evil "q" #1');
    expect(result.peer.subject.O).toEqual(['system:masters', 'a+b=c']);

    expect(await handshake({ server, ...trust, servername: 'elsewhere' })).toEqual({
      failure: 'ERR_TLS_CERT_ALTNAME_INVALID',
    });
  });

  it('is not another authority of the same name', async () => {
    const ours = await createAuthority(real, 'test-ca');
    const theirs = await createAuthority(real, 'test-ca');
    const names = { commonName: 'x', dnsNames: ['localhost'], validityMs: DAY_MS };
    const server = await issueIdentity(ours, { ...names, usages: ['server'] });
    const client = await issueIdentity(theirs, { ...names, usages: ['client'] });
    const result = await handshake({
      server,
      client,
      trustedByServer: ours.certificatePem,
      trustedByClient: ours.certificatePem,
    });
    expect(result).toMatchObject({ authorized: false });
    const refused = await handshake({
      server,
      trustedByServer: ours.certificatePem,
      trustedByClient: theirs.certificatePem,
    });
    expect(refused).toHaveProperty('failure');
  });

  it('keeps server certificates from being used by clients', async () => {
    const authority = await createAuthority(real, 'test-ca');
    const server = await issueIdentity(authority, {
      commonName: 'system:node:a',
      organizations: ['system:nodes'],
      dnsNames: ['localhost'],
      usages: ['server'],
      validityMs: DAY_MS,
    });
    const result = await handshake({
      server,
      client: server,
      trustedByServer: authority.certificatePem,
      trustedByClient: authority.certificatePem,
    });
    expect(result).toMatchObject({ authorized: false });
  });

  it('takes times from the clock and serial numbers from the random source', async () => {
    const env = testEnv();
    const authority = await createAuthority(env, 'test-ca');
    const one = new X509Certificate(
      (await issueIdentity(authority, { commonName: 'a', usages: ['client'], validityMs: HOUR_MS })).certificatePem,
    );
    const two = new X509Certificate(
      (await issueIdentity(authority, { commonName: 'a', usages: ['client'], validityMs: HOUR_MS })).certificatePem,
    );
    expect(Date.parse(one.validFrom)).toBe(env.clock.now() - 5 * 60_000);
    expect(Date.parse(one.validTo)).toBe(env.clock.now() + HOUR_MS);
    expect(one.serialNumber).toMatch(/^[0-9A-F]{32}$/);
    expect(one.serialNumber).not.toBe(two.serialNumber);
    expect(one.ca).toBe(false);
  });

  it('never issues past its own end, nor after it', async () => {
    const env = testEnv();
    const authority = await createAuthority(env, 'test-ca');
    const end = Date.parse(new X509Certificate(authority.certificatePem).validTo);
    env.clock.advance(end - env.clock.now() - DAY_MS);
    const leaf = await issueIdentity(authority, { commonName: 'a', usages: ['client'], validityMs: 365 * DAY_MS });
    expect(Date.parse(new X509Certificate(leaf.certificatePem).validTo)).toBe(end);
    env.clock.advance(2 * DAY_MS);
    await expect(issueIdentity(authority, { commonName: 'a', usages: ['client'], validityMs: DAY_MS })).rejects.toThrow(
      'has expired',
    );
  });

  it("certifies somebody else's key, RSA included", async () => {
    const authority = await createAuthority(testEnv(), 'test-ca');
    const { publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const spki = publicKey.export({ type: 'spki', format: 'der' });
    const pem = await issueCertificate(authority, {
      commonName: 'a',
      usages: ['client', 'server'],
      validityMs: DAY_MS,
      publicKey: spki,
    });
    const certificate = new X509Certificate(pem);
    expect(certificate.publicKey.equals(createPublicKey(publicKey.export({ type: 'pkcs1', format: 'pem' })))).toBe(
      true,
    );
    expect(certificate.keyUsage).toEqual(expect.arrayContaining(['1.3.6.1.5.5.7.3.1', '1.3.6.1.5.5.7.3.2']));
  });
});
