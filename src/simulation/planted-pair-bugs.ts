import type { PeerAnswer } from '../node/migrations/peer.ts';
import type { Plan } from './plan.ts';
import type { PlantedBug } from './planted-bug.ts';
import { type Act, onlyWith } from './provocations.ts';
import { swallowing } from './spoilt-transports.ts';

/** Guests go from cluster to cluster, all the time. */
function withTravels(plan: Plan): Plan {
  const guests = Array.from({ length: 6 }, (_, index): Act => [index * 500, 'createTraveller']);
  const travels = Array.from({ length: 16 }, (_, index): Act => [30_000 + index * 8000, 'moveAway']);
  return onlyWith(plan, 200_000, [...guests, ...travels]);
}

/** Bugs that invariants of guests in several clusters have to find. */
export const PLANTED_PAIR_BUGS: readonly PlantedBug[] = [
  {
    name: 'misheard-targets',
    description: 'agents that have taken a guest are heard to have refused it',
    scenario: 'clusters',
    invariant: 'boots-run-once',
    firstSeed: 1,
    seedsMax: 3,
    provoke: withTravels,
    spoilAnswer: (answer) => ({ ...answer, letters: answer.letters.map(misheard) }),
  },
  {
    name: 'unwritten-departures',
    description: 'that a guest has gone to another object is never written, and taken for written',
    scenario: 'clusters',
    invariant: 'one-side-holds',
    firstSeed: 1,
    seedsMax: 3,
    provoke: withTravels,
    spoilTransport: (component, transport, random) =>
      component.startsWith('node-')
        ? swallowing(transport, random, { chance: 1, isSwallowed: ({ body }) => isDeparture(body) })
        : transport,
  },
];

type Letter = PeerAnswer['letters'][number];

function misheard(letter: Letter): Letter {
  return letter.kind === 'taken' ? { ...letter, kind: 'refused' } : letter;
}

/** Whether a record is written that is away. */
function isDeparture(body: string | undefined): boolean {
  return body?.includes('"across":true') === true && !body.includes('"successor":{');
}
