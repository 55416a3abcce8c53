import { X509Certificate } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import { ManualClock, seededRandom } from '../../env/test.ts';
import { type Authority, createAuthority, DAY_MS, HOUR_MS, issueIdentity } from '../../machinery/x509/authority.ts';
import { AgentKeys } from './agent-keys.ts';
import { keyPin } from './key-pin.ts';

const clock = new ManualClock();
const NEVER = new AbortController().signal;
let authority: Authority;
beforeAll(async () => {
  authority = await createAuthority({ clock, random: seededRandom(1) }, 'cluster');
});

const certificate = async (validityMs = DAY_MS) =>
  (await issueIdentity(authority, { commonName: 'system:node:n1', usages: ['client'], validityMs })).certificatePem;
const pinOf = (pem: string): string => keyPin(new X509Certificate(pem));

describe('the keys of an agent', () => {
  it('are told as soon as they are shown, the newest first, and each once', async () => {
    let told = 0;
    const keys = new AgentKeys(clock, () => void told++);
    keys.note(undefined);
    expect([keys.pins, told]).toEqual([[], 0]);
    const [client, serving] = [await certificate(), await certificate()];
    for (const each of [client, serving, client]) keys.note(each);
    expect([keys.pins, told]).toEqual([[pinOf(serving), pinOf(client)], 2]);
  });

  it('are good as long as their certificates', async () => {
    const keys = new AgentKeys(clock, () => undefined);
    const [old, next] = [await certificate(HOUR_MS), await certificate()];
    keys.note(old);
    keys.note(next);
    expect(keys.pins).toEqual([pinOf(next), pinOf(old)]);
    clock.advance(HOUR_MS);
    expect(keys.pins).toEqual([pinOf(next)]);
  });

  it.each([
    ['half a minute', DAY_MS, 30_000],
    ['half of what is left', 20_000, 10_000],
    ['nothing, where nothing is left', -1, 0],
  ])('are told before they are shown, by %s', async (_, leftMs, waitMs) => {
    const keys = new AgentKeys(clock, () => undefined);
    const next = await certificate();
    let isOver = false;
    const announced = keys.announce(next, clock.now() + leftMs, NEVER).then(() => (isOver = true));
    expect(keys.pins).toEqual([pinOf(next)]);
    if (waitMs > 0) {
      clock.advance(waitMs - 1);
      for (let turn = 0; turn < 5; turn++) await Promise.resolve();
      expect(isOver).toBe(false);
    }
    clock.advance(1);
    await announced;
  });
});
