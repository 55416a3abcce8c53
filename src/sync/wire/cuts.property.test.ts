import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { unreachable } from '../../api/unreachable.ts';
import { ManualClock, seededRandom } from '../../env/test.ts';
import type { OfferedHalf } from '../channel.ts';
import { FixtureCluster, type NumberedHalf, pass } from './clusters.fixture.ts';
import { FixtureNetwork } from './network.fixture.ts';

/**
 * Two clusters tell each other halves while streams are cut, forgotten by what is between them, dialed from both sides,
 * and while either process starts anew. At any time: what was acknowledged is durable at the other side, and no half
 * comes after a newer one. When it is over: each side has the newest of everything, and one stream is left.
 */

const KEYS = ['k', 'l', 'm', 'n', 'o'] as const;

type Step =
  | { readonly do: 'offer'; readonly who: 0 | 1; readonly key: string; readonly padding: number }
  | { readonly do: 'gone'; readonly who: 0 | 1; readonly key: string }
  | { readonly do: 'cut' | 'silence' | 'restart'; readonly who: 0 | 1 }
  | { readonly do: 'down' | 'up' }
  | { readonly do: 'pass'; readonly ms: number };

const who = fc.constantFrom<0 | 1>(0, 1);
const key = fc.constantFrom(...KEYS);
const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    { weight: 10, arbitrary: fc.record({ do: fc.constant('offer' as const), who, key, padding: fc.nat(40_000) }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('gone' as const), who, key }) },
    { weight: 3, arbitrary: fc.record({ do: fc.constantFrom('cut' as const, 'silence', 'restart'), who }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('down' as const, 'up') }) },
    {
      weight: 8,
      arbitrary: fc.record({ do: fc.constant('pass' as const), ms: fc.constantFrom(5, 20, 60, 400, 3_000) }),
    },
  ),
  { minLength: 5, maxLength: 60 },
);

/** A half may take longer than a cut, or a new process. */
const slowness = fc.constantFrom(0, 50, 1_000);

it('nothing is lost and nothing comes out of order, whatever happens to streams and processes', async () => {
  await fc.assert(
    fc.asyncProperty(steps, fc.nat(), fc.boolean(), slowness, async (steps, seed, doBothDial, takeMsMax) => {
      const clock = new ManualClock();
      const network = new FixtureNetwork({ clock, random: seededRandom(seed), delayMsMax: 40 });
      const options = { clock, network, takeMsMax, refusalChance: 0.1 };
      const pair = [
        new FixtureCluster('a', { ...options, seed: seed + 1 }),
        new FixtureCluster('b', { ...options, seed: seed + 2 }),
      ] as const;
      const newest = new Map<string, NumberedHalf | undefined>();
      for (const at of [0, 1] as const) checkDurability(pair[at], pair[at === 0 ? 1 : 0]);
      pair[0].dial('b');
      if (doBothDial) pair[1].dial('a');
      let version = 0;
      const offer = (from: 0 | 1, key: string, half: NumberedHalf | undefined): void => {
        const role = from === 0 ? 'source' : 'target';
        newest.set(`${pair[from].id}/${role}/${key}`, half);
        pair[from].offer(from === 0 ? 'b' : 'a', key, role, half);
      };
      for (const step of steps) {
        switch (step.do) {
          case 'offer':
            offer(step.who, step.key, halfOf(++version, step.padding));
            break;
          case 'gone':
            offer(step.who, step.key, undefined);
            break;
          case 'pass':
            await pass(clock, step.ms, 5);
            break;
          case 'restart':
            pair[step.who].restart();
            break;
          case 'cut':
          case 'silence':
            network.cut(pair[step.who].id, step.do === 'silence');
            break;
          case 'down':
          case 'up':
            network.isDown = step.do === 'down';
            break;
          default:
            unreachable(step);
        }
      }
      network.isDown = false;
      await pass(clock, 60_000, 250);
      expect([...pair[0].wrong, ...pair[1].wrong]).toEqual([]);
      for (const [name, half] of newest) {
        const [from, to] = name.startsWith('a/') ? pair : [pair[1], pair[0]];
        expect(to.durable.get(name), name).toEqual(half);
        const told = from.acknowledgements.get(`${to.id}/${name.slice(2)}`);
        expect(told, `what ${to.id} has acknowledged of ${name}`).toBe(half?.version ?? Number.POSITIVE_INFINITY);
      }
      expect(network.streams).toBe(1);
    }),
    { numRuns: 150 },
  );
});

/** Some fields come, go and change, so that deltas have something to say. */
function halfOf(version: number, padding: number): NumberedHalf {
  return {
    version,
    [`field${version % 3}`]: { of: version % 5, list: [version] },
    steady: { text: 'x'.repeat(padding % 7 === 0 ? padding : 100), nested: { isSame: true } },
  };
}

/** What is acknowledged must be durable at that moment. */
function checkDurability(from: FixtureCluster, to: FixtureCluster): void {
  from.onAcknowledged = (_, { key, role, half }: OfferedHalf) => {
    const name = `${from.id}/${role}/${key}`;
    const version = (half as NumberedHalf | undefined)?.version;
    const durable = to.durable.get(name);
    const isThere = version === undefined ? to.durable.has(name) : durable === undefined || durable.version >= version;
    if (!to.durable.has(name) || !isThere) from.wrong.push(`${name} ${version} was acknowledged and is not there`);
  };
}
