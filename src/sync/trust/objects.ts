import type { X509Certificate } from 'node:crypto';
import { SYSTEM_NAMESPACE } from '../../api/kubevirt/well-known.ts';
import type { KubeObject } from '../../api/meta.ts';
import type { Resource } from '../../kube/resource.ts';
import { bundleText, isClusterId, parseBundle } from './bundle.ts';

/**
 * What trust between clusters is made of in the API, all of it in the system's namespace, in objects of known names: so
 * the synchronization controller, to which other clusters talk, can be allowed these and no others.
 */

export interface Secret extends KubeObject {
  type?: string;
  data?: Record<string, string>;
}

export interface ConfigMap extends KubeObject {
  data?: Record<string, string>;
}

export const secrets: Resource<Secret> = {
  group: '',
  version: 'v1',
  plural: 'secrets',
  kind: 'Secret',
  namespaced: true,
};
export const configMaps: Resource<ConfigMap> = {
  group: '',
  version: 'v1',
  plural: 'configmaps',
  kind: 'ConfigMap',
  namespaced: true,
};

/** The Secret with the keys of this cluster's authorities. */
export const AUTHORITY_SECRET = 'godwit-synchronization-ca';
/** The ConfigMap with their certificates, for whoever exports them. */
export const BUNDLE_CONFIG_MAP = 'godwit-synchronization-bundle';
/**
 * The ConfigMap with all clusters that are trusted: `<cluster id>.crt`, `.name` and, once trust was revoked, `.revoked`; and
 * perhaps with the addresses that may be dialed.
 */
export const TRUST_CONFIG_MAP = 'godwit-trust';

/** The Role of whoever may say which clusters are trusted; bind it to users who are no administrators. */
const TRUST_ROLE = 'godwit:trust';

const BUNDLE_KEY = 'ca.crt';
const CLUSTER_KEY = 'clusterId';
const ADDRESSES_KEY = 'addresses';

/** A cluster whose migrations may come here, and go there. */
export interface TrustedPeer {
  readonly clusterId: string;
  /** What users here call it. */
  readonly name: string;
  readonly authorities: readonly X509Certificate[];
  /** Since when trust is revoked, as text; nothing new begins with the cluster. */
  readonly revoked?: string;
}

const NAME = /^[a-z0-9](?:[a-z0-9.-]{0,61}[a-z0-9])?$/;

/** Whether users may call a cluster so. */
export function isPeerName(text: string): boolean {
  return NAME.test(text);
}

/** What is wrong with an entry, which then counts for nothing. */
export interface BrokenEntry {
  readonly clusterId: string;
  readonly reason: string;
}

/** All clusters that the ConfigMap names, in the order of their ids. */
export function peersOf(data: Readonly<Record<string, string>> = {}): { peers: TrustedPeer[]; broken: BrokenEntry[] } {
  const [peers, broken]: [TrustedPeer[], BrokenEntry[]] = [[], []];
  for (const key of Object.keys(data).toSorted()) {
    const clusterId = /^(.+)\.crt$/.exec(key)?.[1];
    if (clusterId === undefined) continue;
    try {
      peers.push(peerOf(clusterId, data));
    } catch (error) {
      broken.push({ clusterId, reason: error instanceof Error ? error.message : String(error) });
    }
  }
  return { peers, broken };
}

function peerOf(clusterId: string, data: Readonly<Record<string, string>>): TrustedPeer {
  if (!isClusterId(clusterId)) throw new Error(`${clusterId} is no id of a cluster`);
  const {
    [`${clusterId}.crt`]: bundle = '',
    [`${clusterId}.name`]: name = '',
    [`${clusterId}.revoked`]: revoked,
  } = data;
  if (!isPeerName(name)) throw new Error(`${JSON.stringify(name.slice(0, 64))} is no name of a cluster`);
  return { clusterId, name, authorities: parseBundle(bundle), ...(revoked === undefined ? {} : { revoked }) };
}

/** Which addresses may be dialed, as the ConfigMap has it; undefined where it says nothing of that. */
export function addressesOf(data: Readonly<Record<string, string>> = {}): string | undefined {
  return Object.hasOwn(data, ADDRESSES_KEY) ? data[ADDRESSES_KEY] : undefined;
}

/** The ConfigMap's data with this cluster in it, in the place of what it said of the same one. */
export function withPeer(data: Readonly<Record<string, string>>, peer: TrustedPeer): Record<string, string> {
  return {
    ...withoutPeer(data, peer.clusterId),
    [`${peer.clusterId}.crt`]: bundleText(peer.authorities),
    [`${peer.clusterId}.name`]: peer.name,
    ...(peer.revoked === undefined ? {} : { [`${peer.clusterId}.revoked`]: peer.revoked }),
  };
}

/** The ConfigMap's data without the cluster. */
export function withoutPeer(data: Readonly<Record<string, string>>, clusterId: string): Record<string, string> {
  const own = new Set(['crt', 'name', 'revoked'].map((suffix) => `${clusterId}.${suffix}`));
  return Object.fromEntries(Object.entries(data).filter(([key]) => !own.has(key)));
}

/** What this cluster says of itself in the bundle's ConfigMap. */
export function ownBundleData(clusterId: string, bundle: string): Record<string, string> {
  return { [CLUSTER_KEY]: clusterId, [BUNDLE_KEY]: bundle };
}

/** What that ConfigMap says; undefined before anything was written into it. Throws where it makes no sense. */
export function ownBundleOf(
  data: Readonly<Record<string, string>> = {},
): { clusterId: string; authorities: X509Certificate[] } | undefined {
  const { [CLUSTER_KEY]: clusterId, [BUNDLE_KEY]: bundle } = data;
  if (clusterId === undefined || bundle === undefined) return undefined;
  if (!isClusterId(clusterId)) throw new Error(`${JSON.stringify(clusterId.slice(0, 64))} is no id of a cluster`);
  return { clusterId, authorities: parseBundle(bundle) };
}

/** The objects as they are before anybody has written into them. Whoever installs the controller makes them. */
export const TRUST_OBJECTS: readonly KubeObject[] = [
  { apiVersion: 'v1', kind: 'Secret', metadata: metadataOf(AUTHORITY_SECRET), type: 'Opaque' },
  { apiVersion: 'v1', kind: 'ConfigMap', metadata: metadataOf(BUNDLE_CONFIG_MAP) },
  { apiVersion: 'v1', kind: 'ConfigMap', metadata: metadataOf(TRUST_CONFIG_MAP) },
  {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'Role',
    metadata: metadataOf(TRUST_ROLE),
    rules: [
      {
        verbs: ['get', 'update'],
        apiGroups: [''],
        resources: ['configmaps'],
        resourceNames: [BUNDLE_CONFIG_MAP, TRUST_CONFIG_MAP],
      },
    ],
  },
];

function metadataOf(name: string): KubeObject['metadata'] {
  return { name, namespace: SYSTEM_NAMESPACE };
}

/** What the synchronization controller does with them. */
export const TRUST_RULES: readonly object[] = [
  { verbs: ['get', 'update'], apiGroups: [''], resources: ['secrets'], resourceNames: [AUTHORITY_SECRET] },
  {
    verbs: ['get', 'list', 'watch', 'update'],
    apiGroups: [''],
    resources: ['configmaps'],
    resourceNames: [BUNDLE_CONFIG_MAP, TRUST_CONFIG_MAP],
  },
];
