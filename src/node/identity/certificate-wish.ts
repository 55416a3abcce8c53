import { createPrivateKey, webcrypto, X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { NODE_USER_PREFIX, NODES_GROUP } from '../../machinery/node-user.ts';
import { publicKeyOf } from '../../machinery/x509/authority.ts';
import { NODE_CLIENT_SIGNER, NODE_SERVING_SIGNER } from '../../machinery/x509/node-certificates.ts';
import { loadX509 } from '../../machinery/x509/x509.ts';
import type { NodeCertificate } from './certificate-file.ts';

/** What a certificate is wanted for. */
export interface CertificateWish {
  readonly node: string;
  readonly signerName: string;
  readonly usages: readonly string[];
  /** By what others call the node, for a certificate that it serves with: names and IP addresses. */
  readonly hosts: readonly string[];
}

/** A certificate by which the API server knows the node. */
export function clientWish(node: string): CertificateWish {
  return { node, signerName: NODE_CLIENT_SIGNER, usages: ['digital signature', 'client auth'], hosts: [] };
}

/**
 * A certificate by which others know the node's own server: by its name, and by those of its addresses by which nobody
 * else is known. The API server may be on the same host, and no node gets a certificate that could speak for it.
 */
export function servingWish(node: string, addresses: readonly string[], server: string): CertificateWish {
  const apiServer = new URL(server).hostname.replace(/^\[|\]$/g, '');
  const own = addresses.filter((each) => each !== apiServer && !/^127\.|^::1$/.test(each));
  const hosts = [...new Set([node, ...own])];
  return { node, signerName: NODE_SERVING_SIGNER, usages: ['digital signature', 'server auth'], hosts };
}

/** Whether a certificate is what is wished for, whatever its age. */
export function isWished({ certificatePem }: NodeCertificate, { node, hosts }: CertificateWish): boolean {
  const certificate = new X509Certificate(certificatePem);
  const isOwn = certificate.subject.split('\n').includes(`CN=${NODE_USER_PREFIX}${node}`);
  const named = certificate.subjectAltName === undefined ? 0 : certificate.subjectAltName.split(', ').length;
  const isNamed = (host: string): boolean =>
    isIP(host) === 0 ? certificate.checkHost(host) !== undefined : certificate.checkIP(host) !== undefined;
  return isOwn && named === hosts.length && hosts.every(isNamed);
}

const ECDSA = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };

/** The wish as a PKCS#10 request that shows that its sender has the key. PEM. */
export async function requestPem({ node, hosts }: CertificateWish, keyPem: string): Promise<string> {
  const x509 = await loadX509();
  const der = createPrivateKey(keyPem).export({ type: 'pkcs8', format: 'der' });
  const request = await x509.Pkcs10CertificateRequestGenerator.create({
    name: new x509.Name([{ O: [{ utf8String: NODES_GROUP }] }, { CN: [{ utf8String: `${NODE_USER_PREFIX}${node}` }] }]),
    keys: {
      privateKey: await webcrypto.subtle.importKey('pkcs8', der, ECDSA, false, ['sign']),
      publicKey: await webcrypto.subtle.importKey('spki', publicKeyOf(keyPem), ECDSA, true, ['verify']),
    },
    signingAlgorithm: ECDSA,
    extensions: hosts.length === 0 ? [] : [new x509.SubjectAlternativeNameExtension(hosts.map(alternativeName))],
  });
  return `${request.toString('pem')}\n`;
}

function alternativeName(value: string): { type: 'dns' | 'ip'; value: string } {
  return { type: isIP(value) === 0 ? 'dns' : 'ip', value };
}
