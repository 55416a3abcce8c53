import { createHash, X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { connect, type DetailedPeerCertificate } from 'node:tls';
import { parse } from 'yaml';
import type { KubeObject } from '../../api/meta.ts';
import type { Env } from '../../env/ports.ts';
import { Client } from '../../kube/client.ts';
import type { ClusterAccess } from '../../kube/cluster-access.ts';
import { errorText } from '../../kube/error-text.ts';
import { HttpsTransport } from '../../kube/https-transport.ts';
import type { Resource } from '../../kube/resource.ts';

/**
 * How a machine that knows a server's address and the fingerprint of its authority gets hold of the authority itself: it
 * takes it from anybody, and believes in it only if it has that fingerprint. Nothing secret is sent before that. The
 * fingerprint is kubeadm's, of the public key; the authority is looked for in the chain that the server shows, and,
 * where it shows none, in the ConfigMap that kubeadm publishes for that purpose.
 */

const FINGERPRINT = /^sha256:([0-9a-f]{64})$/;

const TIMEOUT_MS = 10_000;
/** Longer chains are no chains. */
const CHAIN_LENGTH_MAX = 10;

const configMaps: Resource<KubeObject & { data?: Record<string, string> }> = {
  group: '',
  version: 'v1',
  plural: 'configmaps',
  kind: 'ConfigMap',
  namespaced: true,
};

/** `sha256:` and the hash of a certificate's public key, as `kubeadm` prints it. */
export function fingerprintOf(certificate: X509Certificate): string {
  const key = certificate.publicKey.export({ type: 'spki', format: 'der' });
  return `sha256:${createHash('sha256').update(key).digest('hex')}`;
}

/** The certificates in a PEM text, one after the other. */
export function certificatesIn(pem: string | undefined): X509Certificate[] {
  const blocks = pem?.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  return blocks.map((block) => new X509Certificate(block));
}

/** The authority of the server that has this fingerprint, PEM. Rejects with one sentence saying why not. */
export async function pinnedAuthority(
  env: Env,
  server: string,
  fingerprint: string,
  signal: AbortSignal,
): Promise<string> {
  if (!FINGERPRINT.test(fingerprint)) throw new Error(`${fingerprint} is no fingerprint: it begins with sha256:`);
  const problems: string[] = [];
  for (const find of [() => shownAuthorities(env, server), () => publishedAuthorities(env, server, signal)]) {
    try {
      const found = (await find()).find((each) => each.ca && fingerprintOf(each) === fingerprint);
      if (found) return found.toString();
      problems.push('there is none with that fingerprint');
    } catch (error) {
      problems.push(errorText(error));
    }
  }
  throw new Error(
    `the authority of ${server} cannot be had: in what the server shows: ${problems[0]}; in the ConfigMap cluster-info: ${problems[1]}`,
  );
}

/** What comes with the server's certificate. */
function shownAuthorities(env: Env, server: string): Promise<X509Certificate[]> {
  const { hostname, port } = new URL(server);
  const host = hostname.replace(/^\[|\]$/g, '');
  return new Promise((resolve, reject) => {
    const socket = connect({
      host,
      port: port === '' ? 443 : Number(port),
      // The fingerprint decides, not the system's authorities.
      rejectUnauthorized: false,
      ...(isIP(host) ? {} : { servername: host }),
    });
    const timer = env.clock.setTimer(() => socket.destroy(new Error('no answer')), TIMEOUT_MS);
    socket.once('error', reject);
    socket.once('close', () => timer.cancel());
    socket.once('secureConnect', () => {
      const chain: X509Certificate[] = [];
      let next: DetailedPeerCertificate | undefined = socket.getPeerCertificate(true);
      while (next?.raw && chain.length < CHAIN_LENGTH_MAX) {
        chain.push(new X509Certificate(next.raw));
        next = next.issuerCertificate === next ? undefined : next.issuerCertificate;
      }
      socket.destroy();
      resolve(chain);
    });
  });
}

/** What is published to everybody. */
async function publishedAuthorities(env: Env, server: string, signal: AbortSignal): Promise<X509Certificate[]> {
  const access: ClusterAccess = {
    server,
    namespace: 'kube-public',
    isInsecure: true,
    impersonation: {},
    authorities: async () => undefined,
    credentials: async () => ({}),
    refused: () => undefined,
  };
  const transport = new HttpsTransport({ access, env });
  try {
    const client = new Client(transport, 'godwit-agent');
    const { data } = await client.get(configMaps, 'kube-public', 'cluster-info', signal);
    const config = parse(data?.['kubeconfig'] ?? '') as {
      clusters?: { cluster?: { 'certificate-authority-data'?: string } }[];
    } | null;
    const pem = Buffer.from(config?.clusters?.[0]?.cluster?.['certificate-authority-data'] ?? '', 'base64').toString();
    return certificatesIn(pem);
  } finally {
    transport.close();
  }
}
