import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ManualClock } from '../../env/test.ts';
import { Hearing } from './hearing.ts';

const [OLD, NEW] = ['0'.repeat(32), 'f'.repeat(32)];
const line = (boot: string, count: number): string =>
  `guest boot=${boot} count=${count} uptime=1.0 memory=ok disk=ok\r\n`;

/** Guests that have the name, one after the other: each is followed until it ends. */
let guests: PassThrough[] = [];
let asked = 0;
const clock = new ManualClock(0);
let stopping: AbortController;
let hearing: Hearing;
let listening: Promise<void>;

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
/** Says it in two pieces, as it may come. */
async function say(guest: PassThrough | undefined, text: string): Promise<void> {
  for (const piece of [text.slice(0, 20), text.slice(20)]) {
    guest?.write(piece);
    await settled();
  }
}

beforeEach(() => {
  guests = [new PassThrough(), new PassThrough()];
  asked = 0;
  stopping = new AbortController();
  hearing = new Hearing(() => {
    const guest = guests[asked++]?.setEncoding('utf8');
    return guest ? Promise.resolve(guest) : Promise.reject(new Error('there is no such guest'));
  }, clock);
  listening = hearing.listen(stopping.signal);
});
afterEach(async () => {
  stopping.abort();
  for (const guest of guests) guest.end();
  await listening;
});

describe('a guest that is heard', () => {
  it('speaks once it has counted on', async () => {
    await say(guests[0], line(OLD, 7));
    expect(hearing.last).toMatchObject({ boot: OLD, count: 7 });
    const spoken = hearing.speaks(3, stopping.signal);
    for (const count of [8, 9, 10, 11]) await say(guests[0], line(OLD, count));
    expect(await spoken).toMatchObject({ boot: OLD, count: 10 });
  });

  it('and has booted again counts from there', async () => {
    await say(guests[0], line(OLD, 500));
    const spoken = hearing.speaks(2, stopping.signal);
    for (const count of [1, 2, 3]) await say(guests[0], line(NEW, count));
    expect(await spoken).toMatchObject({ boot: NEW, count: 3 });
  });

  it('is another once the first one has ended: nothing of that counts any more', async () => {
    await say(guests[0], line(OLD, 500));
    guests[0]?.end();
    await settled();
    clock.advance(250);
    await settled();
    expect(asked).toBe(2);
    expect(hearing.last).toBeUndefined();
    const spoken = hearing.speaks(1, stopping.signal);
    await say(guests[1], line(NEW, 1) + line(NEW, 2));
    expect(await spoken).toMatchObject({ boot: NEW, count: 2 });
  });

  it('is listened to again where nobody could be asked', async () => {
    for (const guest of guests) guest.end();
    for (let tries = 2; tries < 6; tries++) {
      await settled();
      clock.advance(250);
    }
    expect(asked).toBeGreaterThan(3);
  });

  it('is listened to again where a connection says nothing any more', async () => {
    clock.advance(15_000);
    await settled();
    clock.advance(250);
    await settled();
    await say(guests[1], line(NEW, 1));
    expect(hearing.last).toMatchObject({ boot: NEW, count: 1 });
  });

  it('is given up where nobody wants to hear it any more', async () => {
    const spoken = hearing.speaks(1, stopping.signal);
    stopping.abort();
    await expect(spoken).rejects.toThrow('cancelled');
  });
});
