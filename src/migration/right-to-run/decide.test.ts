import { describe, expect, it } from 'vitest';
import type { RightToRun } from '../../api/kubevirt/right-to-run.ts';
import { decide, isHeard, isSettled } from './decide.ts';
import type { Entry } from './entry.ts';
import { ATTEMPT, runnerOf } from './model-world.fixture.ts';
import { recordObjection } from './objection.ts';
import { journal } from './plan.ts';
import { inWords } from './plan-words.fixture.ts';
import { type NodeWord, reclaim, seize } from './seize.ts';
import { standingOf } from './standing.ts';
import type { View } from './view.ts';

const A = runnerOf('a');
const B = runnerOf('b');
const MINE: RightToRun = { epoch: 1, holder: A };
const NEXT_B: RightToRun = { epoch: 1, holder: A, successor: B };
/** Of an attempt before, to another. */
const NEXT_C: RightToRun = { epoch: 1, holder: A, successor: runnerOf('c') };
const STARTED: readonly Entry[] = [
  { kind: 'starting', epoch: 1 },
  { kind: 'started', epoch: 1 },
];
const RESERVED: readonly Entry[] = [
  ...STARTED,
  { kind: 'machine', event: 'resumed' },
  { kind: 'reserved', attempt: ATTEMPT },
];
const GRANTED: readonly Entry[] = [...RESERVED, { kind: 'granted', attempt: ATTEMPT, isPostCopy: false }];
const GRANTED_POST_COPY: readonly Entry[] = [...RESERVED, { kind: 'granted', attempt: ATTEMPT, isPostCopy: true }];
const RECEIVING: readonly Entry[] = [{ kind: 'receiving', attempt: ATTEMPT }];
const TAKEN_AND_ENDED: readonly Entry[] = [
  ...RECEIVING,
  { kind: 'taken', attempt: ATTEMPT },
  { kind: 'ended', epoch: 2 },
];

function view(entries: readonly Entry[], more: Partial<View>): View {
  return {
    self: A,
    record: MINE,
    standing: standingOf(entries),
    machine: 'running',
    hasMigrationFailed: false,
    peerMachine: 'unknown',
    inbox: [],
    outOfService: new Set(),
    unheard: [],
    wish: {},
    ...more,
  };
}

describe('what an agent does, in its order', () => {
  it.each<[what: string, view: View, words: string]>([
    [
      'start',
      view([], { record: undefined, machine: 'dead', wish: { start: { remembered: { epoch: 6 } } } }),
      'write starting, record 7 a, write started, start, continue',
    ],
    [
      'start again where it was killed after its claim',
      view(STARTED.slice(0, 1), { machine: 'dead', wish: { start: {} } }),
      'write starting, record 2 a, write started, start, continue',
    ],
    [
      'start where another holds it',
      view([], { record: { epoch: 1, holder: B }, machine: 'dead', wish: { start: {} } }),
      'HeldByAnother',
    ],
    ['start with a journal that is gone', view([], { machine: 'dead', wish: { start: {} } }), 'JournalMissing'],
    [
      'start of what went away',
      view([], {
        record: undefined,
        machine: 'dead',
        wish: { start: { remembered: { epoch: 6, grantedAway: true } } },
      }),
      'GrantedAway',
    ],
    [
      'start after a restore',
      view([], { record: undefined, machine: 'dead', unheard: ['b'], wish: { start: {} } }),
      'Quarantined',
    ],
    [
      'start on a node that is said to be gone',
      view([], { record: undefined, machine: 'dead', outOfService: new Set([A.nodeUID]), wish: { start: {} } }),
      'OutOfService',
    ],
    ['continue what was not continued', view(STARTED, { machine: 'paused' }), 'continue, note resumed'],
    [
      'leave what its owner stopped',
      view([...STARTED, { kind: 'machine', event: 'resumed' }], { machine: 'paused' }),
      '',
    ],
    [
      'start what is to wait for its owner, and let it stand',
      view([], { record: undefined, machine: 'dead', wish: { start: { isPaused: true } } }),
      'write starting, record 1 a, write started, start',
    ],
    [
      'leave what waits for its owner, whoever died since',
      view([...STARTED.slice(0, 1), { kind: 'started', epoch: 1, isPaused: true }], { machine: 'paused' }),
      '',
    ],
    ['say that the machine is dead', view(STARTED, { machine: 'dead' }), 'write ended'],
    [
      'give the right back then',
      view([...STARTED, { kind: 'ended', epoch: 1 }], { machine: 'dead' }),
      'record 2 nobody',
    ],
    ['conclude nothing from silence', view(GRANTED, { machine: 'unknown' }), 'MachineUnknown'],
    [
      'reserve',
      view(RESERVED.slice(0, 3), { peerMachine: 'inmigrate', wish: { migrate: ATTEMPT } }),
      'write reserved, record 1 a next b',
    ],
    ['not reserve whom nobody hears', view(RESERVED.slice(0, 3), { wish: { migrate: ATTEMPT } }), 'NotReceived'],
    [
      'grant',
      view(RESERVED, { record: NEXT_B, machine: 'postmigrate', peerMachine: 'paused' }),
      'write granted, send grant',
    ],
    [
      'grant for a machine that died after it completed',
      view([...RESERVED, { kind: 'machine', event: 'completed' }], {
        record: NEXT_B,
        machine: 'dead',
        peerMachine: 'paused',
      }),
      'write granted, send grant',
    ],
    ...(['unknown', 'inmigrate'] as const).map((peerMachine): [string, View, string] => [
      `wait to hear whether its target has all of it: ${peerMachine}`,
      view([...RESERVED, { kind: 'machine', event: 'completed' }], { record: NEXT_B, machine: 'dead', peerMachine }),
      '',
    ]),
    ...[{ peerMachine: 'dead' as const }, { hasMigrationFailed: true }, { outOfService: new Set([B.nodeUID]) }].map(
      (more): [string, View, string] => [
        `wait no more for a target that will not have it: ${Object.keys(more).join()}`,
        view([...RESERVED, { kind: 'machine', event: 'completed' }], { record: NEXT_B, machine: 'dead', ...more }),
        'write aborted, record 1 a, send aborted',
      ],
    ),
    [
      'not grant for one that resumed since',
      view([...RESERVED, { kind: 'machine', event: 'completed' }, { kind: 'machine', event: 'resumed' }], {
        record: NEXT_B,
        machine: 'dead',
        peerMachine: 'paused',
      }),
      'write aborted, record 1 a, send aborted',
    ],
    [
      'abort what failed',
      view(RESERVED, { record: NEXT_B, machine: 'paused', hasMigrationFailed: true }),
      'cancel-migration, write aborted, continue, record 1 a, send aborted',
    ],
    ['grant again', view(GRANTED, { record: NEXT_B, machine: 'postmigrate' }), 'send grant'],
    [
      'ask for it back',
      view(GRANTED, { record: NEXT_B, machine: 'postmigrate', wish: { isCancelled: true } }),
      'send grant, send please-refuse',
    ],
    [
      'go on after a refusal',
      view(GRANTED, { record: NEXT_B, machine: 'postmigrate', inbox: [{ kind: 'refused', attempt: ATTEMPT }] }),
      'write regained, continue, record 2 a',
    ],
    [
      'not after that of another attempt',
      view(GRANTED, {
        record: NEXT_B,
        machine: 'postmigrate',
        inbox: [{ kind: 'refused', attempt: { ...ATTEMPT, targetMigrationUID: 'old' } }],
      }),
      'send grant',
    ],
    [
      'end once the target has it',
      view(GRANTED, { record: { epoch: 2, holder: B }, machine: 'postmigrate' }),
      'kill, write ended',
    ],
    ['receive', view([], { self: B, machine: 'dead', wish: { receive: ATTEMPT } }), 'write receiving, start-incoming'],
    [
      'take',
      view(RECEIVING, { self: B, record: NEXT_B, machine: 'paused', inbox: [{ kind: 'grant', attempt: ATTEMPT }] }),
      'write taken, close-exports, continue, send taken, record 2 b',
    ],
    [
      'not take in another epoch',
      view(RECEIVING, {
        self: B,
        record: NEXT_B,
        machine: 'paused',
        inbox: [{ kind: 'grant', attempt: { ...ATTEMPT, epoch: 2 } }],
      }),
      '',
    ],
    [
      'refuse when asked',
      view(RECEIVING, {
        self: B,
        record: NEXT_B,
        machine: 'paused',
        inbox: [{ kind: 'please-refuse', attempt: ATTEMPT }],
      }),
      'kill, write refused, discard-images, send refused',
    ],
    [
      'not take what was refused',
      view([...RECEIVING, { kind: 'refused', attempt: ATTEMPT }], {
        self: B,
        record: NEXT_B,
        machine: 'dead',
        inbox: [{ kind: 'grant', attempt: ATTEMPT }],
      }),
      'send refused',
    ],
    [
      'finish a take',
      view([...RECEIVING, { kind: 'taken', attempt: ATTEMPT }], { self: B, record: NEXT_B, machine: 'paused' }),
      'close-exports, continue, record 2 b',
    ],
    ['end what was seized', view(STARTED, { record: { epoch: 2 } }), 'kill, write ended'],
    ['end what was seized, and is gone since', view(STARTED, { record: undefined, machine: 'dead' }), 'write ended'],
    ['not end what is gone, and yet runs', view(STARTED, { record: undefined }), 'Quarantined'],
    [
      'raise a record that was restored',
      view([...STARTED, { kind: 'regained', epoch: 5 }], { record: { epoch: 2, holder: B } }),
      'record 5 b',
    ],
    [
      'name again whom it gave the right',
      view([...GRANTED, { kind: 'ended', epoch: 1, givenTo: B }], { machine: 'dead' }),
      'record 1 a next b',
    ],
    [
      'take off whom it reserved before',
      view([...GRANTED, { kind: 'ended', epoch: 1, givenTo: B }], { machine: 'dead', record: NEXT_C }),
      'record 1 a',
    ],
    [
      'not take off whom an admin has named since',
      view([...GRANTED, { kind: 'ended', epoch: 1, givenTo: B }], { machine: 'dead', record: { ...NEXT_C, epoch: 2 } }),
      '',
    ],
    [
      'take off whom it reserved before the one that it granted the right',
      view(GRANTED, { record: NEXT_C }),
      'record 1 a',
    ],
    [
      'take off whom it reserved before in post-copy, which waits for the grant',
      view(RESERVED, { machine: 'postcopy', peerMachine: 'postcopy', record: NEXT_C }),
      'record 1 a',
    ],
    [
      'name it again in post-copy, which waits for the grant',
      view(RESERVED, { machine: 'postcopy', peerMachine: 'postcopy' }),
      'record 1 a next b',
    ],
    [
      'name it again in post-copy, though it has taken',
      view(GRANTED_POST_COPY, { machine: 'postcopy', inbox: [{ kind: 'taken', attempt: ATTEMPT }] }),
      'record 1 a next b',
    ],
    [
      'not end half of a guest because of the epoch that its target has raised',
      view(GRANTED_POST_COPY, {
        machine: 'postcopy',
        record: { epoch: 3, holder: A },
        inbox: [{ kind: 'taken', attempt: ATTEMPT }],
      }),
      'record 3 a next b',
    ],
    [
      'nor of one that it has confirmed',
      view(GRANTED_POST_COPY, { machine: 'postcopy', record: { epoch: 3, holder: B } }),
      '',
    ],
    [
      'end half of a guest when the right has gone on',
      view(GRANTED_POST_COPY, { machine: 'postcopy', record: { epoch: 3 } }),
      'kill, write ended',
    ],
    [
      'say that it took a right which ended here since',
      view(TAKEN_AND_ENDED, { self: B, record: NEXT_B, machine: 'dead' }),
      'record 2 b',
    ],
    [
      'say so in an epoch that others have raised it to',
      view(TAKEN_AND_ENDED, { self: B, record: { ...NEXT_B, epoch: 2 }, machine: 'dead' }),
      'write ended, record 3 b',
    ],
    [
      'and then that it ended',
      view(TAKEN_AND_ENDED, { self: B, record: { epoch: 2, holder: B }, machine: 'dead' }),
      'record 3 nobody',
    ],
    [
      'raise its own record to where its right ended',
      view([...STARTED, { kind: 'regained', epoch: 5 }, { kind: 'ended', epoch: 5 }], { machine: 'dead' }),
      'record 5 a',
    ],
  ])('%s', (_, seen, words) => {
    const next = decide(seen);
    expect(inWords(next)).toBe(words);
    for (const step of next.steps)
      if (step.kind === 'record')
        expect(recordObjection(seen.self.node, step.from, step.to, { isAcross: false })).toBeUndefined();
  });
  it('attests that nothing runs only from a journal that says so', () => {
    expect(isSettled(view([...STARTED, { kind: 'ended', epoch: 1 }], { machine: 'dead' }))).toBe(true);
    expect(isSettled(view([], { machine: 'dead' }))).toBe(false);
    expect(isSettled(view(STARTED, { machine: 'dead' }))).toBe(false);
  });
});

describe('a node after a restore', () => {
  const RESTORED: Partial<View> = { unheard: ['a', 'b'], wish: { start: {} } };
  it.each<[what: string, view: View, isHeard: boolean]>([
    // Its claim went with the data that was lost: whoever waits for it to start, which waits for all, waits for ever.
    ['was about to start', view(STARTED.slice(0, 1), { ...RESTORED, record: undefined, machine: 'dead' }), true],
    ['has nothing to say', view([], { ...RESTORED, record: undefined, machine: 'dead' }), true],
    ['has to raise the record', view(STARTED, { ...RESTORED, record: undefined }), false],
    ['has to say that its machine is dead', view(STARTED, { ...RESTORED, machine: 'dead' }), false],
    ['holds what the record says', view(RESERVED.slice(0, 3), RESTORED), true],
    ['sees another hold it', view(STARTED, { ...RESTORED, record: { epoch: 1, holder: B } }), false],
    ['is not named as a successor any more', view(RECEIVING, { ...RESTORED, self: B, machine: 'paused' }), false],
    ['cannot tell', view(STARTED, { ...RESTORED, machine: 'unknown' }), false],
    [
      'is not named yet by who gave it a right that ended',
      view(TAKEN_AND_ENDED, { ...RESTORED, self: B, machine: 'dead' }),
      false,
    ],
    [
      'ended before',
      view(TAKEN_AND_ENDED, { ...RESTORED, self: B, machine: 'dead', record: { epoch: 2, holder: A } }),
      true,
    ],
  ])('%s', (_, seen, outcome) => {
    expect(isHeard(seen)).toBe(outcome);
  });
});

describe('taking the right away', () => {
  const word = (node: 'a' | 'b', isOutOfService = true): NodeWord => ({ uid: runnerOf(node).nodeUID, isOutOfService });
  it.each<[record: RightToRun, words: readonly NodeWord[], outcome: string]>([
    [MINE, [], 'NotOutOfService'],
    [MINE, [word('a', false)], 'NotOutOfService'],
    [MINE, [word('a')], 'record 2 nobody'],
    [NEXT_B, [word('a')], 'SuccessorUnsettled'],
    [NEXT_B, [word('a'), word('b')], 'record 2 nobody'],
    [{ epoch: 2 }, [word('a')], ''],
  ])('%j', (record, words, outcome) => {
    expect(inWords(seize(record, words))).toBe(outcome);
  });
  it('is reclaimed for the one that executes the guest, or for nobody', () => {
    const C = runnerOf('c');
    expect(inWords(reclaim(NEXT_B, C))).toBe('record 1 a, record 1 a next c');
    expect(inWords(reclaim(NEXT_B, undefined))).toBe('record 2 nobody');
    const kept = view(
      [
        { kind: 'starting', epoch: 1 },
        { kind: 'started', epoch: 1 },
      ],
      { record: { epoch: 4, holder: B, successor: A } },
    );
    expect(inWords(decide(kept))).toBe('write regained, record 5 a');
  });
});

describe('a target to which the guest comes ahead of its memory', () => {
  it('writes that down with what it takes: its memory may have come before anybody can be told', () => {
    const inbox = [{ kind: 'grant' as const, attempt: ATTEMPT, isPostCopy: true }];
    for (const machine of ['postcopy', 'paused'] as const)
      expect(decide(view(RECEIVING, { self: B, record: NEXT_B, machine, inbox })).steps).toContainEqual(
        journal({ kind: 'taken', attempt: ATTEMPT, isPostCopy: true }),
      );
  });
});
