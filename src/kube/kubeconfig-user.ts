import { resolve } from 'node:path';
import type { ClusterAccess, Credentials } from './cluster-access.ts';
import { EXEC_VERSIONS, ExecCredentials } from './exec-credential.ts';
import { clusterInfo, type Entry, fileOf, type Place } from './kubeconfig-cluster.ts';
import type { Fields } from './kubeconfig-fields.ts';
import type { KubeconfigPorts } from './kubeconfig-ports.ts';

/** The `user` of a kubeconfig: who asks, and how that is shown. */

/** Who somebody is, from wherever that is known. */
export interface Identity {
  credentials(signal: AbortSignal): Promise<Credentials>;
  refused(): void;
  /** Rejects if it cannot work. Runs no programs. */
  check(): Promise<void>;
}

/** Throws KubeconfigError. */
export function identityOf(
  { fields: entry, directory }: Entry,
  cluster: Entry,
  place: Place,
  ports: KubeconfigPorts,
): Identity {
  const fields = entry.object('user');
  if (fields.has('auth-provider'))
    throw fields.error('auth-provider', 'is set, which Kubernetes has removed; use an exec plug-in instead');
  if (fields.has('exec')) return programIdentity(fields.object('exec'), directory, cluster, place, ports);
  return storedIdentity(fields, directory, ports);
}

/** Tokens, certificates and passwords from the kubeconfig itself or from files. */
function storedIdentity(fields: Fields, directory: string, ports: KubeconfigPorts): Identity {
  const token = fields.text('token');
  const [username, password] = [fields.text('username'), fields.text('password')];
  const files = {
    token: fileOf(fields, 'tokenFile', directory, ports),
    certificate: fileOf(fields, 'client-certificate', directory, ports),
    key: fileOf(fields, 'client-key', directory, ports),
  };
  const [certificate, key] = [fields.pem('client-certificate-data'), fields.pem('client-key-data')];
  if ((certificate ?? files.certificate) && !(key ?? files.key)) throw fields.error('client-key', 'is missing');
  if ((key ?? files.key) && !(certificate ?? files.certificate)) throw fields.error('client-certificate', 'is missing');
  const basic = username === undefined ? undefined : Buffer.from(`${username}:${password ?? ''}`).toString('base64');
  const credentials = async (): Promise<Credentials> => {
    const bearer = (await files.token?.text()) ?? token;
    const authorization = bearer === undefined ? basic && `Basic ${basic}` : `Bearer ${bearer}`;
    const ownCertificate = certificate ?? (await files.certificate?.text());
    const ownKey = key ?? (await files.key?.text());
    return {
      ...(authorization === undefined ? {} : { authorization }),
      ...(ownCertificate === undefined ? {} : { certificate: ownCertificate, key: ownKey }),
    };
  };
  return {
    credentials,
    refused: () => {
      for (const file of Object.values(files)) file?.forget();
    },
    check: async () => void (await credentials()),
  };
}

function programIdentity(
  fields: Fields,
  directory: string,
  cluster: Entry,
  place: Place,
  ports: KubeconfigPorts,
): Identity {
  const apiVersion = fields.requiredText('apiVersion');
  if (!EXEC_VERSIONS.includes(apiVersion))
    throw fields.error('apiVersion', `is ${apiVersion}; supported are ${EXEC_VERSIONS.join(' and ')}`);
  const mode = fields.text('interactiveMode');
  if (mode === 'Always') throw fields.error('interactiveMode', 'is Always, but there is nobody to interact with');
  const command = fields.requiredText('command');
  const source = new ExecCredentials(
    {
      apiVersion,
      // Only names without a slash are looked for in the PATH.
      command: command.includes('/') ? resolve(directory, command) : command,
      args: fields.texts('args'),
      environment: fields.list('env').map((each) => ({
        name: each.requiredText('name'),
        value: each.text('value') ?? '',
      })),
      installHint: fields.text('installHint'),
      cluster: fields.flag('provideClusterInfo') ? () => clusterInfo(cluster, place) : undefined,
      where: fields.where,
    },
    ports,
  );
  return {
    credentials: () => source.credentials(),
    refused: () => source.forget(),
    check: async () => undefined,
  };
}

/** The headers by which a user asks to be treated as another. */
export function impersonationOf(fields: Fields): ClusterAccess['impersonation'] {
  const user = fields.text('as');
  const groups = fields.texts('as-groups');
  const uid = fields.text('as-uid');
  const extra = fields.object('as-user-extra');
  const headers: Record<string, string | readonly string[]> = {};
  if (user !== undefined) headers['impersonate-user'] = user;
  else if (groups.length > 0 || uid !== undefined || extra.names().length > 0) throw fields.error('as', 'is missing');
  if (groups.length > 0) headers['impersonate-group'] = groups;
  if (uid !== undefined) headers['impersonate-uid'] = uid;
  for (const name of extra.names())
    headers[`impersonate-extra-${encodeURIComponent(name.toLowerCase())}`] = extra.texts(name);
  return headers;
}
