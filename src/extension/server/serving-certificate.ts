import { createPrivateKey, X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import type { KubeObject } from '../../api/meta.ts';
import { ApiError } from '../../api/status.ts';
import type { Env } from '../../env/ports.ts';
import type { Client } from '../../kube/client.ts';
import type { Resource } from '../../kube/resource.ts';
import { createAuthority, DAY_MS, type Identity, issueIdentity } from '../../machinery/x509/authority.ts';

/**
 * The certificate that the extension shows to API servers, and the authority by which they recognise it. Both are kept in
 * one Secret, so that all replicas show the same and a restart changes nothing.
 */

export interface ServingCertificate extends Identity {
  /** PEM of all authorities that a replica may show a certificate of: the present one, and the one before. */
  readonly authoritiesPem: string;
}

export interface CertificateOptions {
  readonly env: Pick<Env, 'clock' | 'random'>;
  readonly client: Client;
  readonly namespace: string;
  /** Names and addresses by which API servers reach it. */
  readonly hosts: readonly string[];
}

interface Secret extends KubeObject {
  type?: string;
  data?: Record<string, string>;
}

const secrets: Resource<Secret> = { group: '', version: 'v1', plural: 'secrets', kind: 'Secret', namespaced: true };

/** As KubeVirt names its own. */
export const SECRET_NAME = 'kubevirt-virt-api-certs';
const CERTIFICATES = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;
const VALIDITY_MS = 365 * DAY_MS;
/** Renewed when less than this is left, so that no replica ever shows one that has expired. */
const RENEW_BEFORE_MS = 120 * DAY_MS;
/** Replicas that start at once write at once; one of them is first, and the others take its. */
const ATTEMPTS_MAX = 5;

/** What the Secret holds, decoded. */
interface Kept {
  readonly authority: Identity;
  readonly serving: Identity;
  readonly authoritiesPem: string;
}

/** The certificate to show from now on; made, or made anew, where there is none that is good for a while. */
export async function servingCertificate(
  options: CertificateOptions,
  signal: AbortSignal,
): Promise<ServingCertificate> {
  for (let attempt = 1; ; attempt++) {
    try {
      const { serving, authoritiesPem } = await findOrMake(options, signal);
      return { ...serving, authoritiesPem };
    } catch (error) {
      // Somebody else was faster: what they wrote will do.
      if (!(error instanceof ApiError && error.code === 409) || attempt === ATTEMPTS_MAX) throw error;
    }
  }
}

/** Whether who trusts these authorities recognises a certificate. */
export function isRecognised({ certificatePem }: Identity, authoritiesPem: string): boolean {
  const certificate = new X509Certificate(certificatePem);
  const authorities = authoritiesPem.match(CERTIFICATES) ?? [];
  return authorities.some((pem) => certificate.verify(new X509Certificate(pem).publicKey));
}

async function findOrMake(options: CertificateOptions, signal: AbortSignal): Promise<Kept> {
  const { client, namespace, hosts, env } = options;
  const secret = await client.find(secrets, namespace, SECRET_NAME, signal);
  const known = secret && keptIn(secret);
  const nowMs = env.clock.now();
  if (known && isGood(known, hosts, nowMs)) return known;
  const made = await make(known, options, nowMs);
  const metadata = { namespace, name: SECRET_NAME };
  if (secret) await client.update(secrets, { ...secret, data: dataOf(made) }, signal);
  else
    await client.create(
      secrets,
      { apiVersion: 'v1', kind: 'Secret', metadata, type: 'Opaque', data: dataOf(made) },
      signal,
    );
  return made;
}

async function make(known: Kept | undefined, { env, hosts }: CertificateOptions, nowMs: number): Promise<Kept> {
  // An authority must outlive what it signs.
  const isAuthorityGood = known !== undefined && leftMs(known.authority, nowMs) > VALIDITY_MS + RENEW_BEFORE_MS;
  const authority = isAuthorityGood ? known.authority : await createAuthority(env, 'godwit-extension-ca');
  const serving = await issueIdentity(
    { ...authority, env },
    {
      commonName: hosts[0] ?? 'godwit-extension',
      dnsNames: hosts.filter((host) => isIP(host) === 0),
      ipAddresses: hosts.filter((host) => isIP(host) !== 0),
      usages: ['server'],
      validityMs: VALIDITY_MS,
    },
  );
  const before = known && !isAuthorityGood ? known.authority.certificatePem : '';
  const authoritiesPem = isAuthorityGood ? known.authoritiesPem : authority.certificatePem + before;
  return { authority: { certificatePem: authority.certificatePem, keyPem: authority.keyPem }, serving, authoritiesPem };
}

function isGood({ authority, serving }: Kept, hosts: readonly string[], nowMs: number): boolean {
  const certificate = new X509Certificate(serving.certificatePem);
  return (
    leftMs(serving, nowMs) > RENEW_BEFORE_MS &&
    certificate.verify(new X509Certificate(authority.certificatePem).publicKey) &&
    hosts.every((host) => (isIP(host) === 0 ? certificate.checkHost(host) : certificate.checkIP(host)) !== undefined)
  );
}

function leftMs({ certificatePem }: Identity, nowMs: number): number {
  return Date.parse(new X509Certificate(certificatePem).validTo) - nowMs;
}

function dataOf({ authority, serving, authoritiesPem }: Kept): Record<string, string> {
  const encoded = (text: string): string => Buffer.from(text).toString('base64');
  return {
    'ca.crt': encoded(authority.certificatePem),
    'ca.key': encoded(authority.keyPem),
    'ca-bundle.crt': encoded(authoritiesPem),
    'tls.crt': encoded(serving.certificatePem),
    'tls.key': encoded(serving.keyPem),
  };
}

/** Undefined where it holds something else, which is then replaced. */
function keptIn({ data = {} }: Secret): Kept | undefined {
  const text = (key: string): string =>
    Buffer.from(Object.hasOwn(data, key) ? (data[key] ?? '') : '', 'base64').toString('utf8');
  const kept: Kept = {
    authority: { certificatePem: text('ca.crt'), keyPem: text('ca.key') },
    serving: { certificatePem: text('tls.crt'), keyPem: text('tls.key') },
    authoritiesPem: text('ca-bundle.crt'),
  };
  return isIdentity(kept.authority) && isIdentity(kept.serving) && kept.authoritiesPem !== '' ? kept : undefined;
}

function isIdentity({ certificatePem, keyPem }: Identity): boolean {
  try {
    return new X509Certificate(certificatePem).checkPrivateKey(createPrivateKey(keyPem));
  } catch {
    // What does not parse is no identity.
    return false;
  }
}
