import type { Client } from '../../kube/client.ts';
import type { Informer } from '../../kube/informer.ts';
import { deepEqual } from '../../machinery/equal.ts';
import { configMaps } from '../resources.ts';
import type { ConfigMap } from './objects.ts';

/** The ConfigMap of every namespace that says how to know the API server. */
export const ROOT_CERTIFICATE_NAME = 'kube-root-ca.crt';
/** Where the server says which authority signs certificates: here it is one for its own and for those of its clients. */
export const AUTHORITY = { namespace: 'kube-system', name: 'extension-apiserver-authentication' };

const DESCRIPTION = 'kubernetes.io/description';
const DESCRIPTION_TEXT =
  'Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.';

/** The authority's certificate, in PEM; undefined until the server has said. */
export function authorityOf(authorities: Pick<Informer<ConfigMap>, 'get'>): string | undefined {
  return authorities.get(`${AUTHORITY.namespace}/${AUTHORITY.name}`)?.data?.['client-ca-file'];
}

/** Makes the ConfigMap of a namespace, and mends it where it has been changed. */
export async function ensureRootCertificate(
  client: Client,
  published: Pick<Informer<ConfigMap>, 'get'>,
  certificate: string,
  namespace: string,
  signal: AbortSignal,
): Promise<void> {
  const known = published.get(`${namespace}/${ROOT_CERTIFICATE_NAME}`);
  const data = { 'ca.crt': certificate };
  if (known && deepEqual(known.data, data) && known.metadata.annotations?.[DESCRIPTION]) return;
  const metadata = known?.metadata ?? { name: ROOT_CERTIFICATE_NAME, namespace };
  const annotations = { ...metadata.annotations, [DESCRIPTION]: DESCRIPTION_TEXT };
  const wanted = { apiVersion: 'v1', kind: 'ConfigMap', ...known, metadata: { ...metadata, annotations }, data };
  if (known) await client.update(configMaps, wanted, signal);
  else await client.create(configMaps, wanted, signal);
}
