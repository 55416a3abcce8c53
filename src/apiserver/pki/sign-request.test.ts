import { createPublicKey, generateKeyPairSync, webcrypto, X509Certificate } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { testEnv } from '../../env/test.ts';
import { createAuthority, DAY_MS } from '../../machinery/x509/authority.ts';
import { parseCertificateRequest } from '../../machinery/x509/certificate-request.ts';
import { signRequest } from './sign-request.ts';
import { makeCertificateRequest } from '../../machinery/x509/certificate-request.fixture.ts';

describe('parseCertificateRequest', () => {
  it('reads names and key', async () => {
    const { requestPem, publicKey } = await makeCertificateRequest({
      commonName: 'system:node:a',
      organizations: ['system:nodes'],
      dnsNames: ['a.example'],
      ipAddresses: ['192.0.2.1', 'fd00::1'],
      uris: ['spiffe://x/y'],
      emailAddresses: ['a@example.com'],
    });
    expect(await parseCertificateRequest(requestPem)).toEqual({
      commonName: 'system:node:a',
      organizations: ['system:nodes'],
      dnsNames: ['a.example'],
      ipAddresses: ['192.0.2.1', 'fd00::1'],
      uris: ['spiffe://x/y'],
      emailAddresses: ['a@example.com'],
      publicKey,
    });
  });

  it('refuses a request whose signature does not fit its content', async () => {
    const { requestPem } = await makeCertificateRequest({ commonName: 'honest' });
    const der = Buffer.from(requestPem.replace(/-----[^-]+-----|\s/g, ''), 'base64');
    der.write('hostile', der.indexOf('honest'), 6, 'latin1');
    const forged = `-----BEGIN CERTIFICATE REQUEST-----\n${der.toString('base64')}\n-----END CERTIFICATE REQUEST-----\n`;
    await expect(parseCertificateRequest(forged)).rejects.toThrow('signature');
  });

  it.each([
    ['nothing', ''],
    ['another block', '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'],
    ['not DER', '-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n'],
    ['too much', `-----BEGIN CERTIFICATE REQUEST-----\n${'A'.repeat(100_000)}\n-----END CERTIFICATE REQUEST-----\n`],
  ])('refuses %s', async (_name, pem) => {
    await expect(parseCertificateRequest(pem)).rejects.toThrow(Error);
  });

  it('refuses names that two readers could read differently', async () => {
    const twice = await makeCertificateRequest({ commonName: 'a', extraCommonName: 'b' });
    await expect(parseCertificateRequest(twice.requestPem)).rejects.toThrow('more than one common name');
    const control = await makeCertificateRequest({ commonName: 'admin\0x' });
    await expect(parseCertificateRequest(control.requestPem)).rejects.toThrow('control characters');
  });
});

describe('signRequest', () => {
  it('certifies the names and the key of the request', async () => {
    const env = testEnv();
    const authority = await createAuthority(env, 'test-ca');
    const { requestPem, keyPem } = await makeCertificateRequest({
      commonName: 'system:node:a',
      organizations: ['system:nodes', 'x'],
      dnsNames: ['a.example'],
    });
    const certificate = new X509Certificate(
      await signRequest(authority, requestPem, { usages: ['client'], validityMs: DAY_MS }),
    );
    expect(certificate.subject).toBe('O=system:nodes\nO=x\nCN=system:node:a');
    expect(certificate.subjectAltName).toBe('DNS:a.example');
    expect(certificate.keyUsage).toEqual(['1.3.6.1.5.5.7.3.2']);
    expect(certificate.checkIssued(new X509Certificate(authority.certificatePem))).toBe(true);
    expect(certificate.publicKey.export({ type: 'spki', format: 'pem' })).toBe(
      createPublicKey(keyPem).export({ type: 'spki', format: 'pem' }),
    );
  });

  it('accepts RSA keys', async () => {
    const authority = await createAuthority(testEnv(), 'test-ca');
    const keys = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const algorithm = { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' };
    const importKey = webcrypto.subtle.importKey.bind(webcrypto.subtle);
    const { requestPem } = await makeCertificateRequest(
      { commonName: 'rsa' },
      {
        algorithm,
        privateKey: await importKey(
          'pkcs8',
          keys.privateKey.export({ type: 'pkcs8', format: 'der' }),
          algorithm,
          true,
          ['sign'],
        ),
        publicKey: await importKey('spki', keys.publicKey.export({ type: 'spki', format: 'der' }), algorithm, true, [
          'verify',
        ]),
      },
    );
    const pem = await signRequest(authority, requestPem, { usages: ['server'], validityMs: DAY_MS });
    expect(new X509Certificate(pem).publicKey.asymmetricKeyType).toBe('rsa');
  });
});
