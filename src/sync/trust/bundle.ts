import { X509Certificate } from 'node:crypto';
import { BUNDLE_LENGTH_MAX } from '../wire/frame.ts';

/** The certificate authorities of another cluster, and what its certificates say. */

/** The one in use, its successor, its predecessor, and room for one that somebody adds by hand. */
const AUTHORITIES_MAX = 4;

const BLOCK = /-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----/g;

/** The authorities in PEM. Throws an error that says what is wrong with it where it is not a bundle. */
export function parseBundle(pem: string): X509Certificate[] {
  if (pem.length > BUNDLE_LENGTH_MAX) throw new Error(`a bundle has at most ${BUNDLE_LENGTH_MAX} characters`);
  const blocks = pem.match(BLOCK) ?? [];
  const rest = pem.replace(BLOCK, '');
  if (blocks.length === 0 || rest.trim() !== '') throw new Error('a bundle is one or more certificates in PEM');
  if (blocks.length > AUTHORITIES_MAX) throw new Error(`a bundle has at most ${AUTHORITIES_MAX} certificates`);
  return blocks.map((block) => {
    const certificate = certificateOf(block);
    if (!certificate.ca) throw new Error('a certificate of a bundle is not that of an authority');
    return certificate;
  });
}

function certificateOf(pem: string): X509Certificate {
  try {
    return new X509Certificate(pem);
  } catch (error) {
    throw new Error('a certificate of a bundle is not readable', { cause: error });
  }
}

/** The bundle again, the same text for the same certificates in the same order. */
export function bundleText(authorities: readonly X509Certificate[]): string {
  return authorities.map((authority) => `${authority.toString().trim()}\n`).join('');
}

/** When the last of them ends. */
export function bundleEndMs(authorities: readonly X509Certificate[]): number {
  return Math.max(...authorities.map(({ validTo }) => Date.parse(validTo)));
}

const CLUSTER_ID = /^[A-Za-z0-9][A-Za-z0-9-]{0,62}$/;

/** Whether the text can be the id of a cluster: it becomes part of names and of certificates. */
export function isClusterId(text: string): boolean {
  return CLUSTER_ID.test(text);
}

/** What stands for a cluster in its certificates. */
export function clusterUri(clusterId: string): string {
  return `godwit://cluster/${clusterId}`;
}

/** The cluster that a certificate says to be of, if it says that and nothing else. */
export function clusterIdOf({ subjectAltName }: X509Certificate): string | undefined {
  const id = /^URI:godwit:\/\/cluster\/(.*)$/.exec(subjectAltName ?? '')?.[1];
  return id !== undefined && isClusterId(id) ? id : undefined;
}

/** Whether this authority, if it is good at this time, has signed the certificate. */
export function hasSigned(authority: X509Certificate, certificate: X509Certificate, nowMs: number): boolean {
  return isGood(authority, nowMs) && certificate.checkIssued(authority) && certificate.verify(authority.publicKey);
}

/** Whether the time is one for which a certificate was made. */
export function isGood({ validFrom, validTo }: X509Certificate, nowMs: number): boolean {
  return Date.parse(validFrom) <= nowMs && nowMs < Date.parse(validTo);
}
