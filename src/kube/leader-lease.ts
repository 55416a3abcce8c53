import { formatMicroTime, type KubeObject } from '../api/meta.ts';
import type { Resource } from './resource.ts';

/** Leases as an election reads and writes them; pure. What else is in a lease is left as it is. */

export interface LeaseSpec {
  holderIdentity?: string;
  leaseDurationSeconds?: number;
  acquireTime?: string;
  renewTime?: string;
  leaseTransitions?: number;
  [field: string]: unknown;
}

export interface Lease extends KubeObject {
  spec?: LeaseSpec;
}

export const leaseResource: Resource<Lease> = {
  group: 'coordination.k8s.io',
  version: 'v1',
  plural: 'leases',
  kind: 'Lease',
  namespaced: true,
};

/** Who asks for a lease, and for how long. */
export interface Claim {
  readonly identity: string;
  readonly durationMs: number;
}

/** Who holds the lease; empty when nobody does. */
export function holderOf(lease: Lease): string {
  return lease.spec?.holderIdentity ?? '';
}

/** A lease that is to be created. */
export function newLease(namespace: string, name: string, claim: Claim, nowMs: number): Lease {
  const metadata = { namespace, name };
  return claimed({ apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata }, claim, nowMs, 0);
}

/** The lease, held by the claimant: renewed where it held it already, else taken over. */
export function claimedLease(lease: Lease, claim: Claim, nowMs: number): Lease {
  const transitions = lease.spec?.leaseTransitions ?? 0;
  if (holderOf(lease) !== claim.identity) return claimed(lease, claim, nowMs, transitions + 1);
  const renewed = claimed(lease, claim, nowMs, transitions);
  const acquireTime = lease.spec?.acquireTime;
  return acquireTime === undefined ? renewed : { ...renewed, spec: { ...renewed.spec, acquireTime } };
}

/** The lease, held by nobody. A second is the shortest there is. */
export function releasedLease(lease: Lease, nowMs: number): Lease {
  const time = formatMicroTime(nowMs);
  const released = { holderIdentity: '', leaseDurationSeconds: 1, acquireTime: time, renewTime: time };
  return { ...lease, spec: { ...lease.spec, ...released } };
}

/** What changes whenever the holder shows that it is alive, and never else. */
export function heartbeatOf(lease: Lease): string {
  const { holderIdentity, leaseDurationSeconds, acquireTime, renewTime, leaseTransitions } = lease.spec ?? {};
  return JSON.stringify([holderIdentity, leaseDurationSeconds, acquireTime, renewTime, leaseTransitions]);
}

/** For how long after its last sign of life the holder asked not to be disturbed. */
export function durationMsOf(lease: Lease, fallbackMs: number): number {
  const seconds = lease.spec?.leaseDurationSeconds ?? 0;
  return seconds > 0 ? seconds * 1000 : fallbackMs;
}

function claimed(lease: Lease, claim: Claim, nowMs: number, transitions: number): Lease {
  const time = formatMicroTime(nowMs);
  const spec: LeaseSpec = {
    ...lease.spec,
    holderIdentity: claim.identity,
    leaseDurationSeconds: Math.ceil(claim.durationMs / 1000),
    acquireTime: time,
    renewTime: time,
    leaseTransitions: transitions,
  };
  return { ...lease, spec };
}
