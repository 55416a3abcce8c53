/** For tests only: makes PKCS#10 requests as a node would send them, and some that no honest one would. */

import { createPrivateKey, webcrypto } from 'node:crypto';
import { generateKeyPem, publicKeyOf } from './authority.ts';
import { loadX509 } from './x509.ts';

export interface RequestNames {
  readonly commonName: string;
  readonly extraCommonName?: string;
  readonly organizations?: readonly string[];
  readonly dnsNames?: readonly string[];
  readonly ipAddresses?: readonly string[];
  readonly emailAddresses?: readonly string[];
  readonly uris?: readonly string[];
}

export interface RequestKeys {
  readonly algorithm: { readonly name: string; readonly hash: string };
  readonly privateKey: webcrypto.CryptoKey;
  readonly publicKey: webcrypto.CryptoKey;
}

const ECDSA = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };

/** A signed request, with its own key unless one is given. */
export async function makeCertificateRequest(
  names: RequestNames,
  keys?: RequestKeys,
): Promise<{ requestPem: string; keyPem: string; publicKey: Uint8Array }> {
  const x509 = await loadX509();
  const keyPem = await generateKeyPem();
  const publicKey = publicKeyOf(keyPem);
  const der = createPrivateKey(keyPem).export({ type: 'pkcs8', format: 'der' });
  const own: RequestKeys = {
    algorithm: ECDSA,
    privateKey: await webcrypto.subtle.importKey('pkcs8', der, ECDSA, true, ['sign']),
    publicKey: await webcrypto.subtle.importKey('spki', publicKey, ECDSA, true, ['verify']),
  };
  const { algorithm, ...pair } = keys ?? own;
  const commonNames = [names.commonName, ...(names.extraCommonName === undefined ? [] : [names.extraCommonName])];
  const alternatives = [
    ...(names.dnsNames ?? []).map((value) => ({ type: 'dns' as const, value })),
    ...(names.ipAddresses ?? []).map((value) => ({ type: 'ip' as const, value })),
    ...(names.emailAddresses ?? []).map((value) => ({ type: 'email' as const, value })),
    ...(names.uris ?? []).map((value) => ({ type: 'url' as const, value })),
  ];
  const request = await x509.Pkcs10CertificateRequestGenerator.create({
    name: new x509.Name([
      ...(names.organizations ?? []).map((value) => ({ O: [{ utf8String: value }] })),
      ...commonNames.map((value) => ({ CN: [{ utf8String: value }] })),
    ]),
    keys: pair,
    signingAlgorithm: algorithm,
    extensions: alternatives.length > 0 ? [new x509.SubjectAlternativeNameExtension(alternatives)] : [],
  });
  return { requestPem: `${request.toString('pem')}\n`, keyPem, publicKey: new Uint8Array(publicKey) };
}
