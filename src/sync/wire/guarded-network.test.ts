import { describe, expect, it } from 'vitest';
import { turn } from '../../env/turn.ts';
import { SyncError, UnprovenError } from '../channel.ts';
import { type AddressRules, parseAddressRules } from './address-rules.ts';
import { GuardedNetwork } from './guarded-network.ts';
import type { Link } from './link.ts';

const LINK: Link = {
  peer: 'b',
  validUntilMs: 0,
  check: () => undefined,
  listen: () => undefined,
  send: () => undefined,
  close: () => undefined,
};

/** A network whose dials end as the test has them end. */
class Dials {
  readonly dialed: string[] = [];
  readonly #ends = new Map<string, { resolve: (link: Link) => void; reject: (error: Error) => void }>();
  rules: AddressRules | undefined;
  readonly network = new GuardedNetwork({
    rules: () => this.rules,
    network: {
      connect: (connectURL) =>
        new Promise((resolve, reject) => {
          this.dialed.push(connectURL);
          this.#ends.set(connectURL, { resolve, reject });
        }),
    },
  });
  readonly #stopped = new AbortController();

  async outcome(connectURL: string, error?: Error): Promise<unknown> {
    const dial = this.network.connect(connectURL, this.#stopped.signal).catch((reason: unknown) => reason);
    await turn();
    if (error) this.#ends.get(connectURL)?.reject(error);
    else this.#ends.get(connectURL)?.resolve(LINK);
    return dial;
  }

  start(connectURL: string, signal = this.#stopped.signal): Promise<unknown> {
    return this.network.connect(connectURL, signal).catch((reason: unknown) => reason);
  }

  end(connectURL: string): void {
    this.#ends.get(connectURL)?.resolve(LINK);
  }
}

const REFUSED = new UnprovenError('Unreachable', 'cannot connect to a:1: ECONNREFUSED');

describe('an address that somebody chose', () => {
  it('keeps for logs what was found there, until a cluster was', async () => {
    const dials = new Dials();
    expect(await dials.outcome('a:1', REFUSED)).toBe(REFUSED);
    expect(await dials.outcome('a:1')).toBe(LINK);
    const told = await dials.outcome('https://a:1', REFUSED);
    expect(told).toBeInstanceOf(SyncError);
    expect(told).not.toBeInstanceOf(UnprovenError);
    expect(told).toMatchObject({ code: 'Unreachable', message: REFUSED.message });
    expect(await dials.outcome('a:2', REFUSED)).toBe(REFUSED);
  });

  it('is not dialed where it is none, or not allowed; what is listed is told in full', async () => {
    const dials = new Dials();
    expect(await dials.outcome('http://a')).toMatchObject({ code: 'InvalidAddress' });
    dials.rules = parseAddressRules('b:1');
    expect(await dials.outcome('a:1')).toMatchObject({ code: 'NotAllowed' });
    expect(dials.dialed).toEqual([]);
    const told = await dials.outcome('b:1', REFUSED);
    expect(told).toMatchObject({ code: 'Unreachable' });
    expect(told).not.toBeInstanceOf(UnprovenError);
  });

  it('waits for its turn behind many others, but not where a cluster was seen', async () => {
    const dials = new Dials();
    await dials.outcome('known:1');
    const many = Array.from({ length: 40 }, (_, index) => `a:${index + 1}`);
    const running = many.map((each) => dials.start(each));
    await turn();
    expect(dials.dialed).toHaveLength(33);
    const known = dials.start('known:1');
    await turn();
    expect(dials.dialed.at(-1)).toBe('known:1');
    dials.end('known:1');
    expect(await known).toBe(LINK);
    const stopped = new AbortController();
    const last = dials.start('last:1', stopped.signal);
    stopped.abort();
    expect(await last).toMatchObject({ code: 'Closed' });
    for (const each of many) {
      dials.end(each);
      await turn();
    }
    expect(await Promise.all(running)).toEqual(many.map(() => LINK));
  });
});
