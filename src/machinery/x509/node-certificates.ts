import { NODE_USER_PREFIX, NODES_GROUP } from '../node-user.ts';
import type { CertificateRequest } from './certificate-request.ts';

/** What Kubernetes' signers ask of certificates for nodes. */

export const NODE_CLIENT_SIGNER = 'kubernetes.io/kube-apiserver-client-kubelet';
export const NODE_SERVING_SIGNER = 'kubernetes.io/kubelet-serving';

/** What is wrong with a request for a certificate by which a node is a client; undefined for nothing. */
export function nodeClientRefusal(request: CertificateRequest, usages: readonly string[]): string | undefined {
  if (request.dnsNames.length > 0) return 'DNS subjectAltNames are not allowed';
  if (request.ipAddresses.length > 0) return 'IP subjectAltNames are not allowed';
  return nodeRefusal(request, usages, 'client auth');
}

/** What is wrong with a request for a certificate by which a node serves; undefined for nothing. */
export function nodeServingRefusal(request: CertificateRequest, usages: readonly string[]): string | undefined {
  if (request.dnsNames.length + request.ipAddresses.length === 0) return 'DNS or IP subjectAltName is required';
  return nodeRefusal(request, usages, 'server auth');
}

function nodeRefusal(request: CertificateRequest, usages: readonly string[], purpose: string): string | undefined {
  const { commonName, organizations } = request;
  if (organizations.length !== 1 || organizations[0] !== NODES_GROUP) {
    return 'subject organization is not system:nodes';
  }
  if (!commonName.startsWith(NODE_USER_PREFIX) || commonName.length === NODE_USER_PREFIX.length) {
    return 'subject common name does not begin with system:node:';
  }
  if (request.emailAddresses.length > 0) return 'Email subjectAltNames are not allowed';
  if (request.uris.length > 0) return 'URI subjectAltNames are not allowed';
  // Key encipherment is for RSA keys, which a client cannot be made to have: it may be left out.
  const wanted = new Set(['digital signature', purpose]);
  const given = new Set(usages.filter((usage) => usage !== 'key encipherment'));
  const isExact = given.size === wanted.size && [...wanted].every((usage) => given.has(usage));
  return isExact ? undefined : `usages did not match [${purpose} digital signature key encipherment]`;
}
