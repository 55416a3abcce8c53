import { X509Certificate } from 'node:crypto';
import { dirname, join } from 'node:path';
import { stringify } from 'yaml';
import { ApiError } from '../../api/status.ts';
import type { Env } from '../../env/ports.ts';
import { Client } from '../../kube/client.ts';
import type { ClusterAccess, Credentials } from '../../kube/cluster-access.ts';
import { HttpsTransport } from '../../kube/https-transport.ts';
import { NODE_USER_PREFIX } from '../../machinery/node-user.ts';
import { CertificateFile, type IdentityFiles, type NodeCertificate } from './certificate-file.ts';
import { clientWish, servingWish } from './certificate-wish.ts';
import { ManagedCertificate } from './managed-certificate.ts';
import { certificatesIn, fingerprintOf, pinnedAuthority } from './pinned-authority.ts';

/** How a machine becomes a node, and stays one: as kubelets do it. */

/** What a machine knows that is to join. */
export type Bootstrap =
  /** A kubeconfig with a bootstrap token. */
  | { readonly kind: 'access'; readonly access: ClusterAccess }
  /** What `godwit token create` prints. */
  | { readonly kind: 'pinned'; readonly server: string; readonly token: string; readonly authorityFingerprint: string };

export interface JoinOptions {
  readonly env: Env;
  readonly files: IdentityFiles;
  readonly node: string;
  /** Where the node's keys and certificates are kept; nobody else may read there. */
  readonly directory: string;
  /** The node's own kubeconfig: where there is none yet it is written, by means of the bootstrap. */
  readonly kubeconfigPath: string;
  /** Reads the node's own kubeconfig; undefined where there is none. */
  readonly ownAccess: () => Promise<ClusterAccess | undefined>;
  readonly bootstrap: Bootstrap | undefined;
  /** Makes the one client of the node; it asks for certificates too. */
  readonly connect: (access: ClusterAccess) => Client;
}

/** A node that has joined. */
export interface NodeIdentity {
  /** Speaks as the node, always with its newest certificate. */
  readonly access: ClusterAccess;
  readonly client: Client;
  /** Renews what the node shows as a client; undefined for one whose kubeconfig has credentials of its own. */
  readonly clientCertificate: ManagedCertificate | undefined;
}

const CLIENT_FILE = 'client.pem';
const SERVING_FILE = 'serving.pem';

/**
 * The node's identity: what is on disk, if that is still good; else a new one by the bootstrap token; else whatever its
 * kubeconfig says. Waits for approval for as long as that takes. Rejects with one sentence saying what is missing.
 */
export async function joinCluster(options: JoinOptions, signal: AbortSignal): Promise<NodeIdentity> {
  const { env, files, node, directory, bootstrap, connect, kubeconfigPath } = options;
  await files.makeDirectory(directory, { mode: 0o700 });
  const own = await options.ownAccess();
  const path = join(directory, CLIENT_FILE);
  const file = new CertificateFile(files, path);
  let client: Client | undefined;
  const certificate = new ManagedCertificate({
    env,
    name: 'client certificate of the node',
    file,
    wish: clientWish(node),
    // Whoever renews speaks as the node, by the certificate that there is.
    client: () => client ?? notJoined(),
  });
  const stored = await certificate.load();
  if (!stored && !bootstrap) {
    const isStale = await file.exists();
    if (own && !isStale) return { access: own, client: connect(own), clientCertificate: undefined };
    const problem = isStale
      ? `${path} has expired, or is not for the node ${node}`
      : `${kubeconfigPath} does not exist`;
    throw new Error(
      `${problem}: join with a bootstrap token, which \`godwit token create\` makes where the cluster is`,
    );
  }
  const from = bootstrap && (await bootstrapAccess(env, bootstrap, own, signal));
  const place = from ?? own;
  if (!place) throw new Error(`${path} is there, but ${kubeconfigPath} does not say where the cluster is`);
  if (from) {
    if (!stored || !isSignedBy(stored, await from.authorities())) await ask(env, from, certificate, signal);
    await writeKubeconfig(options, from, path);
  }
  const access = accessOf(place, certificate);
  client = connect(access);
  return { access, client, clientCertificate: certificate };
}

function notJoined(): never {
  throw new Error('the node has not joined');
}

/** Asks for the node's first certificate, as the bearer of a bootstrap token. */
async function ask(
  env: Env,
  access: ClusterAccess,
  certificate: ManagedCertificate,
  signal: AbortSignal,
): Promise<void> {
  const transport = new HttpsTransport({ access, env });
  try {
    await certificate.renew(new Client(transport, 'godwit-agent'), signal);
  } catch (error) {
    if (!(error instanceof ApiError && error.code === 401)) throw error;
    const advice = 'it may have expired; `godwit token create` makes another';
    throw new Error(`${access.server} does not accept the bootstrap token: ${advice}`, { cause: error });
  } finally {
    transport.close();
  }
}

/** The certificate that the node's server shows; asked for once `after` has come: the Node has to have its addresses. */
export async function servingCertificate(options: {
  readonly env: Env;
  readonly files: IdentityFiles;
  readonly node: string;
  readonly directory: string;
  readonly addresses: readonly string[];
  /** The address of the API server. */
  readonly server: string;
  readonly client: Client;
  readonly after: Promise<void>;
}): Promise<ManagedCertificate> {
  const { env, files, node, directory, addresses, server, client, after } = options;
  await files.makeDirectory(directory, { mode: 0o700 });
  const certificate = new ManagedCertificate({
    env,
    name: 'serving certificate of the node',
    file: new CertificateFile(files, join(directory, SERVING_FILE)),
    wish: servingWish(node, addresses, server),
    client: () => client,
    after,
  });
  await certificate.load();
  return certificate;
}

async function bootstrapAccess(
  env: Env,
  bootstrap: Bootstrap,
  own: ClusterAccess | undefined,
  signal: AbortSignal,
): Promise<ClusterAccess> {
  if (bootstrap.kind === 'access') return bootstrap.access;
  const { server, token, authorityFingerprint } = bootstrap;
  // A node that has joined before can start while its server is away.
  const known = own?.server === server ? certificatesIn(await own.authorities()) : [];
  const authority =
    known.find((each) => fingerprintOf(each) === authorityFingerprint)?.toString() ??
    (await pinnedAuthority(env, server, authorityFingerprint, signal));
  return {
    server,
    namespace: 'default',
    isInsecure: false,
    impersonation: {},
    authorities: async () => authority,
    credentials: async () => ({ authorization: `Bearer ${token}` }),
    refused: () => undefined,
  };
}

/** The same cluster, seen by the node. */
function accessOf(place: ClusterAccess, certificate: ManagedCertificate): ClusterAccess {
  const { server, serverName, isInsecure, namespace } = place;
  return {
    server,
    namespace,
    isInsecure,
    ...(serverName === undefined ? {} : { serverName }),
    impersonation: {},
    authorities: () => place.authorities(),
    credentials: async (): Promise<Credentials> => {
      const { current } = certificate;
      return current ? { certificate: current.certificatePem, key: current.keyPem } : {};
    },
    refused: () => undefined,
  };
}

/** Whether a cluster's authority has signed it: a cluster that was made anew under the same address has not. */
function isSignedBy(certificate: NodeCertificate, authorities: string | undefined): boolean {
  const leaf = new X509Certificate(certificate.certificatePem);
  return certificatesIn(authorities).some(({ publicKey }) => leaf.verify(publicKey));
}

/** For the next start, and for people: it refers to the certificate's file, which is replaced from time to time. */
async function writeKubeconfig(
  { files, node, kubeconfigPath }: JoinOptions,
  place: ClusterAccess,
  certificatePath: string,
): Promise<void> {
  const authorities = await place.authorities();
  const user = `${NODE_USER_PREFIX}${node}`;
  const cluster = {
    server: place.server,
    ...(place.serverName === undefined ? {} : { 'tls-server-name': place.serverName }),
    ...(place.isInsecure ? { 'insecure-skip-tls-verify': true } : {}),
    ...(authorities === undefined ? {} : { 'certificate-authority-data': Buffer.from(authorities).toString('base64') }),
  };
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'cluster', cluster }],
    users: [{ name: user, user: { 'client-certificate': certificatePath, 'client-key': certificatePath } }],
    contexts: [{ name: 'node', context: { cluster: 'cluster', user } }],
    'current-context': 'node',
    preferences: {},
  };
  await files.makeDirectory(dirname(kubeconfigPath), { mode: 0o700 });
  await files.replace(kubeconfigPath, Buffer.from(stringify(config, { lineWidth: 0 })), { mode: 0o600 });
}
