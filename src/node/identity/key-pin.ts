import { createHash, type X509Certificate } from 'node:crypto';
import { isExpiredAt } from './renewal.ts';

/** By what a key is known to those who trust no authority that could vouch for it: SHA-256 of the public key, in base64. */
export function keyPin({ publicKey }: Pick<X509Certificate, 'publicKey'>): string {
  const spki = publicKey.export({ type: 'spki', format: 'der' });
  return createHash('sha256').update(spki).digest('base64');
}

/** The pin of what somebody has shown; undefined for nothing, and for a certificate whose time is over. */
export function shownPin(certificate: X509Certificate | undefined, nowMs: number): string | undefined {
  if (!certificate || isExpiredAt({ notAfterMs: Date.parse(certificate.validTo) }, nowMs)) return undefined;
  return keyPin(certificate);
}
