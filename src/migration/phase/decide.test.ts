import { describe, expect, it } from 'vitest';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { MigrationPhase } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { decide } from './decide.ts';
import type { MigrationDecision } from './decision.ts';
import type { MigrationFacts } from './facts.ts';
import { at, factsOf, guestWith, handedOff, migrationIn, NOW_MS, podWith, TARGET } from './moves.fixture.ts';

const MINUTE = 60_000;
const GONE = { deletionTimestamp: at(1000) };

/** A decision in one line: `phase`, `phase step`, or `Failed reason step`. */
function said({ phase, failure, step }: MigrationDecision): string {
  return [phase, failure?.reason, step?.kind].filter((word) => word !== undefined).join(' ');
}

const started = (mode: 'PreCopy' | 'PostCopy' = 'PreCopy') =>
  handedOff({ startTimestamp: at(30_000), mode, targetNodeAddress: '10.0.0.2' });
const moved = (state: object = {}) =>
  handedOff({ startTimestamp: at(30_000), ...state }, { rightToRun: { epoch: 4, holder: TARGET } });
const ready = () => handedOff({ targetNodeAddress: '10.0.0.2' });

type Row = readonly [what: string, expected: string, facts: Partial<MigrationFacts>];

describe('what ends a migration, in the order in which it counts', () => {
  const up = podWith();
  it.each<Row>([
    ['it is over', 'Succeeded', { migration: migrationIn('Succeeded'), guest: undefined }],
    ['it is over', 'Failed', { migration: migrationIn('Failed'), guest: moved() }],
    ['the guest is gone', 'Failed GuestGone', { guest: undefined }],
    ['the guest is gone while it moves', 'Failed GuestGone', { migration: migrationIn('Running'), guest: undefined }],
    ['the guest has ended', 'Failed GuestEnded', { guest: guestWith({ phase: 'Succeeded' }) }],
    [
      'the guest ends while it moves',
      'Failed GuestEnded',
      {
        migration: migrationIn('Running'),
        guest: handedOff({ startTimestamp: at(9) }, { phase: 'Failed' }),
        targetPod: up,
      },
    ],
    ['the guest is to go', 'Failed GuestEnded', { guest: guestWith({}, GONE) }],
    [
      'the guest is to go, and nobody has begun',
      'Failed GuestEnded withdraw',
      {
        migration: migrationIn('TargetReady'),
        guest: { ...ready(), metadata: { ...ready().metadata, ...GONE } },
        targetPod: up,
      },
    ],
    [
      'the guest is to go while it is copied',
      'Running request-abort',
      {
        migration: migrationIn('Running'),
        guest: { ...started(), metadata: { ...started().metadata, ...GONE } },
        targetPod: up,
      },
    ],
    ['it is deleted before anybody looked', 'Failed Canceled', { migration: migrationIn('', GONE) }],
    ['it is deleted while it waits', 'Failed Canceled', { migration: migrationIn('Pending', GONE) }],
    [
      'it is deleted while its pod waits',
      'Failed Canceled',
      { migration: migrationIn('Scheduling', GONE), targetPod: up },
    ],
    [
      'it is deleted while it waits for a slot',
      'Failed Canceled',
      { migration: migrationIn('Scheduled', GONE), targetPod: up },
    ],
    [
      'it is deleted while the target is prepared',
      'Failed Canceled withdraw',
      { migration: migrationIn('PreparingTarget', GONE), guest: handedOff(), targetPod: up },
    ],
    [
      'it is deleted when the target is ready',
      'Failed Canceled withdraw',
      { migration: migrationIn('TargetReady', GONE), guest: ready(), targetPod: up },
    ],
    [
      'it is deleted though nobody wrote down the hand-off',
      'Failed Canceled withdraw',
      { migration: migrationIn('Scheduled', GONE), guest: handedOff(), targetPod: up },
    ],
    [
      'it is deleted while it is copied',
      'Running request-abort',
      { migration: migrationIn('Running', GONE), guest: started(), targetPod: up },
    ],
    [
      'it is deleted after the source has reserved, and before it says so',
      'Running request-abort',
      {
        migration: migrationIn('TargetReady', GONE),
        guest: handedOff({}, { rightToRun: { epoch: 3, holder: { ...TARGET, node: 'node-a' }, successor: TARGET } }),
        targetPod: up,
      },
    ],
    [
      'it is deleted, and the source knows',
      'Running',
      {
        migration: migrationIn('Running', GONE),
        guest: handedOff({ startTimestamp: at(9), abortRequested: true }),
        targetPod: up,
      },
    ],
    [
      'it is deleted while the guest runs at the target already',
      'Running',
      { migration: migrationIn('Running', GONE), guest: started('PostCopy'), targetPod: up },
    ],
    [
      'the target pod has ended',
      'Failed TargetPodDown',
      { migration: migrationIn('Scheduling'), targetPod: podWith({ isDown: true }) },
    ],
    [
      'the target pod has ended during preparation',
      'Failed TargetPodDown withdraw',
      { migration: migrationIn('PreparingTarget'), guest: handedOff(), targetPod: podWith({ isDown: true }) },
    ],
    [
      'the target pod has ended during the copy',
      'Running request-abort',
      { migration: migrationIn('Running'), guest: started(), targetPod: podWith({ isDown: true }) },
    ],
    [
      'the target pod has ended though the guest runs there',
      'Running',
      { migration: migrationIn('Running'), guest: started('PostCopy'), targetPod: podWith({ isDown: true }) },
    ],
    ['the target pod was removed', 'Failed TargetPodRemoved', { migration: migrationIn('Scheduling') }],
    ['the target pod was removed', 'Failed TargetPodRemoved', { migration: migrationIn('Scheduled') }],
    [
      'the target pod was removed during preparation',
      'Failed TargetPodRemoved withdraw',
      { migration: migrationIn('TargetReady'), guest: ready() },
    ],
    ['the state was cleared', 'Failed StateCleared', { migration: migrationIn('Running'), targetPod: up }],
    [
      'another migration took over',
      'Failed TakenOver',
      { migration: migrationIn('Running'), guest: handedOff({ migrationUid: 'move-2' }), targetPod: up },
    ],
    [
      'the source gave up',
      'Failed ReportedByNode',
      { migration: migrationIn('Running'), guest: handedOff({ failed: true, completed: true }), targetPod: up },
    ],
    [
      'it is completed, and yet the guest is where it was',
      'Failed ReportedByNode',
      { migration: migrationIn('Running'), guest: handedOff({ completed: true }), targetPod: up },
    ],
    [
      'its target says that it is completed, and has yet to write so into the record',
      'Running',
      {
        migration: migrationIn('Running'),
        guest: handedOff(
          { completed: true },
          { rightToRun: { epoch: 3, holder: { ...TARGET, node: 'node-a' }, successor: TARGET } },
        ),
        targetPod: up,
      },
    ],
    ['another one goes before', 'Failed AnotherMigration', { hasBetterRival: true }],
    [
      'another one was handed off',
      'Failed AnotherMigration',
      { guest: handedOff({ migrationUid: 'move-2' }), isOtherOwnerAlive: true },
    ],
    [
      'the guest cannot move',
      'Failed NotMigratable',
      { guest: guestWith({ conditions: [{ type: 'LiveMigratable', status: 'False', reason: 'X' }] }) },
    ],
    [
      'the scheduler chose the source',
      'Failed TargetIsSource',
      { migration: migrationIn('Scheduling'), targetPod: podWith({ nodeName: 'node-a' }) },
    ],
  ])('%s: %s', (_what, expected, facts) => {
    expect(said(decide(factsOf(facts)))).toBe(expected);
  });
});

describe('what ends a migration at once, whatever its phase', () => {
  /** What has become of the guest by each phase of a migration that is not over. */
  const PHASES: readonly { readonly phase: MigrationPhase; readonly guest: () => VirtualMachineInstance }[] = [
    { phase: 'Pending', guest: guestWith },
    { phase: 'Scheduling', guest: guestWith },
    { phase: 'Scheduled', guest: guestWith },
    { phase: 'PreparingTarget', guest: handedOff },
    { phase: 'TargetReady', guest: ready },
    { phase: 'Running', guest: started },
  ];
  const AT = PHASES.map(({ phase, guest }) => ({ phase, guest: guest(), migration: migrationIn(phase) }));
  const having = (guest: VirtualMachineInstance, status: object): VirtualMachineInstance => {
    return { ...guest, status: { ...guest.status, ...status } };
  };

  it.each(AT)('the guest is over: $phase', ({ migration, guest }) => {
    for (const phase of ['Succeeded', 'Failed'] as const) {
      const facts = factsOf({ migration, guest: having(guest, { phase }), targetPod: podWith() });
      expect(said(decide(facts))).toBe('Failed GuestEnded');
    }
  });

  it.each(AT)('the target pod is over: $phase', ({ phase, migration, guest }) => {
    const expected = new Map<MigrationPhase, string>([
      ['PreparingTarget', 'Failed TargetPodDown withdraw'],
      ['TargetReady', 'Failed TargetPodDown withdraw'],
      // The source may have begun: it is asked to stop, and says how it ended.
      ['Running', 'Running request-abort'],
    ]);
    const facts = factsOf({ migration, guest, targetPod: podWith({ isUp: false, isDown: true }) });
    expect(said(decide(facts))).toBe(expected.get(phase) ?? 'Failed TargetPodDown');
  });

  it.each(AT)('the state says so: $phase', ({ migration, guest }) => {
    const { migrationState: told } = guest.status ?? {};
    const migrationState = { ...(told ?? handedOff().status?.migrationState), failed: true, failureReason: 'in vain' };
    const decision = decide(factsOf({ migration, guest: having(guest, { migrationState }), targetPod: podWith() }));
    expect(said(decision)).toBe('Failed ReportedByNode');
    expect(decision.failure?.message).toContain('in vain');
  });
});

describe('the way of a migration', () => {
  it.each<Row>([
    ['nobody has looked at it', 'Pending', { migration: migrationIn('') }],
    ['it has no slot', 'Pending', {}],
    ['it has slots, and its phase is not written down', 'Pending', { migration: migrationIn(''), slots: 'reserved' }],
    [
      'it has a slot, and its guest does not run yet',
      'Pending',
      { guest: guestWith({ phase: 'Scheduled' }), slots: 'reserved' },
    ],
    ['nobody may execute the guest', 'Pending', { guest: guestWith({ rightToRun: { epoch: 4 } }), slots: 'reserved' }],
    [
      'it has slots for good, and its guest is elsewhere by now',
      'Failed SlotsElsewhere',
      { migration: migrationIn('Scheduled'), targetPod: podWith(), slots: 'elsewhere' },
    ],
    ['it has a slot', 'Scheduling create-target', { slots: 'reserved' }],
    ['it has all slots', 'Scheduling create-target', { slots: 'committed' }],
    [
      'it has a slot, and the source of an older migration, which is gone, is still at it',
      'Pending',
      { guest: handedOff({ migrationUid: 'move-0', startTimestamp: at(MINUTE) }), slots: 'reserved' },
    ],
    ['its pod is there, and nobody wrote it down', 'Scheduling', { targetPod: podWith({ isUp: false, nodeName: '' }) }],
    ['its pod waits', 'Scheduling', { migration: migrationIn('Scheduling'), targetPod: podWith({ isUp: false }) }],
    ['its pod runs, and its node is full', 'Scheduled', { migration: migrationIn('Scheduling'), targetPod: podWith() }],
    [
      'its pod runs, and its slots are not for good',
      'Scheduled',
      { migration: migrationIn('Scheduling'), targetPod: podWith(), slots: 'reserved' },
    ],
    [
      'its pod runs',
      'PreparingTarget hand-off',
      { migration: migrationIn('Scheduling'), targetPod: podWith(), slots: 'committed' },
    ],
    [
      'an older migration is over',
      'PreparingTarget hand-off',
      {
        migration: migrationIn('Scheduled'),
        guest: handedOff({ migrationUid: 'move-0', completed: true, startTimestamp: at(MINUTE) }),
        targetPod: podWith(),
        slots: 'committed',
      },
    ],
    [
      'an older migration never began, and is gone',
      'PreparingTarget hand-off',
      {
        migration: migrationIn('Scheduled'),
        guest: handedOff({ migrationUid: 'move-0' }),
        targetPod: podWith(),
        slots: 'committed',
      },
    ],
    [
      'an older migration is gone, and its source still at it',
      'Scheduled',
      {
        migration: migrationIn('Scheduled'),
        guest: handedOff({ migrationUid: 'move-0', startTimestamp: at(MINUTE) }),
        targetPod: podWith(),
        slots: 'committed',
      },
    ],
    [
      'it was handed off',
      'PreparingTarget',
      { migration: migrationIn('Scheduled'), guest: handedOff(), targetPod: podWith() },
    ],
    [
      'the target has not been told',
      'PreparingTarget announce',
      {
        migration: migrationIn('PreparingTarget'),
        guest: { ...handedOff(), metadata: { name: 'web', uid: 'guest-1' } },
        targetPod: podWith(),
      },
    ],
    [
      'the target listens',
      'TargetReady',
      { migration: migrationIn('PreparingTarget'), guest: ready(), targetPod: podWith() },
    ],
    [
      'the source has begun',
      'Running',
      { migration: migrationIn('TargetReady'), guest: started(), targetPod: podWith() },
    ],
    [
      'the guest has moved',
      'Succeeded',
      { migration: migrationIn('Running'), guest: moved({ completed: true }), targetPod: podWith() },
    ],
    [
      'the record says that it moved',
      'Succeeded',
      { migration: migrationIn('Running'), guest: moved(), targetPod: podWith() },
    ],
    [
      'the guest has moved, and its memory follows',
      'Running',
      { migration: migrationIn('Running'), guest: moved({ mode: 'PostCopy' }), targetPod: podWith() },
    ],
    [
      'the guest has moved, and all of its memory',
      'Succeeded',
      { migration: migrationIn('Running'), guest: moved({ mode: 'PostCopy', completed: true }), targetPod: podWith() },
    ],
    [
      'the guest has moved, and is lost before all of its memory',
      'Failed GuestEnded',
      {
        migration: migrationIn('Running'),
        guest: { ...moved(), status: { ...moved({ mode: 'PostCopy' }).status, phase: 'Failed' } },
      },
    ],
    [
      'it moved, though somebody says it failed',
      'Succeeded',
      { migration: migrationIn('Running'), guest: moved({ failed: true, completed: true }) },
    ],
    ['it moved, though it was deleted', 'Succeeded', { migration: migrationIn('Running', GONE), guest: moved() }],
    [
      'it moved, and ended there',
      'Succeeded',
      {
        migration: migrationIn('Running'),
        guest: {
          ...moved({ completed: true }),
          status: { ...moved({ completed: true }).status, phase: 'Succeeded', rightToRun: { epoch: 5 } },
        },
      },
    ],
  ])('%s: %s', (_what, expected, facts) => {
    expect(said(decide(factsOf(facts)))).toBe(expected);
  });
});

describe('a migration that asks for nodes none of which takes the guest, which has to leave', () => {
  const nowhere = podWith({ isUp: false, nodeName: '', isUnschedulable: true, createdMs: NOW_MS });
  const asking = (addedNodeSelector: Readonly<Record<string, string>>, metadata: object = {}) => {
    const migration = migrationIn('Scheduling', metadata);
    return { ...migration, spec: { ...migration.spec, addedNodeSelector } };
  };
  const choosy = asking({ zone: 'b' });
  const guest = guestWith({ evacuationNodeName: 'node-a', evacuationCauses: [{ cause: 'DrainTaint' }] });
  const facts = { migration: choosy, guest, targetPod: nowhere, isEvacuated: true };

  it('makes way for the one that empties the node, and says for what', () => {
    const decision = decide(factsOf(facts));
    expect(said(decision)).toBe('Failed Superseded');
    expect(decision.failure?.message).toMatch(/: DrainTaint$/);
  });

  it.each<Row>([
    ['it asks for nothing of its own', 'Scheduling', { migration: asking({}) }],
    ['it asks as those do that never said so', 'Scheduling', { migration: migrationIn('Scheduling') }],
    ['the guest need not leave, or is not ours to move', 'Scheduling', { isEvacuated: false }],
    ['the scheduler has not looked yet', 'Scheduling', { targetPod: { ...nowhere, isUnschedulable: false } }],
    ['it has found a node', 'Scheduling', { targetPod: { ...nowhere, nodeName: 'node-b' } }],
    [
      'it waits for its turn',
      'Pending',
      { migration: { ...choosy, status: { phase: 'Pending' } }, targetPod: undefined },
    ],
    ['it was deleted', 'Failed Canceled', { migration: asking({ zone: 'b' }, GONE) }],
  ])('but not where %s: %s', (_what, expected, more) => {
    expect(said(decide(factsOf({ ...facts, ...more })))).toBe(expected);
  });
});

describe('deadlines', () => {
  const unschedulable = podWith({ isUp: false, nodeName: '', isUnschedulable: true, createdMs: NOW_MS });
  const pending = podWith({ isUp: false, createdMs: NOW_MS });
  const seconds = (name: string, value: string) =>
    migrationIn('Scheduling', { annotations: { [`kubevirt.io/${name}`]: value } });
  const rows: readonly (readonly [string, string, number, Partial<MigrationFacts>])[] = [
    [
      'a pod that fits nowhere',
      'TargetPodUnschedulable',
      5 * MINUTE,
      { migration: migrationIn('Scheduling'), targetPod: unschedulable },
    ],
    [
      'a pod that does not start',
      'TargetPodPending',
      15 * MINUTE,
      { migration: migrationIn('Scheduling'), targetPod: pending },
    ],
    [
      'a pod that fits nowhere, by annotation',
      'TargetPodUnschedulable',
      7000,
      { migration: seconds('migrationUnschedulablePodTimeoutSeconds', '7'), targetPod: unschedulable },
    ],
    [
      'a pod that does not start, by annotation',
      'TargetPodPending',
      9000,
      { migration: seconds('migrationPendingPodTimeoutSeconds', '9'), targetPod: pending },
    ],
    [
      'an annotation that is no number',
      'TargetPodPending',
      15 * MINUTE,
      { migration: seconds('migrationPendingPodTimeoutSeconds', 'soon'), targetPod: pending },
    ],
    [
      'a node that stays full',
      'SlotTimeout',
      60 * MINUTE,
      { migration: migrationIn('Scheduled', {}, 0), targetPod: podWith() },
    ],
    [
      'a source that does not let go of an older migration, which is gone',
      'GuestBusy',
      10 * MINUTE,
      {
        migration: migrationIn('Scheduled', {}, 0),
        guest: handedOff({ migrationUid: 'move-0', startTimestamp: at(0) }),
        targetPod: podWith(),
        slots: 'committed',
      },
    ],
    [
      'a target that does not get ready',
      'PreparationTimeout',
      5 * MINUTE,
      { migration: migrationIn('PreparingTarget', {}, 0), guest: handedOff(), targetPod: podWith() },
    ],
    [
      'a source that does not begin',
      'StartTimeout',
      2 * MINUTE,
      { migration: migrationIn('TargetReady', {}, 0), guest: ready(), targetPod: podWith() },
    ],
  ];
  it.each(rows)('%s: %s', (_what, reason, afterMs, facts) => {
    const before = decide(factsOf({ ...facts, nowMs: NOW_MS + afterMs - 1 }));
    expect(before).toMatchObject({ wakeAtMs: NOW_MS + afterMs });
    expect(before.failure).toBeUndefined();
    expect(decide(factsOf({ ...facts, nowMs: NOW_MS + afterMs })).failure?.reason).toBe(reason);
  });

  it('asks a source to stop that tells nothing of its copy, and does no more', () => {
    const running = { migration: migrationIn('Running'), guest: started(), targetPod: podWith(), newsMs: NOW_MS };
    const before = decide(factsOf({ ...running, nowMs: NOW_MS + 10 * MINUTE - 1 }));
    expect(before).toEqual({ phase: 'Running', wakeAtMs: NOW_MS + 10 * MINUTE });
    const after = decide(factsOf({ ...running, nowMs: NOW_MS + 10 * MINUTE }));
    expect(after).toEqual({ phase: 'Running', step: { kind: 'request-abort', reason: 'NoNews' } });
  });

  it('tell what the pod says of its end', () => {
    const down = podWith({ isDown: true, cause: 'no space left' });
    expect(decide(factsOf({ migration: migrationIn('Scheduling'), targetPod: down })).failure?.message).toBe(
      'Migration failed because target pod shutdown during migration: no space left',
    );
  });
});
