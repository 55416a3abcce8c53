import { X509Certificate } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { testEnv } from '../../env/test.ts';
import { DAY_MS } from '../../machinery/x509/authority.ts';
import { clusterIdOf, hasSigned, parseBundle } from './bundle.ts';
import {
  bundleOf,
  fromSecretData,
  isLeafDue,
  issueLeaf,
  kept,
  LEAF_VALIDITY_MS,
  type OwnAuthorities,
  secretData,
} from './own-authorities.ts';

const ID = '2f6d3a1c-0000-4000-8000-000000000001';

/** What happens to the authorities in the course of time, if they are looked at once a day. */
async function history(days: number): Promise<string[]> {
  const env = testEnv();
  const events: string[] = [];
  let own = await kept(undefined, env, ID);
  for (let day = 1; day <= days; day++) {
    env.clock.advance(DAY_MS);
    const before = own;
    own = await kept(own, env, ID);
    if (own === before) continue;
    if (own.current !== before.current) events.push(`day ${day}: the next one is used`);
    else if (own.next && !before.next) events.push(`day ${day}: the next one is told`);
    else if (before.previous && !own.previous) events.push(`day ${day}: the previous one has ended`);
  }
  return events;
}

describe('authorities', () => {
  it('get successors that are told long before they are used, for ever', async () => {
    expect(await history(560)).toEqual([
      'day 186: the next one is told',
      'day 276: the next one is used',
      'day 365: the previous one has ended',
      'day 372: the next one is told',
      'day 462: the next one is used',
      'day 551: the previous one has ended',
      'day 558: the next one is told',
    ]);
  });

  it('wait until peers had time to hear of a successor that comes late', async () => {
    const env = testEnv();
    const own = await kept(undefined, env, ID);
    env.clock.advance(300 * DAY_MS);
    const late = await kept(own, env, ID);
    expect([late.current, late.next !== undefined]).toEqual([own.current, true]);
    env.clock.advance(29 * DAY_MS);
    expect(await kept(late, env, ID)).toBe(late);
    env.clock.advance(2 * DAY_MS);
    expect((await kept(late, env, ID)).current).toBe(late.next);
  });

  it('are used at once where the one in use is about to end, or has', async () => {
    for (const days of [355, 400]) {
      const env = testEnv();
      const own = await kept(undefined, env, ID);
      env.clock.advance(days * DAY_MS);
      const renewed = await kept(own, env, ID);
      expect(renewed.current).not.toBe(own.current);
      const leaf = await issueLeaf(renewed, env, ID);
      expect(isLeafDue(leaf, renewed, env.clock.now())).toBe(false);
    }
  });

  it('survive being kept in a Secret, and what is broken there is none', async () => {
    const env = testEnv();
    const { current } = await kept(undefined, env, ID);
    const { current: next } = await kept(undefined, env, ID);
    const own: OwnAuthorities = { current, next, previous: next.certificatePem };
    expect(fromSecretData(secretData(own))).toEqual(own);
    expect(fromSecretData({})).toBeUndefined();
    expect(fromSecretData({ ...secretData(own), 'tls.crt': 'AAAA' })).toBeUndefined();
    expect(fromSecretData({ ...secretData(own), 'tls.key': secretData(own)['next.key'] ?? '' })).toBeUndefined();
    expect(fromSecretData({ ...secretData(own), 'next.key': 'AAAA' })).toEqual({ ...own, next: undefined });
  });
});

describe('a certificate that is shown', () => {
  it('says which cluster it is of, lasts for days, and is renewed when half of them are over', async () => {
    const env = testEnv();
    const own = await kept(undefined, env, ID);
    const leaf = await issueLeaf(own, env, ID);
    const certificate = new X509Certificate(leaf.certificatePem);
    expect(clusterIdOf(certificate)).toBe(ID);
    expect(certificate.ca).toBe(false);
    expect(Date.parse(certificate.validTo) - env.clock.now()).toBe(LEAF_VALIDITY_MS);
    expect(parseBundle(bundleOf(own)).some((authority) => hasSigned(authority, certificate, env.clock.now()))).toBe(
      true,
    );
    expect(isLeafDue(leaf, own, env.clock.now() + 3 * DAY_MS)).toBe(false);
    expect(isLeafDue(leaf, own, env.clock.now() + 4 * DAY_MS)).toBe(true);
  });

  it('is renewed when another authority is used', async () => {
    const env = testEnv();
    const own = await kept(undefined, env, ID);
    const leaf = await issueLeaf(own, env, ID);
    expect(isLeafDue(leaf, await kept(undefined, env, ID), env.clock.now())).toBe(true);
  });
});
