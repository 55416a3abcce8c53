import type { Transport } from '../kube/transport.ts';
import type { PeerAnswer } from '../node/migrations/peer.ts';
import type { Plan } from './plan.ts';
import type { PlantedBug } from './planted-bug.ts';
import { type Act, isController, onlyWith } from './provocations.ts';
import { misreading, miswriting, swallowing } from './spoilt-transports.ts';

const MIGRATIONS = '/virtualmachineinstancemigrations';

/** Guests go from cluster to cluster, all the time. */
function withTravels(plan: Plan): Plan {
  const guests = Array.from({ length: 6 }, (_, index): Act => [index * 500, 'createTraveller']);
  const travels = Array.from({ length: 16 }, (_, index): Act => [30_000 + index * 8000, 'moveAway']);
  return onlyWith(plan, 200_000, [...guests, ...travels]);
}

/** People take keys that others have taken. */
function withReusedKeys(plan: Plan): Plan {
  const guests = Array.from({ length: 8 }, (_, index): Act => [index * 500, 'createTraveller']);
  const travels = Array.from({ length: 8 }, (_, index): Act => [30_000 + index * 4000, 'moveAway']);
  const mistakes = Array.from({ length: 16 }, (_, index): Act => [31_000 + index * 2000, 'reuseKey']);
  return onlyWith(plan, 80_000, [...guests, ...travels, ...mistakes]);
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
  {
    name: 'keys-of-guests',
    description: 'a key is taken for another one where it is that of another guest',
    scenario: 'clusters',
    invariant: 'keys-mean-one',
    firstSeed: 1,
    seedsMax: 3,
    provoke: withReusedKeys,
    spoilTransport: (component, transport) =>
      withOtherKeys(component, transport, (text) =>
        text.replaceAll(/"vmiName":"(\w+)"(.*?)"key":"/g, '"vmiName":"$1"$2"key":"$1-'),
      ),
  },
  {
    name: 'cropped-keys',
    description: 'keys are told apart by their first letters alone',
    scenario: 'clusters',
    invariant: 'crossings-have-halves',
    firstSeed: 2,
    seedsMax: 5,
    provoke: withTravels,
    spoilTransport: (component, transport) =>
      withOtherKeys(component, transport, (text) => text.replaceAll(/"key":"(pair-.)[^"]*"/g, '"key":"$1"')),
  },
  {
    name: 'misspelt-verdicts',
    description: 'of some migrations that have succeeded it is written that they failed',
    scenario: 'clusters',
    invariant: 'halves-agree',
    firstSeed: 2,
    seedsMax: 3,
    provoke: withTravels,
    spoilTransport: (component, transport, random) =>
      isController(component)
        ? miswriting(transport, random, {
            chance: 0.5,
            miswrite: (body, path) =>
              path.includes(MIGRATIONS) ? body.replace('"phase":"Succeeded"', '"phase":"Failed"') : body,
          })
        : transport,
  },
];

/** Whoever deals with halves of pairs reads other keys than people have written. */
function withOtherKeys(component: string, transport: Transport, misread: (text: string) => string): Transport {
  if (!isController(component) && !component.startsWith('synchronization')) return transport;
  return misreading(transport, (text, path) => (path.includes(MIGRATIONS) ? misread(text) : text));
}

type Letter = PeerAnswer['letters'][number];

function misheard(letter: Letter): Letter {
  return letter.kind === 'taken' ? { ...letter, kind: 'refused' } : letter;
}

/** Whether a record is written that is away. */
function isDeparture(body: string | undefined): boolean {
  return body?.includes('"across":true') === true && !body.includes('"successor":{');
}
