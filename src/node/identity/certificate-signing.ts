import { createHash, createPrivateKey, X509Certificate } from 'node:crypto';
import type { Condition, KubeObject } from '../../api/meta.ts';
import { ApiError } from '../../api/status.ts';
import { type Env, sleep } from '../../env/ports.ts';
import { Backoff } from '../../kube/backoff.ts';
import type { Client } from '../../kube/client.ts';
import { findCondition } from '../../kube/conditions.ts';
import { errorText } from '../../kube/error-text.ts';
import type { Resource } from '../../kube/resource.ts';
import { TransportError } from '../../kube/transport.ts';
import { publicKeyOf } from '../../machinery/x509/authority.ts';
import { type CertificateWish, requestPem } from './certificate-wish.ts';

interface SigningRequest extends KubeObject {
  spec: { readonly request: string; readonly signerName: string; readonly usages: readonly string[] };
  status?: { readonly certificate?: string; readonly conditions?: Condition[] };
}

const signingRequests: Resource<SigningRequest> = {
  group: 'certificates.k8s.io',
  version: 'v1',
  plural: 'certificatesigningrequests',
  kind: 'CertificateSigningRequest',
  namespaced: false,
};

/** A request came to nothing, for a reason that asking again with the same key does not change. */
export class CertificateRefused extends Error {
  constructor(name: string, why: string) {
    super(`the certificate request ${name} ${why}`);
    this.name = 'CertificateRefused';
  }
}

/** Approval may take a person: asked often at first, for the machine that approves at once. */
const POLLING = { baseMs: 50, maxMs: 15_000 };

/**
 * Asks for a certificate and waits for it, for as long as that takes. Asking again with the same key is the same
 * request. Rejects with CertificateRefused when it was denied, or cannot be signed.
 */
export async function signedCertificate(
  env: Env,
  client: Client,
  wish: CertificateWish,
  keyPem: string,
  signal: AbortSignal,
): Promise<string> {
  const name = nameOf(wish, keyPem);
  const backoff = new Backoff(env.random, POLLING);
  let isTold = false;
  for (;;) {
    try {
      const found = await findOrAsk(client, wish, keyPem, name, signal);
      const certificatePem = outcomeOf(found, keyPem);
      if (certificatePem !== undefined) return certificatePem;
      if (!isTold) env.log.info('waiting for a certificate', { request: name, signer: wish.signerName });
      isTold = true;
    } catch (error) {
      // A server that is away comes back; one that says no means it.
      if (signal.aborted || !isPassing(error)) throw error;
      env.log.warn('cannot ask for a certificate', { request: name, error: errorText(error) });
    }
    await sleep(env.clock, backoff.next(), signal);
    signal.throwIfAborted();
  }
}

function isPassing(error: unknown): boolean {
  return error instanceof TransportError || (error instanceof ApiError && (error.code >= 500 || error.code === 429));
}

/** The same for the same wish and key, and hard to take by somebody who does not know the key. */
function nameOf({ signerName, node, hosts }: CertificateWish, keyPem: string): string {
  const hash = createHash('sha256')
    .update(JSON.stringify([signerName, node, hosts]))
    .update(publicKeyOf(keyPem));
  return `node-csr-${hash.digest('hex').slice(0, 40)}`;
}

async function findOrAsk(
  client: Client,
  wish: CertificateWish,
  keyPem: string,
  name: string,
  signal: AbortSignal,
): Promise<SigningRequest> {
  const known = await client.find(signingRequests, '', name, signal);
  if (known) return known;
  const { signerName, usages } = wish;
  const request = Buffer.from(await requestPem(wish, keyPem)).toString('base64');
  const object: SigningRequest = {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name },
    spec: { request, signerName, usages },
  };
  return client.create(signingRequests, object, signal);
}

/** The certificate, if it is there. */
function outcomeOf({ metadata: { name = '' }, status }: SigningRequest, keyPem: string): string | undefined {
  for (const type of ['Denied', 'Failed']) {
    const condition = findCondition(status?.conditions, type);
    if (condition) throw new CertificateRefused(name, `was ${type.toLowerCase()}: ${condition.message ?? ''}`);
  }
  if (status?.certificate === undefined || status.certificate === '') return undefined;
  const certificatePem = Buffer.from(status.certificate, 'base64').toString('utf8');
  if (!isOf(certificatePem, keyPem))
    throw new CertificateRefused(name, 'was answered with a certificate of another key');
  return certificatePem;
}

function isOf(certificatePem: string, keyPem: string): boolean {
  try {
    return new X509Certificate(certificatePem).checkPrivateKey(createPrivateKey(keyPem));
  } catch {
    // What does not parse is no certificate of anybody's.
    return false;
  }
}
