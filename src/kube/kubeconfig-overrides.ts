import { resolve } from 'node:path';
import type { Entry } from './kubeconfig-cluster.ts';
import { Fields } from './kubeconfig-fields.ts';
import { KubeconfigError } from './kubeconfig-ports.ts';

/** What is said on a command line instead of what a kubeconfig says, by kubectl's flags; pure. */

export interface KubeconfigOverrides {
  /** The entry of the kubeconfig to use, whatever the context says. */
  readonly cluster?: string;
  readonly user?: string;
  readonly server?: string;
  readonly tlsServerName?: string;
  readonly insecureSkipTlsVerify?: boolean;
  /** Files, from the working directory on. */
  readonly certificateAuthority?: string;
  readonly clientCertificate?: string;
  readonly clientKey?: string;
  readonly token?: string;
  readonly as?: string;
  readonly asGroup?: readonly string[];
  readonly asUid?: string;
}

/** What is there where no kubeconfig is. */
export const NOTHING: Entry = { fields: Fields.of('the command line', '', {}), directory: '/' };

/** A cluster, with what was said of it. As with kubectl, another server has no name that the old one went by. */
export function overriddenCluster({ fields, directory }: Entry, overrides: KubeconfigOverrides): Entry {
  const { server, tlsServerName, certificateAuthority, insecureSkipTlsVerify = false } = overrides;
  if (server !== undefined && !isHttps(server)) throw new KubeconfigError(`--server ${server} is no https URL`);
  const isVerifiedAnew = insecureSkipTlsVerify || certificateAuthority !== undefined;
  const changes = {
    ...(server === undefined ? {} : { server }),
    ...(server === undefined && tlsServerName === undefined ? {} : { 'tls-server-name': tlsServerName }),
    ...(isVerifiedAnew
      ? {
          'insecure-skip-tls-verify': insecureSkipTlsVerify,
          'certificate-authority': certificateAuthority === undefined ? undefined : resolve(certificateAuthority),
          'certificate-authority-data': undefined,
        }
      : {}),
  };
  return { fields: fields.changed('cluster', changes), directory };
}

function isHttps(server: string): boolean {
  return URL.canParse(server) && new URL(server).protocol === 'https:';
}

/** All that a user of a kubeconfig may be known by. */
const CREDENTIALS = [
  'auth-provider',
  'client-certificate',
  'client-certificate-data',
  'client-key',
  'client-key-data',
  'exec',
  'password',
  'token',
  'tokenFile',
  'username',
] as const;

/**
 * A user, with what was said of them. Who names a token or a certificate wants to be known by that alone: a server that is
 * shown the certificate of the kubeconfig as well would look no further.
 */
export function overriddenUser({ fields, directory }: Entry, overrides: KubeconfigOverrides): Entry {
  const { token, clientCertificate, clientKey } = overrides;
  if ((clientCertificate === undefined) !== (clientKey === undefined))
    throw new KubeconfigError('--client-certificate and --client-key go together: give both, or neither');
  const credentials = {
    ...(token === undefined ? {} : { token }),
    ...(clientCertificate === undefined ? {} : { 'client-certificate': resolve(clientCertificate) }),
    ...(clientKey === undefined ? {} : { 'client-key': resolve(clientKey) }),
  };
  const none = Object.fromEntries(CREDENTIALS.map((name) => [name, undefined]));
  const known = Object.keys(credentials).length === 0 ? {} : { ...none, ...credentials };
  const impersonation = impersonated(fields.object('user'), overrides);
  return { fields: fields.changed('user', { ...known, ...impersonation }), directory };
}

/** Who names somebody to be treated as means nobody whom the kubeconfig names. */
function impersonated(user: Fields, { as, asGroup, asUid }: KubeconfigOverrides): Readonly<Record<string, unknown>> {
  if (as === undefined && (asGroup ?? asUid) !== undefined && !user.has('as'))
    throw new KubeconfigError('--as-group and --as-uid need --as, which says whom to be treated as');
  return {
    ...(as === undefined ? {} : { as, 'as-groups': undefined, 'as-uid': undefined, 'as-user-extra': undefined }),
    ...(asGroup === undefined ? {} : { 'as-groups': asGroup }),
    ...(asUid === undefined ? {} : { 'as-uid': asUid }),
  };
}
