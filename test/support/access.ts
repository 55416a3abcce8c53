import { parse } from 'yaml';
import type { Access } from './godwit.ts';

/** The first cluster of a kubeconfig, and its first user, whose credentials must be within. */
export function accessIn(kubeconfig: string): Access {
  const { clusters, users } = parse(kubeconfig) as {
    clusters: { cluster: { server: string; 'certificate-authority-data': string } }[];
    users: { user: { 'client-certificate-data': string; 'client-key-data': string } }[];
  };
  const decode = (text = ''): string => Buffer.from(text, 'base64').toString('utf8');
  return {
    url: clusters[0]?.cluster.server ?? '',
    ca: decode(clusters[0]?.cluster['certificate-authority-data']),
    certificate: decode(users[0]?.user['client-certificate-data']),
    key: decode(users[0]?.user['client-key-data']),
  };
}
