import type { PeerAnswer } from '../node/migrations/peer.ts';
import { TRUST_CONFIG_MAP } from '../sync/trust/objects.ts';
import type { Plan } from './plan.ts';
import type { PlantedBug } from './planted-bug.ts';
import { CONTROLLERS, MIGRATIONS, onlyWith, repeated } from './provocations.ts';
import { misreading, miswriting, swallowing } from './spoilt-transports.ts';

/** Whoever deals with halves of pairs. */
const READERS_OF_KEYS = /^(controllers|synchronization)/;

/** Guests go from cluster to cluster, all the time. */
function withTravels(plan: Plan): Plan {
  const guests = repeated('createTraveller', 6, 0, 500);
  return onlyWith(plan, 200_000, [...guests, ...repeated('moveAway', 16, 30_000, 8000)]);
}

/** People take keys that others have taken. */
function withReusedKeys(plan: Plan): Plan {
  const guests = repeated('createTraveller', 8, 0, 500);
  const travels = repeated('moveAway', 8, 30_000, 4000);
  return onlyWith(plan, 80_000, [...guests, ...travels, ...repeated('reuseKey', 16, 31_000, 2000)]);
}

/** Trust is taken back and given again while guests go to and fro. */
function withRevocations(plan: Plan): Plan {
  const travels = withTravels(plan);
  const acts = [...repeated('revokeTrust', 24, 40_000, 6000), ...repeated('trustAll', 24, 43_000, 6000)];
  const { actions } = onlyWith(plan, 0, acts);
  return {
    ...travels,
    actions: [...travels.actions, ...actions.map((act) => ({ ...act, stream: `${act.stream}/trust` }))],
  };
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
    whose: /^node-/,
    spoilTransport: (transport, random) =>
      swallowing(transport, random, { chance: 1, isSwallowed: ({ body }) => isDeparture(body) }),
  },
  {
    name: 'keys-of-guests',
    description: 'a key is taken for another one where it is that of another guest',
    scenario: 'clusters',
    invariant: 'keys-mean-one',
    firstSeed: 1,
    seedsMax: 3,
    provoke: withReusedKeys,
    whose: READERS_OF_KEYS,
    spoilTransport: (transport) =>
      misreading(
        transport,
        (text) => text.replaceAll(/"vmiName":"(\w+)"(.*?)"key":"/g, '"vmiName":"$1"$2"key":"$1-'),
        MIGRATIONS,
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
    whose: READERS_OF_KEYS,
    spoilTransport: (transport) =>
      misreading(transport, (text) => text.replaceAll(/"key":"(pair-.)[^"]*"/g, '"key":"$1"'), MIGRATIONS),
  },
  {
    name: 'misspelt-verdicts',
    description: 'of some migrations that have succeeded it is written that they failed',
    scenario: 'clusters',
    invariant: 'halves-agree',
    firstSeed: 2,
    seedsMax: 3,
    provoke: withTravels,
    whose: CONTROLLERS,
    spoilTransport: (transport, random) =>
      miswriting(transport, random, {
        chance: 0.5,
        miswrite: (body, path) =>
          path.includes(MIGRATIONS) ? body.replace('"phase":"Succeeded"', '"phase":"Failed"') : body,
      }),
  },
  {
    name: 'hasty-revocations',
    description: 'trust that is taken back is gone at once',
    scenario: 'clusters',
    invariant: 'trust-outlasts-moves',
    firstSeed: 1,
    seedsMax: 3,
    provoke: withRevocations,
    whose: /^user/,
    spoilTransport: (transport, random) =>
      miswriting(transport, random, {
        chance: 1,
        miswrite: (body, path) => (path.includes(TRUST_CONFIG_MAP) ? withoutRevoked(body) : body),
      }),
  },
];

/** Takes everything about clusters out of a ConfigMap in which trust was revoked. */
function withoutRevoked(body: string): string {
  const revoked = [...body.matchAll(/"([^"]+)\.revoked":/g)].map(([, peer]) => peer);
  return revoked.reduce<string>((text, peer) => text.replaceAll(`"${peer}.`, `"former-${peer}-`), body);
}

type Letter = PeerAnswer['letters'][number];

function misheard(letter: Letter): Letter {
  return letter.kind === 'taken' ? { ...letter, kind: 'refused' } : letter;
}

/** Whether a record is written that is away. */
function isDeparture(body: string | undefined): boolean {
  return body?.includes('"across":true') === true && !body.includes('"successor":{');
}
