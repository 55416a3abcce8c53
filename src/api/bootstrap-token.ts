/** Tokens with which a machine joins the cluster, each a Secret of its own, as kubeadm makes them. */

export const BOOTSTRAP_TOKEN_NAMESPACE = 'kube-system';
export const BOOTSTRAP_TOKEN_TYPE = 'bootstrap.kubernetes.io/token';

/** A whole token: its public id, and its secret. */
export const BOOTSTRAP_TOKEN = /^([a-z0-9]{6})\.([a-z0-9]{16})$/;

/** The name of the Secret of a token. */
export function bootstrapTokenSecretName(id: string): string {
  return `bootstrap-token-${id}`;
}

/** When a token ends, by what its Secret says: never where it says nothing, long ago where that cannot be read. */
export function bootstrapTokenEndMs(expiration: string): number {
  if (expiration === '') return Number.POSITIVE_INFINITY;
  const endMs = Date.parse(expiration);
  return Number.isNaN(endMs) ? Number.NEGATIVE_INFINITY : endMs;
}
