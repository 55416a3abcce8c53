import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { IS_FULL } from '../../../test/support/sample.ts';
import { REQUIRED_FACTS } from './required-facts.ts';
import { type Action, ACTIONS, TwoHalves } from './two-halves.fixture.ts';

/** Two halves, each of which decides for itself, by what it knows of the other: they end alike, whatever happens. */

/** What goes on by itself happens more often than what goes wrong. */
const action: fc.Arbitrary<Action> = fc.oneof(
  { weight: 12, arbitrary: fc.constantFrom(...ACTIONS.slice(0, 11), 'copy ends' as const) },
  { weight: 1, arbitrary: fc.constantFrom(...ACTIONS.slice(11)) },
);

/** Looked at after every action, of which there are many: no assertion library is that quick. */
function check(halves: TwoHalves): void {
  const { source, target, sourceJournal, targetJournal } = halves;
  const [one, other] = [source.migration.status?.phase, target.migration.status?.phase];
  const wrong = [
    halves.runners > 1 && 'two run it',
    one === 'Succeeded' && other === 'Failed' && 'only the source succeeded',
    one === 'Failed' && other === 'Succeeded' && 'only the target succeeded',
    // Nothing can become of what has failed.
    other === 'Failed' && targetJournal === 'taken' && 'the target has what it failed to get',
    one === 'Failed' && sourceJournal !== 'holding' && 'the source has not what it failed to give',
    ...unfounded(halves, 'source'),
    ...unfounded(halves, 'target'),
  ].find((each) => each !== false);
  if (wrong !== undefined) throw new Error(`${wrong}: ${halves.verdicts}`);
}

/** What a half does not know though its phase rests on it. */
function unfounded(halves: TwoHalves, role: 'source' | 'target'): string[] {
  const side = halves[role];
  const phase = side.migration.status?.phase ?? '';
  const missing = (REQUIRED_FACTS[role][phase] ?? []).filter(({ isKnown }) => !isKnown(halves.factsOf(side)));
  return missing.map(({ what }) => `the ${role} is ${phase} and does not know ${what}`);
}

function settled(halves: TwoHalves): void {
  halves.settle();
  check(halves);
  expect(halves.isOver).toBe(true);
  expect(halves.verdicts).toMatch(/^(Succeeded Succeeded|Failed Failed)$/);
  expect(halves.isAtTarget).toBe(halves.verdicts.startsWith('Succeeded'));
  expect(halves.runners).toBe(1);
}

describe('two halves of a migration', () => {
  it('succeed where nothing goes wrong', () => {
    const halves = new TwoHalves();
    settled(halves);
    expect(halves.verdicts).toBe('Succeeded Succeeded');
  });

  it('end alike, whatever is late or goes wrong', () => {
    const verdicts = new Map<string, number>();
    fc.assert(
      fc.property(fc.array(action, { maxLength: 90 }), (actions) => {
        const halves = new TwoHalves();
        for (const each of actions) {
          halves.perform(each);
          check(halves);
        }
        settled(halves);
        verdicts.set(halves.verdicts, (verdicts.get(halves.verdicts) ?? 0) + 1);
      }),
      { numRuns: IS_FULL ? 3000 : 300 },
    );
    for (const verdict of ['Succeeded Succeeded', 'Failed Failed']) expect(verdicts.get(verdict)).toBeGreaterThan(10);
  });

  describe.each(['source is cancelled', 'target is cancelled', 'pod ends', 'copy fails', 'time passes'] as const)(
    'where %s at any point of a way that goes well',
    (trouble) => {
      it('end alike', () => {
        for (let point = 0; ; point++) {
          const halves = new TwoHalves();
          const isDone = goWell(halves, point);
          for (let times = 0; times < (trouble === 'time passes' ? 30 : 1); times++) halves.perform(trouble);
          check(halves);
          settled(halves);
          if (isDone) break;
        }
      });

      it('end alike, if one side hears nothing of it for a while, and the other one is cancelled', () => {
        for (const other of ['source is cancelled', 'target is cancelled'] as const) {
          for (let point = 0; ; point++) {
            const halves = new TwoHalves();
            const isDone = goWell(halves, point);
            halves.perform(trouble);
            for (const each of CUT) halves.perform(each);
            halves.perform(other);
            for (const each of CUT) halves.perform(each);
            check(halves);
            settled(halves);
            if (isDone) break;
          }
        }
      });
    },
  );
});

const CUT: readonly Action[] = ['source controls', 'source acts', 'target controls', 'target acts', 'source controls'];

const WELL: readonly Action[] = [
  'source controls',
  'target controls',
  'source speaks',
  'target hears',
  'target speaks',
  'source hears',
  'source acts',
  'pod starts',
  'target acts',
  'copy ends',
  'source acts',
  'grant arrives',
  'target acts',
  'answer arrives',
];

/** So many steps of a way that goes well; whether that is all of it. */
function goWell(halves: TwoHalves, steps: number): boolean {
  for (let step = 0; step < steps; step++) {
    if (halves.isOver) return true;
    halves.perform(WELL[step % WELL.length] ?? 'time passes');
  }
  return false;
}
