import { describe, expect, it } from 'vitest';
import { ManualClock, seededRandom, silentLogger } from '../../env/test.ts';
import { type Channel, type OfferedHalf, Refusal } from '../channel.ts';
import type { Half } from './halves.ts';
import { type Talk, Talks } from './talks.ts';

const UNDER_WAY: Half = { uid: 'u', name: 'web', namespace: 'shop', otherUID: 'o' };
const OVER: Half = { ...UNDER_WAY, verdict: { phase: 'Failed' } };

function scene(): { talks: Talks; talk: Talk; offers: OfferedHalf[]; channel: Channel; clock: ManualClock } {
  const clock = new ManualClock();
  const env = { clock, random: seededRandom(1), log: silentLogger };
  const talks = new Talks({ env, onSilence: () => undefined });
  const offers: OfferedHalf[] = [];
  const channel: Channel = {
    peer: 'west',
    isOpen: true,
    offer: (update) => void offers.push(update),
    withdraw: () => undefined,
  };
  return { talks, talk: talks.begin('shop/web', 'u', { role: 'source', key: 'k' }), offers, channel, clock };
}

describe('how a half ended', () => {
  it('is known by whoever has acknowledged it', () => {
    const { talks, talk, offers, channel } = scene();
    talks.offer(talk, channel, UNDER_WAY);
    talks.answered(offers[0] as OfferedHalf);
    expect(talk.isEndKnown).toBe(false);
    talks.offer(talk, channel, OVER);
    talks.answered(offers[1] as OfferedHalf);
    expect(talk.isEndKnown).toBe(true);
  });

  it.each([
    // Nobody is there, by their own word, for whom it could end otherwise.
    ['Gone', true],
    ['KeyTaken', true],
    ['NotTrusted', true],
    // It was not even read, or not written down.
    ['Malformed', false],
    ['InternalError', false],
    ['TooLarge', false],
    ['TooManyEarly', false],
    ['a word of another version', false],
  ])('and refused as %s, is known: %s; or else it is said again', (reason, isKnown) => {
    const { talks, talk, offers, channel, clock } = scene();
    talks.offer(talk, channel, OVER);
    talks.answered(offers[0] as OfferedHalf, new Refusal(reason, ''));
    expect(talk.isEndKnown).toBe(isKnown);
    clock.advance(60_000);
    talks.offer(talk, channel, OVER);
    expect(offers).toHaveLength(isKnown ? 1 : 2);
  });
});
