import { createPrivateKey, createPublicKey, generateKeyPair, type KeyObject, webcrypto } from 'node:crypto';
import { promisify } from 'node:util';
import type { Env } from '../../env/ports.ts';
import { loadX509, type X509 } from './x509.ts';

/** What issuing needs of the outside world; keys themselves always come from the operating system. */
export type AuthorityEnv = Pick<Env, 'clock' | 'random'>;

/** A certificate with its private key, both PEM. */
export interface Identity {
  readonly certificatePem: string;
  readonly keyPem: string;
}

/** A certificate authority, ready to issue. */
export interface Authority extends Identity {
  readonly env: AuthorityEnv;
}

export type Usage = 'server' | 'client';

/** What a new certificate says. */
export interface CertificateOptions {
  readonly commonName: string;
  readonly organizations?: readonly string[];
  readonly dnsNames?: readonly string[];
  readonly ipAddresses?: readonly string[];
  readonly uris?: readonly string[];
  readonly usages: readonly Usage[];
  readonly validityMs: number;
}

export const HOUR_MS = 3_600_000;
export const DAY_MS = 24 * HOUR_MS;

/** Certificates are valid from a little before now, so that a peer whose clock is behind accepts them at once. */
const BACKDATE_MS = 5 * 60_000;

/** A cluster outlives many servers; nothing here can rotate its root while clients hold kubeconfigs. */
const AUTHORITY_VALIDITY_MS = 3650 * DAY_MS;

const SIGNATURE = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;

/** Makes a self-signed ECDSA P-256 authority, valid for ten years unless told otherwise. */
export async function createAuthority(
  env: AuthorityEnv,
  commonName: string,
  validityMs = AUTHORITY_VALIDITY_MS,
): Promise<Authority> {
  const x509 = await loadX509();
  const keyPem = await generateKeyPem();
  const publicKey = publicKeyOf(keyPem);
  const name = subjectName(x509, commonName, []);
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: serialNumber(env),
    subject: name,
    issuer: name,
    notBefore: new Date(env.clock.now() - BACKDATE_MS),
    notAfter: new Date(env.clock.now() + validityMs),
    publicKey,
    signingKey: await importSigningKey(keyPem),
    signingAlgorithm: SIGNATURE,
    extensions: [
      new x509.BasicConstraintsExtension(true, undefined, true),
      new x509.KeyUsagesExtension(
        x509.KeyUsageFlags.digitalSignature | x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign,
        true,
      ),
      await x509.SubjectKeyIdentifierExtension.create(publicKey),
    ],
  });
  return { certificatePem: pemText(certificate.toString('pem')), keyPem, env };
}

/** Issues a certificate for a key made here. */
export async function issueIdentity(authority: Authority, options: CertificateOptions): Promise<Identity> {
  const keyPem = await generateKeyPem();
  const certificatePem = await issueCertificate(authority, { ...options, publicKey: publicKeyOf(keyPem) });
  return { certificatePem, keyPem };
}

/** Issues a certificate for somebody else's public key (SPKI, DER); it never outlives the authority. Answers PEM. */
export async function issueCertificate(
  authority: Authority,
  options: CertificateOptions & { readonly publicKey: Uint8Array },
): Promise<string> {
  const x509 = await loadX509();
  const issuer = new x509.X509Certificate(authority.certificatePem);
  const nowMs = authority.env.clock.now();
  if (issuer.notAfter.getTime() <= nowMs) throw new Error('the certificate authority has expired');
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: serialNumber(authority.env),
    subject: subjectName(x509, options.commonName, options.organizations ?? []),
    issuer: issuer.subjectName,
    notBefore: new Date(nowMs - BACKDATE_MS),
    notAfter: new Date(Math.min(nowMs + options.validityMs, issuer.notAfter.getTime())),
    publicKey: options.publicKey,
    signingKey: await importSigningKey(authority.keyPem),
    signingAlgorithm: SIGNATURE,
    extensions: await leafExtensions(x509, issuer, options),
  });
  return pemText(certificate.toString('pem'));
}

async function leafExtensions(
  x509: X509,
  issuer: InstanceType<X509['X509Certificate']>,
  options: CertificateOptions & { readonly publicKey: Uint8Array },
): Promise<InstanceType<X509['Extension']>[]> {
  const rsa =
    createPublicKey({ key: Buffer.from(options.publicKey), format: 'der', type: 'spki' }).asymmetricKeyType === 'rsa';
  const flags = x509.KeyUsageFlags;
  const extended = options.usages.map((usage) =>
    usage === 'server' ? x509.ExtendedKeyUsage.serverAuth : x509.ExtendedKeyUsage.clientAuth,
  );
  const names = [
    ...(options.dnsNames ?? []).map((value) => ({ type: 'dns' as const, value })),
    ...(options.ipAddresses ?? []).map((value) => ({ type: 'ip' as const, value })),
    ...(options.uris ?? []).map((value) => ({ type: 'url' as const, value })),
  ];
  return [
    new x509.BasicConstraintsExtension(false, undefined, true),
    rsa
      ? new x509.KeyUsagesExtension(flags.digitalSignature | flags.keyEncipherment, true)
      : new x509.KeyUsagesExtension(flags.digitalSignature, true),
    new x509.ExtendedKeyUsageExtension(extended),
    ...(names.length > 0 ? [new x509.SubjectAlternativeNameExtension(names)] : []),
    await x509.SubjectKeyIdentifierExtension.create(options.publicKey),
    await x509.AuthorityKeyIdentifierExtension.create(issuer),
  ];
}

/**
 * One attribute per relative name, organizations first, as kubeadm writes them. Values are given as typed strings:
 * the library would read structure (quotes, escapes, `#`) into plain ones.
 */
function subjectName(x509: X509, commonName: string, organizations: readonly string[]): InstanceType<X509['Name']> {
  return new x509.Name([
    ...organizations.map((organization) => ({ O: [{ utf8String: organization }] })),
    { CN: [{ utf8String: commonName }] },
  ]);
}

/** 126 random bits behind a leading 01, so that the integer is positive and always sixteen bytes long. */
function serialNumber(env: AuthorityEnv): string {
  const bytes = Buffer.from(env.random.bytes(16));
  bytes[0] = ((bytes[0] ?? 0) & 0x3f) | 0x40;
  return bytes.toString('hex');
}

/** A new ECDSA P-256 private key, PKCS#8 PEM. */
export async function generateKeyPem(): Promise<string> {
  const { privateKey } = await promisify(generateKeyPair)('ec', { namedCurve: 'P-256' });
  return privateKey.export({ type: 'pkcs8', format: 'pem' }) as string;
}

/** The public half (SPKI, DER) of a private key in PEM. */
export function publicKeyOf(keyPem: string): Uint8Array {
  const publicKey: KeyObject = createPublicKey(createPrivateKey(keyPem));
  return publicKey.export({ type: 'spki', format: 'der' });
}

async function importSigningKey(keyPem: string): Promise<webcrypto.CryptoKey> {
  const der = createPrivateKey(keyPem).export({ type: 'pkcs8', format: 'der' });
  return webcrypto.subtle.importKey('pkcs8', der, SIGNATURE, false, ['sign']);
}

/** PEM with one line break at the end, whatever the library wrote. */
function pemText(pem: string): string {
  return `${pem.trim()}\n`;
}
