import { stringify } from 'yaml';
import type { Identity } from '../../machinery/x509/authority.ts';
import type { ClusterPki } from './cluster-pki.ts';

/**
 * The text of a kubeconfig with everything embedded: one cluster, one user (by default the admin), one context, which
 * is current. It holds a private key: whoever writes it makes the file private.
 */
export function kubeconfigFor(
  pki: Pick<ClusterPki, 'clusterAuthority' | 'admin'>,
  serverUrl: string,
  user: { readonly name: string; readonly identity: Identity } = { name: 'kubernetes-admin', identity: pki.admin },
  clusterName = 'godwit',
): string {
  const contextName = `${user.name}@${clusterName}`;
  const document = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      {
        name: clusterName,
        cluster: { server: serverUrl, 'certificate-authority-data': base64(pki.clusterAuthority.certificatePem) },
      },
    ],
    users: [
      {
        name: user.name,
        user: {
          'client-certificate-data': base64(user.identity.certificatePem),
          'client-key-data': base64(user.identity.keyPem),
        },
      },
    ],
    contexts: [{ name: contextName, context: { cluster: clusterName, user: user.name } }],
    'current-context': contextName,
    preferences: {},
  };
  return stringify(document, { lineWidth: 0 });
}

function base64(text: string): string {
  return Buffer.from(text, 'utf8').toString('base64');
}
