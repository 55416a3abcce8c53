import { numberAt, objectAt, objectsAt, textAt } from '../../api/kinds/core/fields.ts';
import type { KubeObject } from '../../api/meta.ts';
import { notFound } from '../../api/status.ts';
import type { Backend, BackendError } from '../aggregation/backend.ts';
import type { Registry } from '../registry/contract.ts';

/** Where a node's own server is: its kubelet's, or that of our agent. */

/** How a node is best reached, as kubeadm tells the API server. */
const ADDRESS_TYPES = ['InternalIP', 'ExternalIP', 'Hostname', 'InternalDNS', 'ExternalDNS'];
const KUBELET_PORT = 10_250;

/**
 * The backend of a node. Its certificate must bear the node's own name: an address is what a node says itself, and two
 * may say the same. Throws 404 where there is no such node.
 */
export function nodeBackend(registry: Pick<Registry, 'view'>, name: string, caBundle: string): Backend {
  const node = registry.view('nodes').get('', name);
  if (!node) throw notFound({ group: '', plural: 'nodes' }, name);
  return { addresses: addressesOf(node), serverName: name, caBundle, isInsecure: false };
}

function addressesOf(node: KubeObject): Backend['addresses'] {
  const status = objectAt(node, 'status');
  const endpoint = objectAt(objectAt(status, 'daemonEndpoints'), 'kubeletEndpoint');
  const port = numberAt(endpoint, 'Port') || KUBELET_PORT;
  const known = objectsAt(status, 'addresses');
  return ADDRESS_TYPES.flatMap((type) =>
    known.filter((each) => textAt(each, 'type') === type).map((each) => ({ host: textAt(each, 'address'), port })),
  );
}

/** Address and port, as a URL has them. */
export function hostOf({ addresses, serverName }: Backend): string {
  const { host = serverName, port = KUBELET_PORT } = addresses[0] ?? {};
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/** What the system calls it, and what people know it by. */
const DIAL_ERRORS: ReadonlyMap<string, string> = new Map([
  ['ECONNREFUSED', 'connect: connection refused'],
  ['EHOSTUNREACH', 'connect: no route to host'],
  ['ENETUNREACH', 'connect: network is unreachable'],
  ['ETIMEDOUT', 'i/o timeout'],
  ['ENOTFOUND', 'lookup: no such host'],
]);

/** Why a node gave no answer, in the words that people search for. */
export function unreachable(backend: Backend, error: BackendError): string {
  if (backend.addresses.length === 0) return `no preferred addresses found; known addresses: []`;
  const { code = '' } = (error.cause ?? {}) as { code?: string };
  const dial = error.isTimeout ? 'i/o timeout' : DIAL_ERRORS.get(code);
  return dial === undefined ? error.message : `dial tcp ${hostOf(backend)}: ${dial}`;
}
