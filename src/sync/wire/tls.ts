import type { X509Certificate } from 'node:crypto';
import type { ProvenPeer } from './stream-link.ts';

/** What this side shows, and whom it believes, as PEM. It changes while the program runs. */
export interface TlsMaterial {
  readonly certificatePem: string;
  readonly keyPem: string;
  readonly authoritiesPem: string;
}

/** How clusters know each other. */
export interface TlsTrust {
  readonly clusterId: string;
  material(): TlsMaterial;
  /**
   * The cluster of which this certificate is, by the authorities of that very cluster. Throws a SyncError `NotTrusted`
   * otherwise.
   */
  identify(certificate: X509Certificate): ProvenPeer;
}

/** TLS as both sides speak it: nothing older is needed, as both are ours. */
export function tlsOptions({ certificatePem, keyPem, authoritiesPem }: TlsMaterial): {
  cert: string;
  key: string;
  ca: string;
  minVersion: 'TLSv1.3';
} {
  return { cert: certificatePem, key: keyPem, ca: authoritiesPem, minVersion: 'TLSv1.3' };
}
