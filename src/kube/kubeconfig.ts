import { dirname, join, resolve } from 'node:path';
import { parse } from 'yaml';
import type { ClusterAccess } from './cluster-access.ts';
import { Fields } from './kubeconfig-fields.ts';
import { KubeconfigError, type KubeconfigPorts } from './kubeconfig-ports.ts';
import { type KubeconfigOverrides, NOTHING, overriddenCluster, overriddenUser } from './kubeconfig-overrides.ts';
import { identityOf, impersonationOf } from './kubeconfig-user.ts';
import { type Entry, placeOf } from './kubeconfig-cluster.ts';
import { RereadFile } from './reread-file.ts';

/** From a kubeconfig, or a pod's own files, to what it takes to talk to its cluster; as kubectl finds and reads them. */

export interface KubeconfigOptions {
  readonly ports: KubeconfigPorts;
  /** The one file to read; otherwise those of `KUBECONFIG`, or `~/.kube/config`, or the pod's own. */
  readonly path?: string;
  /** The context to use; otherwise the current one. */
  readonly context?: string;
  /** What is said instead of what is found. */
  readonly overrides?: KubeconfigOverrides;
}

const SERVICE_ACCOUNT = 'the service account of this pod';
const POD_DIRECTORY = '/var/run/secrets/kubernetes.io/serviceaccount';

/** A section's entries by name, over all files: the first file that has a name has the say. */
interface Merged {
  readonly clusters: Map<string, Entry>;
  readonly users: Map<string, Entry>;
  readonly contexts: Map<string, Entry>;
  currentContext: string | undefined;
}

/** Rejects with KubeconfigError. Every file that is named has been read once when it resolves. */
export async function loadKubeconfig(options: KubeconfigOptions): Promise<ClusterAccess> {
  const { ports } = options;
  const files = pathsOf(options);
  const merged: Merged = { clusters: new Map(), users: new Map(), contexts: new Map(), currentContext: undefined };
  let isFound = false;
  for (const file of files) {
    const text = await readIfThere(ports, file, options.path !== undefined);
    if (text === undefined) continue;
    isFound = true;
    merge(merged, file, text);
  }
  // Who says where the server is needs no file that does.
  if (isFound || options.overrides?.server !== undefined) return chosenAccess(merged, options, files);
  if (ports.environment['KUBERNETES_SERVICE_HOST']) return podAccess(options);
  throw new KubeconfigError(
    `there is no kubeconfig: ${files.join(' and ')} ${files.length === 1 ? 'does' : 'do'} not exist, and this is no pod of a cluster`,
  );
}

function pathsOf({ path, ports }: KubeconfigOptions): string[] {
  if (path !== undefined) return [resolve(path)];
  const listed = (ports.environment['KUBECONFIG'] ?? '').split(':').filter((file) => file !== '');
  if (listed.length === 0) return [join(ports.homeDirectory, '.kube', 'config')];
  return [...new Set(listed.map((file) => resolve(file)))];
}

async function readIfThere(ports: KubeconfigPorts, file: string, isRequired: boolean): Promise<string | undefined> {
  try {
    return await ports.readFile(file);
  } catch (error) {
    const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT';
    if (isMissing && !isRequired) return undefined;
    throw new KubeconfigError(
      isMissing ? `${file} does not exist` : `cannot read ${file}: ${(error as Error).message}`,
      error,
    );
  }
}

function merge(merged: Merged, file: string, text: string): void {
  const fields = Fields.of(file, '', parsed(file, text));
  const kind = fields.text('kind');
  if (kind !== undefined && kind !== 'Config') throw fields.error('kind', `is ${kind}, which is no kubeconfig`);
  merged.currentContext ??= fields.text('current-context');
  const directory = dirname(file);
  for (const section of ['clusters', 'users', 'contexts'] as const) {
    const own = new Set<string>();
    for (const entry of fields.list(section)) {
      const name = entry.requiredText('name');
      if (own.has(name)) throw new KubeconfigError(`${entry.where}.name repeats ${JSON.stringify(name)}`);
      own.add(name);
      if (!merged[section].has(name)) merged[section].set(name, { fields: entry, directory });
    }
  }
}

function parsed(file: string, text: string): unknown {
  try {
    return parse(text) as unknown;
  } catch (error) {
    const [firstLine = ''] = (error as Error).message.split('\n');
    throw new KubeconfigError(`${file} is no YAML: ${firstLine.replace(/:$/, '')}`, error);
  }
}

/** The access that a context of the files names, as far as nothing else was said. */
async function chosenAccess(
  merged: Merged,
  options: KubeconfigOptions,
  files: readonly string[],
): Promise<ClusterAccess> {
  const { overrides = {}, context: name = merged.currentContext } = options;
  const where = files.join(', ');
  const isPlaced = (overrides.server ?? overrides.cluster) !== undefined;
  if (name === undefined && !isPlaced)
    throw new KubeconfigError(`${where}: current-context is not set; name a context`);
  const fields = (name === undefined ? NOTHING : namedEntry(merged, 'context', name, where)).fields.object('context');
  const clusterName =
    overrides.cluster ?? (overrides.server === undefined ? fields.requiredText('cluster') : fields.text('cluster'));
  const userName = overrides.user ?? fields.text('user');
  if (overrides.cluster === undefined && clusterName !== undefined && !merged.clusters.has(clusterName))
    throw fields.error('cluster', `names ${JSON.stringify(clusterName)}, which is not there`);
  if (overrides.user === undefined && userName !== undefined && !merged.users.has(userName))
    throw fields.error('user', `names ${JSON.stringify(userName)}, which is not there`);
  const cluster = clusterName === undefined ? NOTHING : namedEntry(merged, 'cluster', clusterName, where);
  const user = userName === undefined ? NOTHING : namedEntry(merged, 'user', userName, where);
  const access = await accessOf(cluster, user, fields.text('namespace') ?? 'default', options);
  return name === undefined ? access : { ...access, context: name };
}

/** Throws where there is none of the name. */
function namedEntry(merged: Merged, kind: 'cluster' | 'user' | 'context', name: string, where: string): Entry {
  const entries = merged[`${kind}s`];
  const entry = entries.get(name);
  if (entry) return entry;
  const known = [...entries.keys()].join(', ') || 'none';
  throw new KubeconfigError(`${where}: there is no ${kind} ${JSON.stringify(name)}; there are ${known}`);
}

async function accessOf(
  clusterEntry: Entry,
  userEntry: Entry,
  namespace: string,
  { ports, overrides = {} }: KubeconfigOptions,
): Promise<ClusterAccess> {
  const cluster = overriddenCluster(clusterEntry, overrides);
  const user = overriddenUser(userEntry, overrides);
  const place = await placeOf(cluster, ports);
  const identity = identityOf(user, cluster, place, ports);
  await identity.check();
  return {
    ...place,
    namespace,
    impersonation: impersonationOf(user.fields.object('user')),
    credentials: (signal) => identity.credentials(signal),
    refused: () => identity.refused(),
  };
}

/** What the kubelet gives every pod, wherever there is a kubeconfig besides. Rejects with KubeconfigError where this is none. */
export async function podAccess(options: Pick<KubeconfigOptions, 'ports' | 'overrides'>): Promise<ClusterAccess> {
  const { ports } = options;
  const { KUBERNETES_SERVICE_HOST: host = '', KUBERNETES_SERVICE_PORT: port = '443' } = ports.environment;
  if (host === '') throw new KubeconfigError('KUBERNETES_SERVICE_HOST is not set: this is no pod of a cluster');
  const text = (name: string): Promise<string> =>
    new RereadFile(ports, `${POD_DIRECTORY}/${name}`, SERVICE_ACCOUNT).text();
  await Promise.all([text('token'), text('ca.crt')]);
  const server = `https://${host.includes(':') ? `[${host}]` : host}:${port}`;
  if (!URL.canParse(server)) throw new KubeconfigError(`KUBERNETES_SERVICE_HOST and _PORT make no URL: ${server}`);
  const entry: Entry = {
    fields: Fields.of(SERVICE_ACCOUNT, '', {
      cluster: { server, 'certificate-authority': 'ca.crt' },
      user: { tokenFile: 'token' },
    }),
    directory: POD_DIRECTORY,
  };
  return accessOf(entry, entry, await text('namespace'), options);
}
