import { SYSTEM_NAMESPACE } from '../../api/kubevirt/well-known.ts';
import { formatTime } from '../../api/meta.ts';
import type { Client } from '../../kube/client.ts';
import { bundleEndMs } from './bundle.ts';
import type { TrustDocument } from './document.ts';
import {
  BUNDLE_CONFIG_MAP,
  configMaps,
  isPeerName,
  ownBundleOf,
  peersOf,
  TRUST_CONFIG_MAP,
  type TrustedPeer,
  withPeer,
} from './objects.ts';
import { changeTrust } from './store.ts';

/** What users do about trust: export, import, list, revoke. */

/** A user asked for what cannot be; the message is for that user. */
export class TrustError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'TrustError';
  }
}

/** What this cluster says of itself to others. */
export async function ownTrust(client: Client, name: string | undefined, signal: AbortSignal): Promise<TrustDocument> {
  const own = await ownBundle(client, signal);
  if (!own)
    throw new TrustError(
      "the synchronization controller has not made this cluster's certificate authority yet; see that it runs (the feature gate DecentralizedLiveMigration, then 'godwit up' or 'godwit sync'), and try again",
    );
  return { ...own, name: checkedName(name ?? `cluster-${own.clusterId.slice(0, 6).toLowerCase()}`) };
}

/** What became of an import. */
export interface Imported {
  readonly peer: TrustedPeer;
  /** `renewed`: it was trusted before. `restored`: trust in it was being revoked. */
  readonly outcome: 'new' | 'renewed' | 'restored';
}

/** Trusts a cluster from now on. `name` is what it is called here, where that is not what it calls itself. */
export async function importTrust(
  client: Client,
  {
    document,
    name,
    nowMs,
  }: { readonly document: TrustDocument; readonly name?: string | undefined; readonly nowMs: number },
  signal: AbortSignal,
): Promise<Imported> {
  const { clusterId, authorities } = document;
  if ((await ownBundle(client, signal))?.clusterId === clusterId)
    throw new TrustError('this is what this very cluster exports; import it into the other one');
  if (bundleEndMs(authorities) <= nowMs)
    throw new TrustError('all of its certificate authorities have expired; export it again');
  let imported: Imported | undefined;
  const change = (data: Readonly<Record<string, string>>): Record<string, string> => {
    const { peers } = peersOf(data);
    const known = peers.find((peer) => peer.clusterId === clusterId);
    const peer = { clusterId, authorities, name: checkedName(name ?? known?.name ?? document.name) };
    const namesake = peers.find((other) => other.name === peer.name && other.clusterId !== clusterId);
    if (namesake)
      throw new TrustError(
        `another cluster (${namesake.clusterId}) is called ${peer.name}; give this one another --name`,
      );
    const outcome = !known ? 'new' : known.revoked === undefined ? 'renewed' : 'restored';
    imported = { peer, outcome };
    return withPeer(data, peer);
  };
  await changeTrust(client, change, signal);
  if (!imported) throw new Error('nothing was imported');
  return imported;
}

/** A trusted cluster as it is shown. */
export interface PeerDescription {
  readonly name: string;
  readonly clusterId: string;
  readonly state: 'Trusted' | 'Revoking' | 'Expired' | 'Broken';
  /** When the last of its authorities ends, if nothing is heard of it until then. */
  readonly validUntil?: string;
  /** SHA-256 of its authorities. */
  readonly fingerprints: readonly string[];
  /** What is wrong with it. */
  readonly message?: string;
}

/** All clusters that are trusted, by name. */
export async function listTrust(client: Client, nowMs: number, signal: AbortSignal): Promise<PeerDescription[]> {
  const object = await client.find(configMaps, SYSTEM_NAMESPACE, TRUST_CONFIG_MAP, signal);
  const { peers, broken } = peersOf(object?.data ?? {});
  return [
    ...peers.map((peer) => description(peer, nowMs)).toSorted((one, other) => (one.name < other.name ? -1 : 1)),
    ...broken.map(({ clusterId, reason }) => ({
      name: '',
      clusterId,
      state: 'Broken' as const,
      fingerprints: [],
      message: reason,
    })),
  ];
}

function description({ name, clusterId, authorities, revoked }: TrustedPeer, nowMs: number): PeerDescription {
  const endMs = bundleEndMs(authorities);
  const state = revoked !== undefined ? 'Revoking' : endMs <= nowMs ? 'Expired' : 'Trusted';
  return {
    name,
    clusterId,
    state,
    validUntil: formatTime(endMs),
    fingerprints: authorities.map(({ fingerprint256 }) => fingerprint256),
  };
}

/**
 * Takes trust in a cluster back, by its name or id. Nothing new begins with it; it is gone once no guest is on its way to
 * or from it. Answers the cluster, and whether it was revoked before.
 */
export async function revokeTrust(
  client: Client,
  nameOrId: string,
  nowMs: number,
  signal: AbortSignal,
): Promise<{ readonly peer: TrustedPeer; readonly wasRevoked: boolean }> {
  let revoked: { peer: TrustedPeer; wasRevoked: boolean } | undefined;
  const change = (data: Readonly<Record<string, string>>): Record<string, string> | undefined => {
    const { peers } = peersOf(data);
    const peer = peers.find(({ name, clusterId }) => name === nameOrId || clusterId === nameOrId);
    if (!peer) throw new TrustError(`no cluster that is trusted is called ${nameOrId}; see 'godwit trust list'`);
    revoked = { peer, wasRevoked: peer.revoked !== undefined };
    return revoked.wasRevoked ? undefined : withPeer(data, { ...peer, revoked: formatTime(nowMs) });
  };
  await changeTrust(client, change, signal);
  if (!revoked) throw new Error('nothing was revoked');
  return revoked;
}

async function ownBundle(client: Client, signal: AbortSignal): Promise<ReturnType<typeof ownBundleOf>> {
  const object = await client.find(configMaps, SYSTEM_NAMESPACE, BUNDLE_CONFIG_MAP, signal);
  return ownBundleOf(object?.data ?? {});
}

function checkedName(name: string): string {
  if (isPeerName(name)) return name;
  throw new TrustError(
    `${JSON.stringify(name)} is no name for a cluster: small letters, digits, dots and dashes, at most 63`,
  );
}
