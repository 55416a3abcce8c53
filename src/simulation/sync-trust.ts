import { SYSTEM_NAMESPACE } from '../api/kubevirt/well-known.ts';
import type { Env } from '../env/ports.ts';
import type { Client } from '../kube/client.ts';
import { Informer } from '../kube/informer.ts';
import type { SynchronizationsOptions } from '../sync/controller/synchronizations.ts';
import { type ConfigMap, configMaps, TRUST_CONFIG_MAP, withoutPeer } from '../sync/trust/objects.ts';
import { changeTrust } from '../sync/trust/store.ts';

/**
 * Whom a cluster trusts, where nobody has certificates: it follows the same ConfigMap as the real one, in which users import
 * and revoke, and says the same of it at the same moments. Only who somebody is needs no proof here.
 */

type RevocableTrust = SynchronizationsOptions['trust'];
type TrustData = Readonly<Record<string, string>>;

/** What a cluster is known by, where a certificate would be. */
const KNOWN = 'known';

/** The ConfigMap's data where these clusters are trusted from now on, also those in which trust was revoked. */
export function trusting(data: TrustData, peers: readonly string[]): Record<string, string> {
  const others = peers.reduce<TrustData>(withoutPeer, data);
  return {
    ...others,
    ...Object.fromEntries(peers.flatMap((id) => [[`${id}.crt`, KNOWN] as const, [`${id}.name`, id]])),
  };
}

/** The same where trust in a cluster is revoked; undefined where it is not trusted, or revoked already. */
export function revoking(data: TrustData, peer: string): Record<string, string> | undefined {
  const isTrusted = Object.hasOwn(data, `${peer}.crt`) && !Object.hasOwn(data, `${peer}.revoked`);
  return isTrusted ? { ...data, [`${peer}.revoked`]: KNOWN } : undefined;
}

/** Whether this is where a cluster has written down whom it trusts. */
export function isTrust(bucket: string, key: string): boolean {
  return bucket === 'configmaps' && key === `${SYSTEM_NAMESPACE}/${TRUST_CONFIG_MAP}`;
}

/** Whom a cluster trusts, and whether that was revoked and lasts only until all is settled. */
export function trustIn(data: TrustData = {}): ReadonlyMap<string, boolean> {
  const ids = Object.keys(data).flatMap((key) => /^(.+)\.crt$/.exec(key)?.[1] ?? []);
  return new Map(ids.map((id) => [id, Object.hasOwn(data, `${id}.revoked`)]));
}

/** As those who are told of it hear it from the real one. */
interface SimulatedTrustListener {
  changed(): void;
  revoked(peer: string): void;
  removed(peer: string): void;
}

export class SimulatedTrust implements RevocableTrust {
  readonly #client: Client;
  readonly #informer: Informer<ConfigMap>;
  readonly #listener: SimulatedTrustListener;
  /** Those that are trusted, and whether that was revoked. */
  #peers: ReadonlyMap<string, boolean> = new Map();

  constructor({ env, client, listener }: { env: Env; client: Client; listener: SimulatedTrustListener }) {
    this.#client = client;
    this.#listener = listener;
    const scope = { namespace: SYSTEM_NAMESPACE, fieldSelector: `metadata.name=${TRUST_CONFIG_MAP}` };
    this.#informer = new Informer({ client, env, resource: configMaps, ...scope });
    this.#informer.onChange(({ type, object }) => this.#take(type === 'deleted' ? {} : (object.data ?? {})));
  }

  run(signal: AbortSignal): Promise<void> {
    return this.#informer.run(signal);
  }

  /** Resolves once it is known who is trusted. */
  get synced(): Promise<void> {
    return this.#informer.synced;
  }

  /** Whether streams with this cluster may stand. */
  isKnown(peer: string): boolean {
    return this.#peers.has(peer);
  }

  isRevoked(peer: string): boolean {
    return this.#peers.get(peer) ?? true;
  }

  async release(peer: string, signal: AbortSignal): Promise<void> {
    const isRevoked = (data: TrustData): boolean => Object.hasOwn(data, `${peer}.revoked`);
    await changeTrust(this.#client, (data) => (isRevoked(data) ? withoutPeer(data, peer) : undefined), signal);
  }

  #take(data: TrustData): void {
    const before = this.#peers;
    this.#peers = trustIn(data);
    this.#listener.changed();
    for (const [id, isRevoked] of this.#peers) if (isRevoked && before.get(id) !== true) this.#listener.revoked(id);
    for (const id of before.keys()) if (!this.#peers.has(id)) this.#listener.removed(id);
  }
}
