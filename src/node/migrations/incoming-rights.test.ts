import { describe, expect, it } from 'vitest';
import { testEnv } from '../../env/test.ts';
import type { Attempt } from '../../migration/right-to-run/attempt.ts';
import type { JournaledStanding } from '../../migration/right-to-run/journal.ts';
import type { Machines } from '../guests/machines.ts';
import type { JournalFile } from '../journal/journal-file.ts';
import { Incoming } from './incoming.ts';
import type { PeerCaller, PeerRequest } from './peer.ts';

const runner = (node: string, podUID: string) => ({ node, nodeUID: `uid-${node}`, podUID });
const attemptFrom = (node: string): Attempt => ({
  epoch: 6,
  source: runner(node, 'pod-a'),
  target: runner('node-b', 'pod-b'),
  sourceMigrationUID: 'move',
  targetMigrationUID: 'move',
});
const OWN = attemptFrom('node-a');

const HOLDING = { kind: 'holding', epoch: 7, mustContinue: false, isCompleted: false } as const;
const STANDINGS = {
  'receives it': { kind: 'receiving', attempt: OWN },
  'has taken it': { ...HOLDING, taken: OWN },
  'was started here': HOLDING,
  'has left again': { kind: 'granted', attempt: { ...OWN, epoch: 7 }, isPostCopy: false },
  'has ended': { kind: 'ended', epoch: 7 },
  'never came': { kind: 'none' },
} satisfies Record<string, JournaledStanding>;

const requests = (attempt: Attempt): readonly PeerRequest[] => [
  { kind: 'open', attempt, method: { allowsPostCopy: false, isEncrypted: true }, copiedDisks: [] },
  { kind: 'look', attempt },
  { kind: 'letter', message: { kind: 'aborted', attempt } },
  { kind: 'listen-again', attempt },
];

const reached = (): never => {
  throw new Error('reached');
};

const incomingWith = (standing: JournaledStanding): Incoming =>
  new Incoming({
    env: testEnv(),
    journal: { vmOf: () => 'vm', standing: () => standing } as unknown as JournalFile,
    machines: { look: reached, get: reached } as unknown as Machines,
    describe: reached,
    credentials: { issue: reached },
    host: 'node-b',
    portsOf: () => undefined,
    sourceKeysOf: ({ sourceMigrationUID }) => (sourceMigrationUID === 'move' ? ['key', 'next key'] : []),
    advance: reached,
  });

/** What of it is let through to where the guest is, by the names of the requests. */
async function heard(
  caller: string | PeerCaller,
  standing: JournaledStanding,
  attempt: Attempt,
): Promise<readonly string[]> {
  const through: string[] = [];
  for (const request of requests(attempt)) {
    try {
      await incomingWith(standing).answer(typeof caller === 'string' ? { node: caller } : caller, request);
    } catch (error) {
      if (String(error).includes('reached')) through.push(request.kind);
    }
  }
  return through;
}

describe('what a node may ask of another about a guest that', () => {
  it.each<[keyof typeof STANDINGS, readonly string[]]>([
    ['receives it', ['open', 'look', 'letter', 'listen-again']],
    ['has taken it', ['look', 'letter', 'listen-again']],
    ['was started here', []],
    ['has left again', ['look', 'letter']],
    ['has ended', ['look', 'letter']],
    ['never came', []],
  ])('%s: its source %j', async (name, allowed) => {
    expect(await heard('node-a', STANDINGS[name], OWN)).toEqual(allowed);
  });

  it.each<[keyof typeof STANDINGS]>([['receives it'], ['has taken it'], ['was started here'], ['never came']])(
    '%s: nothing, if it is not the source, whatever it says that it is',
    async (name) => {
      expect(await heard('node-c', STANDINGS[name], OWN)).toEqual([]);
      expect(await heard('node-c', STANDINGS[name], attemptFrom('node-c'))).toEqual([]);
    },
  );
});

/** Both sides have records of their own, and nodes that may be called alike. */
const ACROSS: Attempt = { ...OWN, target: runner('node-a', 'pod-b'), across: { targetEpoch: 9 } };
/** As its source has it, who does not know what the target remembers. */
const SAID: Attempt = { ...ACROSS, across: { targetEpoch: 7 } };
const FAR = {
  'receives it': { kind: 'receiving', attempt: ACROSS },
  'has taken it': { ...HOLDING, epoch: 9, taken: ACROSS },
  'was started here': HOLDING,
  'has left again': { kind: 'granted', attempt: { ...OWN, epoch: 9 }, isPostCopy: false, taken: ACROSS },
  'has ended': { kind: 'ended', epoch: 9, taken: ACROSS },
  'came otherwise, and ended': { kind: 'ended', epoch: 7 },
  'came from another, and ended': { kind: 'ended', epoch: 9, taken: { ...ACROSS, epoch: 5 } },
} satisfies Record<string, JournaledStanding>;

describe('what an agent elsewhere may ask about a guest that', () => {
  it.each<[keyof typeof FAR, readonly string[]]>([
    ['receives it', ['open', 'look', 'letter', 'listen-again']],
    ['has taken it', ['look', 'letter', 'listen-again']],
    ['was started here', []],
    ['has left again', ['look', 'letter']],
    ['has ended', ['look', 'letter']],
    ['came otherwise, and ended', []],
    ['came from another, and ended', []],
  ])('%s, with a key that was named for it: %j', async (name, allowed) => {
    for (const key of ['key', 'next key']) expect(await heard({ key }, FAR[name], SAID)).toEqual(allowed);
  });

  it.each<[string, PeerCaller, Attempt]>([
    ['another key', { key: 'other' }, SAID],
    ['no key', {}, SAID],
    ['a key that was named for another migration', { key: 'key' }, { ...SAID, sourceMigrationUID: 'other' }],
    ['the name of the source, and a certificate of this cluster', { node: 'node-a', key: 'other' }, SAID],
    ['its key, as if both had one record', { key: 'key' }, { ...OWN, target: ACROSS.target }],
    ['the name of the source, as if both had one record', { node: 'node-a' }, { ...OWN, target: ACROSS.target }],
  ])('receives it: nothing, with %s', async (_, caller, attempt) => {
    for (const name of ['receives it', 'has taken it'] as const)
      expect(await heard(caller, FAR[name], attempt)).toEqual([]);
  });

  it('receives it: nothing that is not encrypted', async () => {
    const answered = incomingWith(FAR['receives it']).answer(
      { key: 'key' },
      { kind: 'open', attempt: SAID, method: { allowsPostCopy: false, isEncrypted: false }, copiedDisks: [] },
    );
    await expect(answered).rejects.toThrow('has to be encrypted');
  });

  it('stays in its cluster: nothing, whatever its key is', async () =>
    expect(await heard({ key: 'key' }, STANDINGS['receives it'], OWN)).toEqual([]));
});
