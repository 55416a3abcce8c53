import { createPrivateKey, X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { join } from 'node:path';
import type { Env } from '../../env/ports.ts';
import {
  type Authority,
  type CertificateOptions,
  createAuthority,
  DAY_MS,
  generateKeyPem,
  type Identity,
  issueIdentity,
} from '../../machinery/x509/authority.ts';
import { preparePrivateDirectory, readPrivateFile, writePrivateFile } from './private-files.ts';

/** Every key and certificate that the API server has. */
export interface ClusterPki {
  /** Signs the server's certificate and those of clients; clients trust it, and the server trusts it for clients. */
  readonly clusterAuthority: Authority;
  readonly server: Identity;
  /** A member of system:masters, for the admin kubeconfig. */
  readonly admin: Identity;
  /** What aggregated servers trust to name users; never trusted for clients of this server. */
  readonly frontProxyAuthority: Authority;
  readonly frontProxyClient: Identity;
  /** What nodes know this server by when it asks them for logs. */
  readonly nodeClient: Identity;
  /** Signs service account tokens (ECDSA P-256, so ES256). PKCS#8 PEM. */
  readonly serviceAccountKeyPem: string;
}

/** Keys that a start cannot do without and cannot make again; the message says which, and what to do. */
export class UnusableKeys extends Error {
  constructor(path: string, what: string) {
    super(`${path} does not hold ${what}; restore it from a backup`);
    this.name = 'UnusableKeys';
  }
}

/** As kubeadm calls it. It is no member of any group: what it may do at nodes, a role says. */
export const NODE_CLIENT_USER = 'kube-apiserver-kubelet-client';

const LEAF_VALIDITY_MS = 365 * DAY_MS;

/** Renewed with at least this much left, so that a kubeconfig written at a start is good for a while. */
const RENEW_BEFORE_EXPIRY_MS = 90 * DAY_MS;

/** The names by which pods and tools expect to find the API server, whatever it listens on. */
const WELL_KNOWN_HOSTS: readonly string[] = [
  'kubernetes',
  'kubernetes.default',
  'kubernetes.default.svc',
  'kubernetes.default.svc.cluster.local',
  'localhost',
  '127.0.0.1',
  '::1',
];

/**
 * Opens the keys in `directory`, making what is missing. Each authority or identity is one file (certificate and key
 * together) that appears whole or not at all, and everything but the authorities and the token key can be made
 * again from them: so a kill at any moment leaves a directory that the next start completes, with the same authority.
 * Certificates that are near their end, or do not name exactly these hosts, are renewed; a server that runs for
 * months may call this again and take up the result.
 */
export async function loadOrCreatePki(directory: string, env: Env, hosts: readonly string[]): Promise<ClusterPki> {
  await preparePrivateDirectory(directory);
  const store: Store = { directory, env };
  const clusterAuthority = await loadOrCreateAuthority(store, 'cluster-authority.pem', 'godwit-cluster-ca');
  const frontProxyAuthority = await loadOrCreateAuthority(store, 'front-proxy-authority.pem', 'godwit-front-proxy-ca');
  const names = [...new Set([...WELL_KNOWN_HOSTS, ...hosts.map((host) => host.replace(/^\[|\]$/g, ''))])];
  return {
    clusterAuthority,
    frontProxyAuthority,
    server: await loadOrIssue(store, 'server.pem', clusterAuthority, {
      commonName: 'kube-apiserver',
      dnsNames: names.filter((name) => isIP(name) === 0),
      ipAddresses: names.filter((name) => isIP(name) !== 0),
      usages: ['server'],
      validityMs: LEAF_VALIDITY_MS,
    }),
    admin: await loadOrIssue(store, 'admin.pem', clusterAuthority, {
      commonName: 'kubernetes-admin',
      organizations: ['system:masters'],
      usages: ['client'],
      validityMs: LEAF_VALIDITY_MS,
    }),
    frontProxyClient: await loadOrIssue(store, 'front-proxy-client.pem', frontProxyAuthority, {
      commonName: 'front-proxy-client',
      usages: ['client'],
      validityMs: LEAF_VALIDITY_MS,
    }),
    nodeClient: await loadOrIssue(store, 'node-client.pem', clusterAuthority, {
      commonName: NODE_CLIENT_USER,
      usages: ['client'],
      validityMs: LEAF_VALIDITY_MS,
    }),
    serviceAccountKeyPem: await loadOrCreateTokenKey(store, 'service-account-key.pem'),
  };
}

/** When the certificates end, each under a name for people. */
export function certificateEnds(pki: ClusterPki): (readonly [certificate: string, endsMs: number])[] {
  const named = [
    ['cluster-authority', pki.clusterAuthority],
    ['front-proxy-authority', pki.frontProxyAuthority],
    ['api-server', pki.server],
    ['admin-kubeconfig', pki.admin],
    ['front-proxy-client', pki.frontProxyClient],
    ['node-client', pki.nodeClient],
  ] as const;
  return named.map(([name, { certificatePem }]) => [name, endOf(certificatePem)]);
}

interface Store {
  readonly directory: string;
  readonly env: Env;
}

/** An authority that cannot be read stops the start: a new one would lock out every client, and say nothing. */
async function loadOrCreateAuthority(store: Store, file: string, commonName: string): Promise<Authority> {
  const path = join(store.directory, file);
  const text = await readPrivateFile(path);
  if (text === undefined) {
    const authority = await createAuthority(store.env, commonName);
    await writePrivateFile(path, identityText(authority), store.env.random);
    return authority;
  }
  const identity = parseIdentity(text);
  if (!identity || !isAuthority(identity)) {
    throw new UnusableKeys(path, 'a certificate authority with its key');
  }
  const expiresMs = endOf(identity.certificatePem);
  if (expiresMs - store.env.clock.now() < LEAF_VALIDITY_MS) {
    store.env.log.warn('a certificate authority ends within a year', { path, expires: new Date(expiresMs) });
  }
  return { ...identity, env: store.env };
}

async function loadOrIssue(
  store: Store,
  file: string,
  authority: Authority,
  options: CertificateOptions,
): Promise<Identity> {
  const path = join(store.directory, file);
  const text = await readPrivateFile(path);
  const current = text === undefined ? undefined : parseIdentity(text);
  if (current && isCurrent(current, authority, options, store.env.clock.now())) return current;
  const issued = await issueIdentity(authority, options);
  await writePrivateFile(path, identityText(issued), store.env.random);
  if (text !== undefined) store.env.log.info('renewed a certificate', { path });
  return issued;
}

async function loadOrCreateTokenKey(store: Store, file: string): Promise<string> {
  const path = join(store.directory, file);
  const text = await readPrivateFile(path);
  if (text === undefined) {
    const keyPem = await generateKeyPem();
    await writePrivateFile(path, keyPem, store.env.random);
    return keyPem;
  }
  if (!isTokenKey(text)) throw new UnusableKeys(path, 'an ECDSA P-256 key');
  return text;
}

function isTokenKey(pem: string): boolean {
  try {
    return createPrivateKey(pem).asymmetricKeyDetails?.namedCurve === 'prime256v1';
  } catch {
    return false;
  }
}

function identityText(identity: Identity): string {
  return identity.certificatePem + identity.keyPem;
}

/** Undefined unless the text holds a certificate and the private key that belongs to it. */
function parseIdentity(text: string): Identity | undefined {
  const certificatePem = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\n/.exec(text)?.[0];
  const keyPem = /-----BEGIN PRIVATE KEY-----[^-]+-----END PRIVATE KEY-----\n/.exec(text)?.[0];
  if (certificatePem === undefined || keyPem === undefined) return undefined;
  try {
    const matches = new X509Certificate(certificatePem).checkPrivateKey(createPrivateKey(keyPem));
    return matches ? { certificatePem, keyPem } : undefined;
  } catch {
    // What does not parse is no identity; the caller decides whether that can be repaired.
    return undefined;
  }
}

function isAuthority(identity: Identity): boolean {
  const certificate = new X509Certificate(identity.certificatePem);
  return certificate.ca && certificate.verify(certificate.publicKey);
}

function isCurrent(identity: Identity, authority: Authority, options: CertificateOptions, nowMs: number): boolean {
  const certificate = new X509Certificate(identity.certificatePem);
  if (Date.parse(certificate.validTo) - nowMs < RENEW_BEFORE_EXPIRY_MS) return false;
  if (Date.parse(certificate.validFrom) > nowMs) return false;
  if (!certificate.verify(new X509Certificate(authority.certificatePem).publicKey)) return false;
  const dnsNames = options.dnsNames ?? [];
  const ipAddresses = options.ipAddresses ?? [];
  const named = certificate.subjectAltName === undefined ? 0 : certificate.subjectAltName.split(', ').length;
  return (
    named === dnsNames.length + ipAddresses.length &&
    dnsNames.every((name) => certificate.checkHost(name) !== undefined) &&
    ipAddresses.every((address) => certificate.checkIP(address) !== undefined)
  );
}

function endOf(certificatePem: string): number {
  return Date.parse(new X509Certificate(certificatePem).validTo);
}
