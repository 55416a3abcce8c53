import { describe, expect, it } from 'vitest';
import type { RightToRun } from '../../api/kubevirt/right-to-run.ts';
import type { Attempt } from './attempt.ts';
import { decide, isHeard, isSettled } from './decide.ts';
import type { Entry } from './entry.ts';
import { runnerOf } from './model-world.fixture.ts';
import { recordObjection } from './objection.ts';
import { inWords } from './plan-words.fixture.ts';
import type { Message } from './plan.ts';
import { type NodeWord, reclaimAcross, seize, seizeTarget } from './seize.ts';
import { standingOf } from './standing.ts';
import type { View } from './view.ts';

const A = runnerOf('a');
const B = runnerOf('b');
const C = runnerOf('c');
const ATTEMPT: Attempt = {
  epoch: 4,
  source: A,
  target: B,
  sourceMigrationUID: 'source',
  targetMigrationUID: 'target',
  across: { targetEpoch: 5 },
};
const { across: _across, ...WITHIN } = ATTEMPT;
/** As the target knows it, whose machine remembers epoch 8. */
const THERE: Attempt = { ...ATTEMPT, across: { targetEpoch: 9 } };

const MINE: RightToRun = { epoch: 4, holder: A };
const NEXT_B: RightToRun = { epoch: 4, holder: A, successor: B, across: true };
const AWAY: RightToRun = { epoch: 5, holder: B, across: true };
const THEIRS: RightToRun = { epoch: 9, holder: B };

const HOLDING: readonly Entry[] = [
  { kind: 'starting', epoch: 4 },
  { kind: 'started', epoch: 4 },
  { kind: 'machine', event: 'resumed' },
];
const RESERVED: readonly Entry[] = [...HOLDING, { kind: 'reserved', attempt: ATTEMPT }];
const granted = (isPostCopy: boolean): readonly Entry[] => [
  ...RESERVED,
  { kind: 'granted', attempt: ATTEMPT, isPostCopy },
];
const GRANTED = granted(false);
const ENDED: readonly Entry[] = [...GRANTED, { kind: 'ended', epoch: 4, givenTo: B, isAcross: true }];
const RECEIVING: readonly Entry[] = [{ kind: 'receiving', attempt: THERE }];
const TAKEN: readonly Entry[] = [
  ...RECEIVING,
  { kind: 'taken', attempt: THERE },
  { kind: 'machine', event: 'resumed' },
];

const said = (kind: Message['kind'], more: Partial<Attempt> = {}): Partial<View> => ({
  inbox: [{ kind, attempt: { ...ATTEMPT, ...more } }],
});

function view(entries: readonly Entry[], more: Partial<View>): View {
  return {
    self: A,
    record: NEXT_B,
    standing: standingOf(entries),
    machine: 'postmigrate',
    hasMigrationFailed: false,
    peerMachine: 'unknown',
    inbox: [],
    outOfService: new Set(),
    unheard: [],
    wish: {},
    ...more,
  };
}

const atTarget = (entries: readonly Entry[], more: Partial<View>): View =>
  view(entries, { self: B, record: undefined, machine: 'paused', ...more });

describe('a source whose guest goes to another object', () => {
  const restored: Partial<View> = { unheard: ['a', 'c'] };
  it.each<[what: string, view: View, words: string]>([
    [
      'reserves, and says so',
      view(HOLDING, { record: MINE, machine: 'running', peerMachine: 'inmigrate', wish: { migrate: ATTEMPT } }),
      'write reserved, record 4 a next b across',
    ],
    [
      'names it again while its guest runs',
      view(RESERVED, { record: MINE, machine: 'running' }),
      'record 4 a next b across',
    ],
    ['says again what it granted', view(GRANTED, {}), 'send grant'],
    ['asks for it back', view(GRANTED, { wish: { isCancelled: true } }), 'send grant, send please-refuse'],
    ['writes itself who took it', view(GRANTED, said('taken')), 'kill, write ended, record 5 b across'],
    [
      'knows the word of a target that counts in other epochs',
      view(GRANTED, said('taken', { across: { targetEpoch: 9 } })),
      'kill, write ended, record 5 b across',
    ],
    [
      'does not take the word of a migration within its record for it',
      view(GRANTED, { inbox: [{ kind: 'taken', attempt: WITHIN }] }),
      'send grant',
    ],
    ['writes it after a crash', view(ENDED, { machine: 'dead' }), 'record 5 b across'],
    ['has nothing more to do then', view(ENDED, { machine: 'dead', record: AWAY }), ''],
    ['goes on after a refusal', view(GRANTED, said('refused')), 'write regained, continue, record 5 a'],
    [
      'does not give up because a node is out of service',
      view(GRANTED, { outOfService: new Set([B.nodeUID]) }),
      'send grant',
    ],
    [
      'keeps the memory that its target still needs',
      view(granted(true), { machine: 'postcopy', ...said('taken') }),
      '',
    ],
    ['lets go of it then', view(granted(true), { ...said('taken') }), 'kill, write ended, record 5 b across'],
    [
      'lets go of memory that nobody needs: the target is dead',
      view(granted(true), { machine: 'postcopy', peerMachine: 'dead', ...said('taken') }),
      'kill, write ended, record 5 b across',
    ],
    [
      'lets go of memory that nobody needs: the other side says so',
      view(granted(true), { machine: 'postcopy', wish: { isPeerDone: true }, ...said('taken') }),
      'kill, write ended, record 5 b across',
    ],
    ['ends for whoever wrote who took it', view(GRANTED, { record: AWAY }), 'kill, write ended'],
    ['ends when it was seized', view(GRANTED, { record: { epoch: 5 } }), 'kill, write ended'],
    ['goes on when it was reclaimed', view(GRANTED, { record: { epoch: 5, holder: A } }), 'write regained, continue'],
    [
      'ends when it was reclaimed, and is dead',
      view(GRANTED, { record: { epoch: 5, holder: A }, machine: 'dead' }),
      'write ended',
    ],
    [
      'gives the right back that was reclaimed for it when it had ended',
      view([...GRANTED, { kind: 'ended', epoch: 4 }], { record: { epoch: 5, holder: A }, machine: 'dead' }),
      'record 6 nobody',
    ],
    [
      'gives the right back then',
      view([...GRANTED, { kind: 'ended', epoch: 5 }], { record: { epoch: 5, holder: A }, machine: 'dead' }),
      'record 6 nobody',
    ],
    [
      'ends when it was reclaimed in the middle of a post-copy',
      view(granted(true), { record: { epoch: 5, holder: A }, machine: 'postcopy' }),
      'kill, write ended',
    ],
    [
      'stops copying when it was reclaimed before the grant',
      view(RESERVED, { record: { epoch: 5, holder: A }, machine: 'running' }),
      'cancel-migration, write aborted, continue, send aborted',
    ],
    [
      'holds the new epoch then',
      view([...RESERVED, { kind: 'aborted', attempt: ATTEMPT }], {
        record: { epoch: 5, holder: A },
        machine: 'running',
      }),
      'write regained',
    ],
    // Its API's data was restored.
    ['names it again', view(GRANTED, { ...restored, record: MINE }), 'send grant, record 4 a next b across'],
    [
      'takes another one off first',
      view(GRANTED, { ...restored, record: { ...MINE, successor: C } }),
      'send grant, record 4 a',
    ],
    ['claims a record that is gone', view(GRANTED, { ...restored, record: undefined }), 'send grant, record 4 a'],
    ['claims one of nobody', view(GRANTED, { ...restored, record: { epoch: 3 } }), 'send grant, record 4 a'],
    ['claims one that is older still', view(GRANTED, { ...restored, record: { epoch: 1 } }), 'send grant, record 2 a'],
    [
      'claims what it is named for two epochs before its own',
      view(GRANTED, { ...restored, record: { epoch: 2, holder: C, successor: A } }),
      'send grant, record 3 a',
    ],
    ['raises it then', view(GRANTED, { ...restored, record: { epoch: 3, holder: A } }), 'send grant, record 4 a'],
    ['waits for the one before it', view(GRANTED, { ...restored, record: { epoch: 3, holder: C } }), 'send grant'],
    [
      'takes what that one names it for again',
      view(GRANTED, { ...restored, record: { epoch: 3, holder: C, successor: A } }),
      'send grant, record 4 a',
    ],
    [
      'names it again though it ended',
      view(ENDED, { ...restored, machine: 'dead', record: MINE }),
      'record 4 a next b across',
    ],
    [
      'says where it went though it has no record any more',
      view(ENDED, { ...restored, machine: 'dead', record: undefined }),
      'record 5 b across',
    ],
    ['or one of nobody', view(ENDED, { ...restored, machine: 'dead', record: { epoch: 4 } }), 'record 5 b across'],
    ['raises that first', view(ENDED, { ...restored, machine: 'dead', record: { epoch: 2 } }), 'record 4 nobody'],
    [
      'takes off whom it named before',
      view(ENDED, { ...restored, machine: 'dead', record: { ...MINE, successor: C } }),
      'record 4 a',
    ],
    ['raises its own', view(ENDED, { ...restored, machine: 'dead', record: { epoch: 2, holder: A } }), 'record 4 a'],
    ['leaves alone what came later', view(ENDED, { ...restored, machine: 'dead', record: { epoch: 6 } }), ''],
  ])('%s', (_, seen, words) => {
    const next = decide(seen);
    expect(inWords(next)).toBe(words);
    for (const step of next.steps)
      if (step.kind === 'record')
        expect(recordObjection(seen.self.node, step.from, step.to, { isAcross: true })).toBeUndefined();
  });

  it('takes nothing for a reclaim that could be data that was restored', () => {
    const within: readonly Entry[] = [...HOLDING, { kind: 'reserved', attempt: WITHIN }];
    const ended: Entry = { kind: 'ended', epoch: 4 };
    for (const [entries, epoch] of [
      [HOLDING, 5],
      [within, 5],
      [RESERVED, 6],
      [[...within, ended], 5],
      [[...RESERVED, ended], 6],
    ] as const) {
      const machine = entries.includes(ended) ? ('dead' as const) : ('running' as const);
      expect(inWords(decide(view(entries, { machine, record: { epoch, holder: A } })))).toBe('Quarantined');
    }
  });

  it('is not done before its record says where the guest went', () => {
    expect(isSettled(view(ENDED, { machine: 'dead' }))).toBe(false);
    expect(isSettled(view(ENDED, { machine: 'dead', record: AWAY }))).toBe(true);
    expect(isSettled(view(ENDED, { machine: 'dead', record: undefined }))).toBe(true);
    expect(isHeard(view(ENDED, { ...restored, machine: 'dead', record: undefined }))).toBe(false);
    expect(isHeard(view(GRANTED, { ...restored, record: undefined }))).toBe(false);
    expect(isHeard(view(GRANTED, restored))).toBe(true);
  });
});

describe('a target whose guest comes from another object', () => {
  it.each<[what: string, view: View, words: string]>([
    ['receives', atTarget([], { machine: 'dead', wish: { receive: THERE } }), 'write receiving, start-incoming'],
    [
      'does not where there is a guest',
      atTarget([], { machine: 'dead', record: THEIRS, wish: { receive: THERE } }),
      'HeldByAnother',
    ],
    [
      'does not before all were heard',
      atTarget([], { machine: 'dead', unheard: ['d'], wish: { receive: THERE } }),
      'Quarantined',
    ],
    [
      'takes, in an epoch of its own',
      atTarget(RECEIVING, said('grant')),
      'write taken, close-exports, continue, send taken, record 9 b',
    ],
    [
      'does not take where another has begun',
      atTarget(RECEIVING, { ...said('grant'), record: { epoch: 1, holder: C } }),
      'kill, write refused, discard-images, send refused',
    ],
    ['finishes a take', atTarget(TAKEN.slice(0, 2), {}), 'close-exports, continue, record 9 b'],
    ['writes its record again', atTarget(TAKEN, { machine: 'running' }), 'record 9 b'],
    ['writes it before it says that its machine is dead', atTarget(TAKEN, { machine: 'dead' }), 'record 9 b'],
    ['says so then', atTarget(TAKEN, { machine: 'dead', record: THEIRS }), 'write ended'],
    [
      'answers who has not heard',
      atTarget(TAKEN, { machine: 'running', record: THEIRS, ...said('grant') }),
      'send taken',
    ],
    [
      'answers also when all is over',
      atTarget([...TAKEN, { kind: 'ended', epoch: 9 }], { machine: 'dead', record: { epoch: 10 }, ...said('grant') }),
      'send taken',
    ],
    [
      'refuses for a source that somebody gave up',
      atTarget(RECEIVING, { outOfService: new Set([A.nodeUID]) }),
      'kill, write refused, discard-images, send refused',
    ],
  ])('%s', (_, seen, words) => {
    expect(inWords(decide(seen))).toBe(words);
  });

  it('remembers how the guest came through all that follows', () => {
    const onwards: Attempt = { ...ATTEMPT, epoch: 9, source: B, target: C };
    const { across: _, ...local } = onwards;
    const reserved: readonly Entry[] = [...TAKEN, { kind: 'reserved', attempt: local }];
    for (const entries of [
      reserved,
      [...reserved, { kind: 'aborted', attempt: local } as const],
      [...reserved, { kind: 'granted', attempt: local, isPostCopy: false } as const],
      [
        ...reserved,
        { kind: 'granted', attempt: local, isPostCopy: false } as const,
        { kind: 'regained', epoch: 10 } as const,
      ],
      [...reserved, { kind: 'ended', epoch: 9, givenTo: C } as const],
    ]) {
      expect(standingOf(entries)).toMatchObject({ taken: { epoch: 4, across: { targetEpoch: 9 } } });
    }
  });

  it('is heard while it waits: nobody else starts what has no record', () => {
    expect(isHeard(atTarget(RECEIVING, { unheard: ['b'] }))).toBe(true);
  });
});

describe('a right that may have gone to another object', () => {
  const gone = (node: 'a' | 'b'): NodeWord => ({ uid: runnerOf(node).nodeUID, isOutOfService: true });
  it.each<[record: RightToRun, words: readonly NodeWord[], answer: 'taken' | 'refused' | undefined, outcome: string]>([
    [MINE, [gone('a')], undefined, 'record 5 nobody'],
    [NEXT_B, [gone('a')], undefined, 'SuccessorUnsettled'],
    // In one cluster the target's node can be given up too; its right goes on in its own record.
    [NEXT_B, [gone('a'), gone('b')], undefined, 'SuccessorUnsettled'],
    [NEXT_B, [gone('a')], 'refused', 'record 5 nobody'],
    [NEXT_B, [gone('a')], 'taken', 'record 5 b across'],
    [NEXT_B, [], 'refused', 'NotOutOfService'],
    [AWAY, [gone('b')], undefined, ''],
  ])('is seized from %j', (record, words, answer, outcome) => {
    expect(inWords(seize(record, words, answer))).toBe(outcome);
  });
  it('is written for a target that took it and is gone, on the word that it is', () => {
    expect(inWords(seizeTarget(B, 9, [gone('b')]))).toBe('record 9 b');
    expect(inWords(seizeTarget(B, 9, [gone('a')]))).toBe('NotOutOfService');
    expect(inWords(seizeTarget(B, 9, []))).toBe('NotOutOfService');
  });
  it.each<[record: RightToRun, isHolderGone: boolean, outcome: string]>([
    [NEXT_B, false, 'record 5 a'],
    [NEXT_B, true, 'record 5 nobody'],
    [AWAY, false, 'record 6 nobody'],
    [MINE, false, ''],
    [{ ...MINE, successor: B }, false, ''],
  ])('is reclaimed from %j', (record, isHolderGone, outcome) => {
    expect(inWords(reclaimAcross(record, isHolderGone))).toBe(outcome);
  });
});
