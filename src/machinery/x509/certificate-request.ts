import { loadX509, type X509 } from './x509.ts';

/** What a PKCS#10 request asks for, its signature verified. */
export interface CertificateRequest {
  readonly commonName: string;
  readonly organizations: readonly string[];
  readonly dnsNames: readonly string[];
  readonly ipAddresses: readonly string[];
  readonly emailAddresses: readonly string[];
  readonly uris: readonly string[];
  /** SPKI, DER. */
  readonly publicKey: Uint8Array;
}

/** Real requests are below 2 KiB (RSA 4096); the parser is not fed more than this. */
const REQUEST_LENGTH_MAX = 32 * 1024;

const PEM_BLOCK = /^\s*-----BEGIN CERTIFICATE REQUEST-----([A-Za-z0-9+/=\s]+)-----END CERTIFICATE REQUEST-----\s*$/;

const SUBJECT_ALTERNATIVE_NAME = '2.5.29.17';

/**
 * Reads a request and checks that its sender holds the key. Throws an Error whose message is fit for the requester:
 * not PEM, not PKCS#10, a wrong signature, or names of which two readers could make different things.
 */
export async function parseCertificateRequest(pem: string): Promise<CertificateRequest> {
  if (pem.length > REQUEST_LENGTH_MAX) throw new Error('the certificate request is too large');
  const base64 = PEM_BLOCK.exec(pem)?.[1];
  if (base64 === undefined) throw new Error('PEM block type must be CERTIFICATE REQUEST');
  const x509 = await loadX509();
  const request = decode(x509, Buffer.from(base64, 'base64'));
  if (!(await signatureIsValid(request))) throw new Error('the signature of the certificate request is not valid');

  const commonNames = request.subjectName.getField('CN');
  const organizations = request.subjectName.getField('O');
  if (commonNames.length > 1) throw new Error('the subject has more than one common name');
  const names = alternativeNames(request);
  const parsed: CertificateRequest = {
    commonName: commonNames[0] ?? '',
    organizations,
    dnsNames: names.filter(({ type }) => type === 'dns').map(({ value }) => value),
    ipAddresses: names.filter(({ type }) => type === 'ip').map(({ value }) => value),
    emailAddresses: names.filter(({ type }) => type === 'email').map(({ value }) => value),
    uris: names.filter(({ type }) => type === 'url').map(({ value }) => value),
    publicKey: new Uint8Array(request.publicKey.rawData),
  };
  const texts = [parsed.commonName, ...organizations, ...names.map(({ value }) => value)];
  if (texts.some(hasControlCharacter)) throw new Error('names must not contain control characters');
  return parsed;
}

type Request = InstanceType<X509['Pkcs10CertificateRequest']>;

function decode(x509: X509, der: Uint8Array): Request {
  try {
    return new x509.Pkcs10CertificateRequest(new Uint8Array(der));
  } catch (cause) {
    throw new Error('the certificate request cannot be parsed', { cause });
  }
}

async function signatureIsValid(request: Request): Promise<boolean> {
  try {
    return await request.verify();
  } catch {
    // An unknown algorithm or a malformed key throws; to the requester it is the same: nothing proves the key.
    return false;
  }
}

function alternativeNames(request: Request): readonly { readonly type: string; readonly value: string }[] {
  const names: { type: string; value: string }[] = [];
  try {
    for (const extension of request.getExtensions(SUBJECT_ALTERNATIVE_NAME)) {
      if ('names' in extension) names.push(...(extension as { names: { items: typeof names } }).names.items);
    }
  } catch (cause) {
    throw new Error('the certificate request has subjectAltNames that cannot be parsed', { cause });
  }
  const unknown = names.find(({ type }) => !['dns', 'ip', 'email', 'url'].includes(type));
  if (unknown) throw new Error(`subjectAltNames of type ${unknown.type} are not supported`);
  return names;
}

function hasControlCharacter(text: string): boolean {
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code < 0x20 || code === 0x7f) return true;
  }
  return false;
}
