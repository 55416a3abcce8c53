import { parse } from 'yaml';
import type { Access } from './godwit.ts';

/** The one cluster of a kubeconfig, and its one user, whose credentials must be within. */
export function accessIn(kubeconfig: string): Access {
  const { clusters = [], users = [] } = parse(kubeconfig) as {
    clusters?: { cluster: { server: string; 'certificate-authority-data': string } }[];
    users?: { user: { 'client-certificate-data': string; 'client-key-data': string } }[];
  };
  const decode = (text = ''): string => Buffer.from(text, 'base64').toString('utf8');
  // Which of several is meant others might see otherwise.
  if (clusters.length !== 1 || users.length !== 1)
    throw new Error(
      'the kubeconfig has to have one cluster and one user: kubectl config view --raw --minify --flatten',
    );
  const access = {
    url: clusters[0]?.cluster.server ?? '',
    ca: decode(clusters[0]?.cluster['certificate-authority-data']),
    certificate: decode(users[0]?.user['client-certificate-data']),
    key: decode(users[0]?.user['client-key-data']),
  };
  const missing = Object.entries(access).flatMap(([name, value]) => (value === '' ? [name] : []));
  if (missing.length > 0)
    throw new Error(
      `the kubeconfig has no ${missing.join(', ')} of its cluster and user within: a client certificate is needed, and kubectl config view --raw --minify --flatten puts it there`,
    );
  return access;
}
