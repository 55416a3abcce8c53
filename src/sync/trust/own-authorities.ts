import { createPrivateKey, X509Certificate } from 'node:crypto';
import {
  type AuthorityEnv,
  createAuthority,
  DAY_MS,
  type Identity,
  issueIdentity,
} from '../../machinery/x509/authority.ts';
import { clusterUri } from './bundle.ts';

/**
 * The certificate authority by which other clusters know this one, and how it gets a successor without anybody doing
 * anything. Peers believe what they were told last, so a new authority is told long before it is used:
 *
 * ```
 * day 0            185                275                365
 * current ─────────┬──────────────────┬──────────────────┐
 *                  next, told to      becomes current    the old one ends, and is
 *                  peers              (old: previous)    told to nobody any more
 * ```
 *
 * A peer that is heard of once in those 90 days never notices. All of it is a function of certificates and the time.
 */

const VALIDITY_MS = 365 * DAY_MS;
/** With less than this left, there is a successor. */
const ANNOUNCE_BEFORE_MS = 180 * DAY_MS;
/** With less than this left, the successor is used, */
const USE_BEFORE_MS = 90 * DAY_MS;
/** provided that peers have been told of it for so long, */
const TOLD_MS = 30 * DAY_MS;
/** or that waiting for longer would mean having none. */
const URGENT_BEFORE_MS = 15 * DAY_MS;

/** Certificates that are shown live for days, in memory: whoever steals one has it for no longer. */
export const LEAF_VALIDITY_MS = 7 * DAY_MS;
const LEAF_RENEW_BEFORE_MS = LEAF_VALIDITY_MS / 2;

export interface OwnAuthorities {
  readonly current: Identity;
  /** Told to peers, and not used yet. */
  readonly next?: Identity;
  /** PEM; used before, and certificates of it may still be shown. */
  readonly previous?: string;
}

/** The authorities as they should be now: the same object where nothing is to be done. */
export async function kept(
  known: OwnAuthorities | undefined,
  env: AuthorityEnv,
  clusterId: string,
): Promise<OwnAuthorities> {
  const nowMs = env.clock.now();
  const make = async (): Promise<Identity> => {
    const { certificatePem, keyPem } = await createAuthority(env, `godwit synchronization ${clusterId}`, VALIDITY_MS);
    return { certificatePem, keyPem };
  };
  if (!known) return { current: await make() };
  let { current, next, previous } = known;
  if (next && endMs(next.certificatePem) <= nowMs) next = undefined;
  if (!next && endMs(current.certificatePem) - nowMs < ANNOUNCE_BEFORE_MS) next = await make();
  if (next && isUseDue(current, next, nowMs)) {
    previous = current.certificatePem;
    current = next;
    next = undefined;
  }
  if (previous !== undefined && endMs(previous) <= nowMs) previous = undefined;
  if (current === known.current && next === known.next && previous === known.previous) return known;
  return { current, ...(next ? { next } : {}), ...(previous === undefined ? {} : { previous }) };
}

function isUseDue(current: Identity, next: Identity, nowMs: number): boolean {
  const leftMs = endMs(current.certificatePem) - nowMs;
  const toldMs = nowMs - Date.parse(new X509Certificate(next.certificatePem).validFrom);
  return leftMs < URGENT_BEFORE_MS || (leftMs < USE_BEFORE_MS && toldMs >= TOLD_MS);
}

/** PEM of all authorities by which this cluster may be known now or soon. */
export function bundleOf({ current, next, previous }: OwnAuthorities): string {
  return current.certificatePem + (next?.certificatePem ?? '') + (previous ?? '');
}

/** A certificate to show, as server and as client. */
export function issueLeaf({ current }: OwnAuthorities, env: AuthorityEnv, clusterId: string): Promise<Identity> {
  return issueIdentity(
    { ...current, env },
    {
      commonName: 'godwit-synchronization',
      uris: [clusterUri(clusterId)],
      usages: ['server', 'client'],
      validityMs: LEAF_VALIDITY_MS,
    },
  );
}

/** Whether a certificate that is shown needs a successor. */
export function isLeafDue(leaf: Identity, { current }: OwnAuthorities, nowMs: number): boolean {
  const certificate = new X509Certificate(leaf.certificatePem);
  if (!certificate.verify(new X509Certificate(current.certificatePem).publicKey)) return true;
  return endMs(leaf.certificatePem) - nowMs < LEAF_RENEW_BEFORE_MS;
}

function endMs(pem: string): number {
  return Date.parse(new X509Certificate(pem).validTo);
}

const KEYS = {
  current: 'tls.crt',
  currentKey: 'tls.key',
  next: 'next.crt',
  nextKey: 'next.key',
  previous: 'previous.crt',
};

/** The data of a Secret that holds them. */
export function secretData({ current, next, previous }: OwnAuthorities): Record<string, string> {
  const encoded = (text: string): string => Buffer.from(text).toString('base64');
  return {
    [KEYS.current]: encoded(current.certificatePem),
    [KEYS.currentKey]: encoded(current.keyPem),
    ...(next ? { [KEYS.next]: encoded(next.certificatePem), [KEYS.nextKey]: encoded(next.keyPem) } : {}),
    ...(previous === undefined ? {} : { [KEYS.previous]: encoded(previous) }),
  };
}

/** What a Secret holds; undefined where it is none, or what it holds is of no use. */
export function fromSecretData(data: Readonly<Record<string, string>>): OwnAuthorities | undefined {
  const text = (key: string): string =>
    Buffer.from(Object.hasOwn(data, key) ? (data[key] ?? '') : '', 'base64').toString('utf8');
  const current = { certificatePem: text(KEYS.current), keyPem: text(KEYS.currentKey) };
  const next = { certificatePem: text(KEYS.next), keyPem: text(KEYS.nextKey) };
  const previous = text(KEYS.previous);
  if (!isIdentity(current)) return undefined;
  return {
    current,
    ...(isIdentity(next) ? { next } : {}),
    ...(isCertificate(previous) ? { previous } : {}),
  };
}

function isIdentity({ certificatePem, keyPem }: Identity): boolean {
  try {
    return new X509Certificate(certificatePem).checkPrivateKey(createPrivateKey(keyPem));
  } catch {
    // What does not parse is no identity.
    return false;
  }
}

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).ca;
  } catch {
    return false;
  }
}
