import { type CertificateRequest, parseCertificateRequest } from '../../machinery/x509/certificate-request.ts';
import { type Authority, issueCertificate, type Usage } from '../../machinery/x509/authority.ts';

/**
 * Signs what a request asks for: its common name, organizations, DNS names and addresses, and nothing else of its
 * subject or extensions. Whether the requester may have them is the caller's to decide, before. Answers PEM.
 */
export async function signRequest(
  authority: Authority,
  request: string | CertificateRequest,
  options: { readonly usages: readonly Usage[]; readonly validityMs: number },
): Promise<string> {
  const parsed = typeof request === 'string' ? await parseCertificateRequest(request) : request;
  return issueCertificate(authority, { ...parsed, usages: options.usages, validityMs: options.validityMs });
}
