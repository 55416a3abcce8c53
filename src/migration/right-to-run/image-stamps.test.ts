import { describe, expect, it } from 'vitest';
import type { RightToRun } from '../../api/kubevirt/right-to-run.ts';
import type { Attempt, ImagePlace } from './attempt.ts';
import { decide } from './decide.ts';
import type { Entry } from './entry.ts';
import { type ImageStamp, judgeImage, judgeImages, type SeenImage, type SeenStamp } from './image-stamps.ts';
import { ATTEMPT, runnerOf } from './model-world.fixture.ts';
import type { Plan, Step } from './plan.ts';
import { standingOf } from './standing.ts';
import type { View } from './view.ts';

const VM = '1f3a9c2e-0000';
const FIRST: ImagePlace = { volume: 'root', claim: { name: 'first', uid: 'uid-first' }, path: '/first/disk.img' };
const SECOND: ImagePlace = { volume: 'root', claim: { name: 'second', uid: 'uid-second' }, path: '/second/disk.img' };
const stamp = (state: ImageStamp['state'], epoch: number, vm = VM): ImageStamp => ({
  state,
  epoch,
  vm,
  guest: 'default/web',
});
const on = (claimUID: string, imageEpoch: number): RightToRun['volumes'] => [{ name: 'root', claimUID, imageEpoch }];

describe('an image', () => {
  it.each<[what: string, stamp: SeenStamp, recorded: RightToRun['volumes'], accepted: string | undefined]>([
    ['that no guest has used', 'blank', undefined, undefined],
    ['of before there were stamps', 'absent', undefined, undefined],
    ['whose guest died before it was stamped', 'blank', on('uid-first', 4), undefined],
    ['that is not where it was', 'absent', on('uid-first', 4), 'none@4'],
    ['whose stamp only its own node knows', 'absent', on('uid-first', 0), undefined],
    ['as its guest left it', stamp('current', 4), on('uid-first', 4), undefined],
    ['whose guest is not remembered', stamp('current', 4), undefined, undefined],
    ['whose take nobody has recorded', stamp('current', 5), on('uid-first', 4), undefined],
    ['that was used again since', stamp('current', 3), on('uid-first', 4), undefined],
    ['of another machine', stamp('current', 3, 'another'), on('uid-first', 4), undefined],
    ['of a volume that is on another claim since', stamp('current', 3), on('uid-second', 4), undefined],
    ['that was left behind', stamp('stale', 4), on('uid-second', 5), 'stale@4-1f3a9c2e'],
    ['that was left behind, and nobody remembers', stamp('stale', 4), undefined, 'stale@4-1f3a9c2e'],
    ['that another machine left behind', stamp('stale', 4, 'another'), on('uid-first', 9), 'stale@4-another'],
    ['that was about to be left behind', stamp('stale', 4), on('uid-first', 3), 'stale@4-1f3a9c2e'],
    ['that the contents have come back to', stamp('stale', 4), on('uid-first', 5), undefined],
    ['that is not finished', stamp('receiving', 4), on('uid-second', 4), 'receiving@4-1f3a9c2e'],
    ['that was taken before it was stamped', stamp('receiving', 4), on('uid-first', 5), undefined],
    ['whose stamp is torn', 'damaged', undefined, 'damaged'],
  ])('%s', (_, seen, recorded, name) => {
    expect(judgeImage({ claim: FIRST.claim, stamp: seen }, VM, undefined, recorded)?.name).toBe(name);
  });

  it('is used in spite of its stamp where somebody says that very stamp, and is refused in words otherwise', () => {
    const image: SeenImage = { ...FIRST, stamp: { ...stamp('stale', 4), wentTo: 'claim second' }, isBeside: true };
    const of = { vm: VM, namespace: 'default' };
    expect(judgeImages([{ ...image, accepted: 'stale@4-1f3a9c2e' }], of)).toBeUndefined();
    expect(judgeImages([{ ...image, accepted: 'stale@3-1f3a9c2e' }], of)).toEqual({
      code: 'StaleImage',
      message:
        'volume root: no guest is started on the image of claim first: it is an old copy, which default/web left for ' +
        'claim second (stale@4-1f3a9c2e); to use it all the same: ' +
        'kubectl annotate pvc first -n default --overwrite godwit.dev/use-image=stale@4-1f3a9c2e',
    });
  });
});

describe('stamps', () => {
  const A = runnerOf('a');
  const B = runnerOf('b');
  const left: Attempt = { ...ATTEMPT, images: [FIRST] };
  const filled: Attempt = { ...ATTEMPT, images: [SECOND], volumes: on('uid-second', 2) };
  const started: readonly Entry[] = [
    { kind: 'starting', epoch: 1 },
    { kind: 'started', epoch: 1 },
    { kind: 'machine', event: 'resumed' },
  ];
  const reserved: readonly Entry[] = [...started, { kind: 'reserved', attempt: left }];
  const granted: readonly Entry[] = [...reserved, { kind: 'granted', attempt: left, isPostCopy: false }];
  const NEXT_B: RightToRun = { epoch: 1, holder: A, successor: B, volumes: on('uid-first', 1) };

  const planFor = (entries: readonly Entry[], more: Partial<View>): Plan =>
    decide({
      self: A,
      record: NEXT_B,
      standing: standingOf(entries),
      machine: 'postmigrate',
      hasMigrationFailed: false,
      peerMachine: 'paused',
      inbox: [],
      outOfService: new Set(),
      unheard: [],
      wish: {},
      ...more,
    });
  const inWords = ({ steps, refusal }: Plan): string => refusal?.code ?? steps.map(stepInWords).join(', ');
  const stepInWords = (step: Step): string => {
    if (step.kind === 'stamp')
      return step.stamps.map(({ image, state, epoch }) => `${image.claim.name} ${state}@${epoch}`).join(' ');
    if (step.kind === 'journal') return `write ${step.entry.kind}`;
    if (step.kind === 'machine') return step.command;
    if (step.kind === 'record') return `record ${step.to.epoch}`;
    return step.kind === 'send' ? `send ${step.message.kind}` : step.kind;
  };

  it.each<[string, Plan, string]>([
    ['are stale before anybody hears of the grant', planFor(reserved, {}), 'write granted, first stale@1, send grant'],
    ['are stale again after a crash', planFor(granted, {}), 'first stale@1, send grant'],
    [
      'are current again before the source goes on',
      planFor(granted, { inbox: [{ kind: 'refused', attempt: left }] }),
      'first current@2, write regained, continue, record 2',
    ],
    [
      'are current again where there is nothing to go on with',
      planFor(granted, { machine: 'dead', inbox: [{ kind: 'refused', attempt: left }] }),
      'first current@2, write ended',
    ],
    [
      'stay stale where the target may have had the guest',
      planFor(granted, { outOfService: new Set([B.nodeUID]) }),
      'kill, write ended',
    ],
    [
      'say that a copy is under way before it can be',
      planFor([], { self: B, machine: 'dead', wish: { receive: filled } }),
      'write receiving, second receiving@1, start-incoming',
    ],
    [
      'are current once the guest runs, and before the record says so',
      planFor([{ kind: 'receiving', attempt: filled }], {
        self: B,
        machine: 'paused',
        inbox: [{ kind: 'grant', attempt: left }],
      }),
      'write taken, close-exports, continue, send taken, second current@2, record 2',
    ],
    [
      'are current before the record says so, also after a crash',
      planFor(
        [
          { kind: 'receiving', attempt: filled },
          { kind: 'taken', attempt: filled },
        ],
        { self: B, machine: 'running' },
      ),
      'second current@2, record 2',
    ],
    [
      'of a copy that was given up go with it',
      planFor([{ kind: 'receiving', attempt: filled }], { self: B, inbox: [{ kind: 'aborted', attempt: filled }] }),
      'kill, write refused, discard-images, send refused',
    ],
  ])('%s', (_, { steps, refusal }, words) => {
    expect(inWords({ steps, ...(refusal ? { refusal } : {}) })).toBe(words);
  });

  it('are on record, and written once it names the pod', () => {
    const images: SeenImage[] = [
      { ...FIRST, stamp: 'blank', isBeside: true },
      { ...SECOND, volume: 'data', stamp: stamp('current', 3), isBeside: true },
      { ...SECOND, volume: 'golden', stamp: stamp('current', 3, 'another'), isBeside: true, isReadOnly: true },
      { volume: 'device', claim: { name: 'd', uid: 'uid-d' }, path: '/dev/d', stamp: 'absent', isBeside: false },
    ];
    const disks = { vm: VM, namespace: 'default', images };
    const start = planFor([], {
      record: undefined,
      machine: 'dead',
      wish: { start: { remembered: { epoch: 6 }, disks } },
    });
    expect(inWords(start)).toBe(
      'write starting, record 7, write started, first current@7 d current@7, start, continue',
    );
    expect(start.steps[1]).toMatchObject({
      to: {
        volumes: [
          { name: 'root', claimUID: 'uid-first', imageEpoch: 7 },
          { name: 'data', claimUID: 'uid-second', imageEpoch: 7 },
          { name: 'device', claimUID: 'uid-d', imageEpoch: 0 },
        ],
      },
    });
  });

  it('keep a machine from being started on what is not its disk', () => {
    const images: SeenImage[] = [{ ...FIRST, stamp: stamp('stale', 1), isBeside: true }];
    const wish = { start: { disks: { vm: VM, namespace: 'default', images } } };
    expect(inWords(planFor([], { record: undefined, machine: 'dead', wish }))).toBe('StaleImage');
    const claimed: RightToRun = { epoch: 1, holder: A };
    expect(inWords(planFor([{ kind: 'starting', epoch: 1 }], { record: claimed, machine: 'dead', wish }))).toBe(
      'StaleImage',
    );
  });
});
