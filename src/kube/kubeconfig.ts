import { dirname, join, resolve } from 'node:path';
import { parse } from 'yaml';
import type { ClusterAccess } from './cluster-access.ts';
import { Fields } from './kubeconfig-fields.ts';
import { KubeconfigError, type KubeconfigPorts } from './kubeconfig-ports.ts';
import { ANONYMOUS, identityOf, impersonationOf } from './kubeconfig-user.ts';
import { type Entry, placeOf } from './kubeconfig-cluster.ts';
import { RereadFile } from './reread-file.ts';

/** From a kubeconfig, or a pod's own files, to what it takes to talk to its cluster; as kubectl finds and reads them. */

export interface KubeconfigOptions {
  readonly ports: KubeconfigPorts;
  /** The one file to read; otherwise those of `KUBECONFIG`, or `~/.kube/config`, or the pod's own. */
  readonly path?: string;
  /** The context to use; otherwise the current one. */
  readonly context?: string;
}

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
  if (isFound) return accessOf(merged, options, files);
  if (ports.environment['KUBERNETES_SERVICE_HOST']) return podAccess(ports);
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

async function accessOf(merged: Merged, options: KubeconfigOptions, files: readonly string[]): Promise<ClusterAccess> {
  const name = options.context ?? merged.currentContext;
  if (name === undefined) throw new KubeconfigError(`${files.join(', ')}: current-context is not set; name a context`);
  const context = merged.contexts.get(name);
  if (!context) {
    const known = [...merged.contexts.keys()].join(', ') || 'none';
    throw new KubeconfigError(`${files.join(', ')}: there is no context ${JSON.stringify(name)}; there are ${known}`);
  }
  const fields = context.fields.object('context');
  const cluster = merged.clusters.get(fields.requiredText('cluster'));
  if (!cluster) throw fields.error('cluster', `names ${JSON.stringify(fields.text('cluster'))}, which is not there`);
  const userName = fields.text('user');
  const user = userName === undefined ? undefined : merged.users.get(userName);
  if (userName !== undefined && !user)
    throw fields.error('user', `names ${JSON.stringify(userName)}, which is not there`);
  const place = await placeOf(cluster, options.ports);
  const identity = user ? identityOf(user, cluster, place, options.ports) : ANONYMOUS;
  await identity.check();
  return {
    ...place,
    context: name,
    namespace: fields.text('namespace') ?? 'default',
    impersonation: user ? impersonationOf(user.fields.object('user')) : {},
    credentials: (signal) => identity.credentials(signal),
    refused: () => identity.refused(),
  };
}

/** What the kubelet gives every pod. */
async function podAccess(ports: KubeconfigPorts): Promise<ClusterAccess> {
  const { KUBERNETES_SERVICE_HOST: host = '', KUBERNETES_SERVICE_PORT: port = '443' } = ports.environment;
  const file = (name: string): RereadFile =>
    new RereadFile(ports, `${POD_DIRECTORY}/${name}`, 'the service account of this pod');
  const [token, authority] = [file('token'), file('ca.crt')];
  await Promise.all([token.text(), authority.text()]);
  const server = `https://${host.includes(':') ? `[${host}]` : host}:${port}`;
  if (!URL.canParse(server)) throw new KubeconfigError(`KUBERNETES_SERVICE_HOST and _PORT make no URL: ${server}`);
  return {
    server,
    namespace: await file('namespace').text(),
    isInsecure: false,
    impersonation: {},
    authorities: () => authority.text(),
    credentials: async () => ({ authorization: `Bearer ${await token.text()}` }),
    refused: () => token.forget(),
  };
}
