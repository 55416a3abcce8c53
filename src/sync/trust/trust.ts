import { X509Certificate } from 'node:crypto';
import { errorMessage } from '../../api/error-message.ts';
import { SYSTEM_NAMESPACE } from '../../api/kubevirt/well-known.ts';
import { type Env, sleep } from '../../env/ports.ts';
import type { Client } from '../../kube/client.ts';
import { Informer } from '../../kube/informer.ts';
import type { Service } from '../../kube/service.ts';
import type { Identity } from '../../machinery/x509/authority.ts';
import { SyncError } from '../channel.ts';
import { type AddressRules, parseAddressRules } from '../wire/address-rules.ts';
import type { ProvenPeer } from '../wire/stream-link.ts';
import type { TlsMaterial, TlsTrust } from '../wire/tls.ts';
import { bundleEndMs, bundleText, clusterIdOf, hasSigned, isGood, parseBundle } from './bundle.ts';
import {
  addressesOf,
  type ConfigMap,
  configMaps,
  peersOf,
  TRUST_CONFIG_MAP,
  type TrustedPeer,
  withoutPeer,
  withPeer,
} from './objects.ts';
import { bundleOf, isLeafDue, issueLeaf, type OwnAuthorities } from './own-authorities.ts';
import { changeTrust, keepAuthorities } from './store.ts';

/**
 * Whom this cluster trusts, and how it is known itself, as of now. It follows what users import and revoke, renews its
 * own certificates and authorities in time, and takes over the authorities that peers tell on streams for which they have
 * proven themselves.
 */

export interface TrustListener {
  /** What is shown to others, or whom they are believed by, is another from now on. */
  materialChanged(): void;
  /** Peers should know this cluster by other authorities from now on. */
  bundleChanged(): void;
  /** Trust in a peer was revoked: nothing new may begin with it. It stays until it is released. */
  revoked(peer: string): void;
  /** The peer is trusted no more. */
  removed(peer: string): void;
}

export interface TrustOptions {
  readonly env: Env;
  readonly client: Client;
  readonly clusterId: string;
  readonly listener: TrustListener;
}

/** How often certificates are looked at: often, measured by how long they last. */
const CHECK_MS = 3_600_000;
/** After a failure. */
const RETRY_MS = 30_000;

/** What is loaded before anybody can be talked to. */
interface Own {
  readonly authorities: OwnAuthorities;
  readonly leaf: Identity;
}

export class Trust implements Service, TlsTrust {
  readonly name = 'trust in other clusters';
  readonly clusterId: string;
  readonly #options: TrustOptions;
  readonly #informer: Informer<ConfigMap>;
  /** What peers have told of their authorities, and is not written down yet. */
  readonly #told = new Map<string, string>();
  #peers: ReadonlyMap<string, TrustedPeer> = new Map();
  #rules: AddressRules | undefined;
  #own: Own | undefined;
  #wake: () => void = () => undefined;

  constructor(options: TrustOptions) {
    this.#options = options;
    this.clusterId = options.clusterId;
    const { client, env } = options;
    const scope = { namespace: SYSTEM_NAMESPACE, fieldSelector: `metadata.name=${TRUST_CONFIG_MAP}` };
    this.#informer = new Informer({ client, env, resource: configMaps, ...scope });
    this.#informer.onChange(({ type, object }) => this.#take(type === 'deleted' ? {} : (object.data ?? {})));
  }

  /** Makes sure that this cluster has an identity. Everything else needs it. */
  async prepare(signal: AbortSignal): Promise<void> {
    await this.#keepOwn(signal);
  }

  /** Follows what users say, and keeps certificates good. Rejects only if it is told wrong. */
  async run(signal: AbortSignal): Promise<void> {
    const following = this.#informer.run(signal);
    while (!signal.aborted) {
      const isDone = await this.#upkeep(signal);
      await this.#pause(isDone ? CHECK_MS : RETRY_MS, signal);
    }
    await following;
  }

  /** Resolves once it is known who is trusted. */
  get synced(): Promise<void> {
    return this.#informer.synced;
  }

  material(): TlsMaterial {
    const { authorities, leaf } = this.#mine();
    const peers = [...this.#peers.values()].map((peer) => bundleText(peer.authorities));
    return { ...leaf, authoritiesPem: [bundleOf(authorities), ...peers].join('') };
  }

  /** PEM of the authorities by which others know this cluster. */
  bundle(): string {
    return bundleOf(this.#mine().authorities);
  }

  identify(certificate: X509Certificate): ProvenPeer {
    const clusterId = clusterIdOf(certificate);
    if (clusterId === undefined) throw notTrusted('its certificate is not that of a cluster');
    const nowMs = this.#options.env.clock.now();
    const authorities = this.#authoritiesOf(clusterId);
    if (!authorities) throw notTrusted(`cluster ${clusterId} is not among those that are trusted here`);
    // By its own authorities: those of other clusters say nothing about this one.
    if (!authorities.some((authority) => hasSigned(authority, certificate, nowMs)))
      throw notTrusted(
        `no authority of cluster ${clusterId} that is known here, and has not expired, has issued its certificate`,
      );
    if (!isGood(certificate, nowMs)) throw notTrusted(`the certificate of cluster ${clusterId} has expired`);
    return { clusterId, validUntilMs: Date.parse(certificate.validTo) };
  }

  /** The clusters that are trusted, with those for which that was revoked. */
  peers(): TrustedPeer[] {
    return [...this.#peers.values()];
  }

  /** When what this cluster shows ends, and what it knows others by: the last authority that each has told of. */
  *certificateEnds(): Generator<readonly [certificate: string, endsMs: number]> {
    if (this.#own) {
      const { leaf, authorities } = this.#own;
      yield ['synchronization', bundleEndMs([new X509Certificate(leaf.certificatePem)])];
      yield ['synchronization-authority', bundleEndMs(parseBundle(bundleOf(authorities)))];
    }
    for (const { clusterId, authorities } of this.#peers.values())
      yield [`peer-${clusterId}`, bundleEndMs(authorities)];
  }

  /** The addresses that may be dialed; undefined where nobody has said which. */
  get addressRules(): AddressRules | undefined {
    return this.#rules;
  }

  /** Whether nothing new may begin with the cluster; also true for those that were never trusted. */
  isRevoked(peer: string): boolean {
    const known = this.#peers.get(peer);
    return !known || known.revoked !== undefined;
  }

  /** A peer, on a stream for which it has proven itself, says which authorities it has. It is written down in its time. */
  renewed(peer: string, bundle: string): void {
    const known = this.#peers.get(peer);
    if (!known || known.revoked !== undefined) return;
    try {
      const authorities = parseBundle(bundle);
      const text = bundleText(authorities);
      if (text === bundleText(known.authorities)) return;
      const nowMs = this.#options.env.clock.now();
      if (!authorities.some((authority) => isGood(authority, nowMs))) throw new Error('all of it has expired');
      this.#told.set(peer, text);
      this.#wake();
    } catch (error) {
      this.#options.env.log.warn('a cluster told authorities that are none', { peer, reason: errorMessage(error) });
    }
  }

  /** No migration with a peer whose trust was revoked has its right to run on the way: it is trusted no more. */
  async release(peer: string, signal: AbortSignal): Promise<void> {
    const change = (data: Readonly<Record<string, string>>): Record<string, string> | undefined =>
      // Who trusts it anew in the meantime means it.
      Object.hasOwn(data, `${peer}.revoked`) ? withoutPeer(data, peer) : undefined;
    await changeTrust(this.#options.client, change, signal);
  }

  #authoritiesOf(clusterId: string): readonly X509Certificate[] | undefined {
    if (clusterId === this.clusterId) return parseBundle(this.bundle());
    return this.#peers.get(clusterId)?.authorities;
  }

  #mine(): Own {
    if (!this.#own) throw new Error('trust is used before it is prepared');
    return this.#own;
  }

  #take(data: Readonly<Record<string, string>>): void {
    const { peers, broken } = peersOf(data);
    for (const { clusterId, reason } of broken)
      this.#options.env.log.warn('a cluster is not trusted, as what is known of it makes no sense', {
        clusterId,
        reason,
      });
    const addresses = addressesOf(data);
    this.#rules = addresses === undefined ? undefined : parseAddressRules(addresses);
    for (const line of this.#rules?.broken ?? [])
      this.#options.env.log.warn('an address that may be dialed makes no sense, and allows nothing', { line });
    const before = this.#peers;
    this.#peers = new Map(peers.map((peer) => [peer.clusterId, peer]));
    const { listener } = this.#options;
    listener.materialChanged();
    for (const peer of peers) {
      if (peer.revoked !== undefined && before.get(peer.clusterId)?.revoked === undefined)
        listener.revoked(peer.clusterId);
    }
    for (const clusterId of before.keys()) if (!this.#peers.has(clusterId)) listener.removed(clusterId);
  }

  /** True when all is as it should be. */
  async #upkeep(signal: AbortSignal): Promise<boolean> {
    try {
      await this.#keepOwn(signal);
      for (const [peer, bundle] of this.#told) await this.#writeDown(peer, bundle, signal);
      return true;
    } catch (error) {
      if (!signal.aborted)
        this.#options.env.log.error('certificates for other clusters could not be kept', {
          reason: errorMessage(error),
        });
      return false;
    }
  }

  async #keepOwn(signal: AbortSignal): Promise<void> {
    const { env, clusterId, listener } = this.#options;
    const before = this.#own;
    const authorities = await keepAuthorities(this.#options, signal);
    const isDue = !before || isLeafDue(before.leaf, authorities, env.clock.now());
    const leaf = isDue ? await issueLeaf(authorities, env, clusterId) : before.leaf;
    this.#own = { authorities, leaf };
    if (!before) return;
    const hasNewBundle = bundleOf(before.authorities) !== bundleOf(authorities);
    if (isDue || hasNewBundle) listener.materialChanged();
    if (hasNewBundle) listener.bundleChanged();
  }

  async #writeDown(clusterId: string, bundle: string, signal: AbortSignal): Promise<void> {
    const authorities = parseBundle(bundle);
    const change = (data: Readonly<Record<string, string>>): Record<string, string> | undefined => {
      const known = peersOf(data).peers.find((peer) => peer.clusterId === clusterId);
      return known && known.revoked === undefined ? withPeer(data, { ...known, authorities }) : undefined;
    };
    await changeTrust(this.#options.client, change, signal);
    // It may have told others meanwhile.
    if (this.#told.get(clusterId) === bundle) this.#told.delete(clusterId);
    this.#options.env.log.info('a cluster has renewed its authorities', { peer: clusterId });
  }

  async #pause(ms: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted || (this.#told.size > 0 && ms === CHECK_MS)) return;
    const woken = new AbortController();
    const wake = (): void => woken.abort();
    this.#wake = wake;
    signal.addEventListener('abort', wake, { once: true });
    await sleep(this.#options.env.clock, ms, woken.signal);
    signal.removeEventListener('abort', wake);
    this.#wake = () => undefined;
  }
}

function notTrusted(message: string): SyncError {
  return new SyncError('NotTrusted', message);
}
