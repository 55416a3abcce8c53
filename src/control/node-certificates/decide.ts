import { isIP } from 'node:net';
import { nodeOfUser, NODE_USER_PREFIX } from '../../machinery/node-user.ts';
import type { CertificateRequest } from '../../machinery/x509/certificate-request.ts';
import { nodeServingRefusal } from '../../machinery/x509/node-certificates.ts';

/**
 * Whether a node gets the certificate that it asks for to serve with. Kubernetes signs such requests but leaves it to
 * others to approve them, since a node says itself what its addresses are. So: each node for itself alone, for names and
 * addresses that its Node object has, and never for a name by which somebody else is known, nor for an address by which
 * the API server is: a node could speak for it to whoever knows it by that. Whoever calls a node must ask for a
 * certificate of the node's name, not of an address: two nodes may well say the same address.
 */

export interface ServingRequest {
  /** Who asked, as the server says. */
  readonly username: string;
  readonly groups: readonly string[];
  readonly usages: readonly string[];
  readonly request: CertificateRequest;
}

/** What is known of nodes. */
export interface KnownNodes {
  /** Addresses of a node that has an agent, as its object has them; undefined where there is no such node. */
  readonly addressesOf: (name: string) => readonly string[] | undefined;
  /** Whether a node is called so, with an agent or without. */
  readonly isNode: (name: string) => boolean;
  /** Addresses by which the API server is reached. */
  readonly apiServerAddresses: readonly string[];
}

/** By these the API server and services of the cluster are known, whatever a node calls itself. */
const RESERVED = /^(localhost|kubernetes(\.default.*)?|.*\.svc|.*\.cluster\.local)$/;

/** Every host knows itself by these, the one of the API server too. */
const LOOPBACK = /^(127\.|\[::1\]$|\[::ffff:7f)/;

/** Why the request has to wait for somebody else's approval; undefined where it can be approved. */
export function servingObjection(asked: ServingRequest, nodes: KnownNodes): string | undefined {
  const { request } = asked;
  const name = nodeOfUser(asked) ?? '';
  if (name === '') return 'it was not made by a node';
  if (request.commonName !== `${NODE_USER_PREFIX}${name}`) return 'it is for somebody else than who made it';
  const refusal = nodeServingRefusal(request, asked.usages);
  if (refusal !== undefined) return refusal;
  const addresses = nodes.addressesOf(name);
  if (!addresses) return `there is no node ${JSON.stringify(name)} with an agent`;
  const own = new Set([name, ...addresses].map(comparable));
  const foreign = [...request.dnsNames, ...request.ipAddresses].filter((each) => !own.has(comparable(each)));
  if (foreign.length > 0) return `the node does not have the address ${foreign.join(', ')}`;
  const reserved = new Set(nodes.apiServerAddresses.map(comparable));
  const lent = request.ipAddresses.filter((each) => {
    const address = comparable(each);
    return reserved.has(address) || LOOPBACK.test(address);
  });
  if (lent.length > 0) return `the API server is known by ${lent.join(', ')}`;
  const taken = request.dnsNames.filter(
    (each) => RESERVED.test(each.toLowerCase()) || (each !== name && nodes.isNode(each)),
  );
  return taken.length > 0 ? `somebody else is known by ${taken.join(', ')}` : undefined;
}

/** Names in lower case; addresses of six in their one shortest form. */
function comparable(address: string): string {
  if (isIP(address) !== 6) return address.toLowerCase();
  return new URL(`http://[${address}]`).hostname;
}
