import { describe, expect, it } from 'vitest';
import type { MigrationState } from '../../api/kubevirt/migration-state.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type {
  MigrationPhase,
  VirtualMachineInstanceMigration,
} from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { RECEIVER_ANNOTATION, TARGET_NODE_LABEL } from '../../api/kubevirt/well-known.ts';
import { decide } from './decide.ts';
import type { MigrationDecision } from './decision.ts';
import type { MigrationFacts, PairFacts } from './facts.ts';
import { at, factsOf, migrationIn, podWith } from './moves.fixture.ts';

/** Every ending of both halves, and the way there. */

const MINUTE = 60_000;
const GONE = { deletionTimestamp: at(1000) };
const HERE = { node: 'node-a', nodeUID: 'uid-a', podUID: 'pod-a' };
const THERE = { node: 'node-a', nodeUID: 'uid-z', podUID: 'pod-z' };
const FAILED = { verdict: { phase: 'Failed' as const, message: 'why' } };
const SUCCEEDED = { verdict: { phase: 'Succeeded' as const } };
const CUT = (sinceMs: number) => ({
  conditions: [
    {
      type: 'DecentralizedLiveMigrationFailure',
      status: 'True' as const,
      message: 'cut',
      lastTransitionTime: at(sinceMs),
    },
  ],
});

function said({ phase, failure, step }: MigrationDecision): string {
  return [phase, failure?.reason, step?.kind].filter((word) => word !== undefined).join(' ');
}

const pairWith = (more: Partial<PairFacts> = {}): PairFacts => ({
  isKeyTaken: false,
  isSameGuest: false,
  partner: undefined,
  isDescribed: true,
  objection: undefined,
  isAdopted: true,
  isPeerReady: true,
  isGivenAway: false,
  isRecordOld: false,
  ...more,
});

interface Half {
  readonly phase?: MigrationPhase;
  readonly sinceMs?: number;
  readonly metadata?: object;
  readonly state?: MigrationState | undefined;
  readonly status?: VirtualMachineInstance['status'];
  readonly guest?: object | null;
  readonly pair?: Partial<PairFacts>;
  readonly facts?: Partial<MigrationFacts>;
}

type Row = readonly [what: string, expected: string, half: Half];

function halfOf(spec: object, { phase = '', sinceMs = 1000, metadata = {} }: Half): VirtualMachineInstanceMigration {
  const made = migrationIn(phase, metadata, sinceMs);
  return { ...made, spec: { ...made.spec, ...spec } };
}

function decided(spec: object, half: Half, guest: VirtualMachineInstance): string {
  const migration = halfOf(spec, half);
  const facts = factsOf({ migration, ...half.facts, pair: pairWith(half.pair) });
  return said(decide({ ...facts, guest: half.guest === null ? undefined : guest }));
}

function guestOf(
  uid: string,
  half: Half,
  status: VirtualMachineInstance['status'],
  metadata: object,
): VirtualMachineInstance {
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { name: 'web', namespace: 'shop', uid, ...metadata, ...half.guest },
    spec: { domain: { devices: {} } },
    status: { ...status, ...(half.state ? { migrationState: half.state } : {}), ...half.status },
  };
}

describe('the half that a guest leaves', () => {
  const OPEN: MigrationState = {
    migrationUid: 'move-1',
    sourceState: { migrationUID: 'move-1', virtualMachineInstanceUID: 'guest-1', runner: HERE, epoch: 3 },
  };
  const FOUND = { ...OPEN, targetState: { migrationUID: 'other', virtualMachineInstanceUID: 'guest-2' } };
  const BOUND = { ...FOUND, targetNode: 'node-a', targetPod: 'target' };
  const TOLD = { ...BOUND, sourceNode: 'node-a', sourcePod: 'source' };
  const READY = { ...TOLD, targetNodeAddress: '10.0.0.2', targetRunner: THERE };
  const BEGUN = { ...READY, startTimestamp: at(5000) };
  const reserved = { rightToRun: { epoch: 3, holder: HERE, successor: THERE, across: true } };
  const away = { phase: 'Succeeded' as const, rightToRun: { epoch: 4, holder: THERE, across: true } };

  const rows: readonly Row[] = [
    ['it has told nothing of its guest', 'Synchronizing describe', { pair: { isDescribed: false } }],
    ['its guest does not run yet', 'Synchronizing', { status: { phase: 'Scheduled' }, pair: { isDescribed: false } }],
    ['it waits for the other one', 'Synchronizing', { phase: 'Synchronizing', state: OPEN }],
    [
      'it waits for the other one for too long',
      'Failed SyncTimeout withdraw',
      { phase: 'Synchronizing', sinceMs: 10 * MINUTE, state: OPEN },
    ],
    [
      'it waits for the other one for longer than the configuration says',
      'Failed SyncTimeout withdraw',
      { phase: 'Synchronizing', sinceMs: MINUTE, state: OPEN, facts: { syncTimeoutMs: MINUTE } },
    ],
    [
      'it waits for the other one, and its guest has to leave its node',
      'Synchronizing',
      { phase: 'Synchronizing', sinceMs: MINUTE - 1000, state: OPEN, facts: { isEvacuated: true } },
    ],
    [
      'it waits for the other one for long, and its guest has to leave its node',
      'Failed Superseded withdraw',
      { phase: 'Synchronizing', sinceMs: MINUTE, state: OPEN, facts: { isEvacuated: true } },
    ],
    ['another one has its key', 'Failed KeyTaken', { pair: { isKeyTaken: true } }],
    ['another one has its guest', 'Failed AnotherMigration', { facts: { hasBetterRival: true } }],
    [
      'its guest cannot move',
      'Failed NotMigratable',
      {
        status: { phase: 'Running', conditions: [{ type: 'LiveMigratable', status: 'False', reason: 'X' }] },
      },
    ],
    ['its guest is not there', 'Failed GuestGone', { guest: null }],
    [
      'its guest is gone, and went to the other side',
      'Succeeded',
      { guest: null, phase: 'Running', pair: { isGivenAway: true } },
    ],
    ['its guest has ended', 'Failed GuestEnded withdraw', { state: OPEN, status: { phase: 'Failed' } }],
    ['its guest is to go', 'Failed GuestEnded withdraw', { state: FOUND, guest: GONE }],
    ['it is cancelled', 'Failed Canceled withdraw', { phase: 'Synchronizing', state: OPEN, metadata: GONE }],
    ['it is cancelled before anybody looked', 'Failed Canceled', { metadata: GONE }],
    ['the other one was heard of', 'Pending', { phase: 'Synchronizing', state: FOUND }],
    ['it waits for a slot', 'Pending', { phase: 'Pending', sinceMs: 600 * MINUTE, state: FOUND }],
    ['it has a slot', 'Scheduling', { phase: 'Pending', state: FOUND, facts: { slots: 'reserved' } }],
    [
      'it has to say so',
      'Pending describe',
      {
        phase: 'Pending',
        state: FOUND,
        facts: { slots: 'reserved' },
        pair: { isDescribed: false },
      },
    ],
    ['it lost its slot again', 'Scheduling', { phase: 'Scheduling', state: FOUND }],
    [
      'the other one has no pod for too long',
      'Failed TargetTimeout withdraw',
      { phase: 'Scheduling', sinceMs: 91 * MINUTE, state: FOUND, facts: { slots: 'reserved' } },
    ],
    ['the other one has a pod', 'Scheduled', { phase: 'Scheduling', state: BOUND, facts: { slots: 'reserved' } }],
    [
      'its slot is not for good for too long',
      'Failed SlotTimeout withdraw',
      { phase: 'Scheduled', sinceMs: 61 * MINUTE, state: BOUND, facts: { slots: 'reserved' } },
    ],
    [
      'its guest is elsewhere by now',
      'Failed SlotsElsewhere withdraw',
      {
        phase: 'Scheduled',
        state: BOUND,
        facts: { slots: 'elsewhere' },
      },
    ],
    ['the link is cut', 'Pending', { phase: 'Pending', state: FOUND, status: CUT(9 * MINUTE) }],
    [
      'the link is cut for too long',
      'Failed PeerLost withdraw',
      { phase: 'Pending', state: FOUND, status: CUT(10 * MINUTE) },
    ],
    [
      'the link is cut for too long, later',
      'Failed PeerLost withdraw',
      {
        phase: 'Scheduling',
        state: FOUND,
        facts: { slots: 'reserved' },
        status: CUT(10 * MINUTE),
      },
    ],
    [
      'the other one failed',
      'Failed PeerFailed withdraw',
      {
        phase: 'Pending',
        state: { ...FOUND, targetState: { ...FOUND.targetState, ...FAILED } },
      },
    ],
    [
      'the other one was cancelled',
      'Failed Canceled withdraw',
      { phase: 'Pending', state: { ...FOUND, abortRequested: true } },
    ],
    ['all is there', 'PreparingTarget hand-off', { phase: 'Scheduled', state: BOUND, facts: { slots: 'committed' } }],
    ['its agent knows', 'PreparingTarget', { phase: 'PreparingTarget', state: TOLD, status: CUT(60 * MINUTE) }],
    [
      'the target is never prepared',
      'Failed PreparationTimeout withdraw',
      {
        phase: 'PreparingTarget',
        sinceMs: 5 * MINUTE,
        state: TOLD,
      },
    ],
    ['the target waits', 'TargetReady', { phase: 'PreparingTarget', state: READY }],
    [
      'its agent does not begin',
      'Failed StartTimeout withdraw',
      { phase: 'TargetReady', sinceMs: 2 * MINUTE, state: READY },
    ],
    [
      'it is cancelled before its agent begins',
      'Failed Canceled withdraw',
      { phase: 'TargetReady', state: READY, metadata: GONE },
    ],
    [
      'the other one fails before its agent begins',
      'Failed PeerFailed withdraw',
      {
        phase: 'TargetReady',
        state: { ...READY, targetState: FAILED },
      },
    ],
    ['its agent has begun', 'Running', { phase: 'TargetReady', state: BEGUN, status: reserved }],
    [
      'it is cancelled during the copy',
      'Running request-abort',
      { phase: 'Running', state: BEGUN, status: reserved, metadata: GONE },
    ],
    [
      'it was asked to stop',
      'Running',
      {
        phase: 'Running',
        state: { ...BEGUN, abortRequested: true },
        status: reserved,
        metadata: GONE,
      },
    ],
    [
      'its guest is to go during the copy',
      'Running request-abort',
      { phase: 'Running', state: BEGUN, status: reserved, guest: GONE },
    ],
    [
      'the other one fails during the copy',
      'Running request-abort',
      {
        phase: 'Running',
        state: { ...BEGUN, targetState: FAILED },
        status: reserved,
      },
    ],
    [
      'its agent says nothing',
      'Running request-abort',
      {
        phase: 'Running',
        state: BEGUN,
        status: reserved,
        facts: { newsMs: 0 },
      },
    ],
    [
      'its agent gave up',
      'Failed ReportedByNode',
      { phase: 'Running', state: { ...BEGUN, failed: true, completed: true } },
    ],
    [
      'its guest ended during the copy, and nobody has it',
      'Failed GuestEnded withdraw',
      {
        phase: 'Running',
        state: BEGUN,
        status: { phase: 'Failed', rightToRun: { epoch: 4 } },
      },
    ],
    [
      'its guest ended during the copy, and somebody may have it',
      'Running',
      {
        phase: 'Running',
        state: { ...BEGUN, abortRequested: true },
        status: { ...reserved, phase: 'Failed' },
      },
    ],
    [
      'the other one says that the guest is there, and the record does not yet',
      'Running',
      {
        phase: 'Running',
        state: { ...BEGUN, completed: true, abortRequested: true },
        status: reserved,
      },
    ],
    [
      'the other one says that the guest is there, to which it was never promised',
      'Failed PeerContradicted withdraw',
      { phase: 'Pending', state: { ...FOUND, targetState: { ...FOUND.targetState, ...SUCCEEDED } } },
    ],
    [
      'the other one says that the guest is there, and its agent has kept it for that',
      'Failed PeerContradicted withdraw',
      { phase: 'Running', state: { ...BEGUN, completed: true, targetState: SUCCEEDED } },
    ],
    [
      'the other one says that the guest is there, and the record is from before that',
      'TargetReady',
      { phase: 'TargetReady', state: { ...READY, targetState: SUCCEEDED }, pair: { isRecordOld: true } },
    ],
    ['somebody cleared the state while it is copied', 'Running', { phase: 'Running', status: reserved }],
    ['somebody cleared the state, and its agent kept the guest', 'Failed StateCleared', { phase: 'Running' }],
    ['the guest has gone', 'Succeeded', { phase: 'Running', state: BEGUN, status: away }],
    [
      'the guest has gone, though it was cancelled',
      'Succeeded',
      { phase: 'Running', state: BEGUN, status: away, metadata: GONE },
    ],
    [
      'the guest has gone, and its memory follows',
      'Running',
      { phase: 'Running', state: { ...BEGUN, mode: 'PostCopy' }, status: away },
    ],
    [
      'the guest has gone, and its memory was lost',
      'Failed PeerFailed',
      {
        phase: 'Running',
        state: { ...BEGUN, mode: 'PostCopy', targetState: FAILED },
        status: away,
      },
    ],
  ];
  it.each(rows)('%s: %s', (_what, expected, half) => {
    const status = { phase: 'Running' as const, nodeName: 'node-a', rightToRun: { epoch: 3, holder: HERE } };
    const sendTo = { key: 'k', connectURL: 'there:1' };
    expect(decided({ sendTo }, half, guestOf('guest-1', half, status, {}))).toBe(expected);
  });
});

describe('the half that a guest comes to', () => {
  const OPEN: MigrationState = { targetState: { migrationUID: 'move-1', virtualMachineInstanceUID: 'guest-2' } };
  const FOUND = {
    ...OPEN,
    migrationUid: 'other',
    sourceState: { migrationUID: 'other', virtualMachineInstanceUID: 'guest-1', runner: HERE, epoch: 3 },
  };
  const KNOWN = { ...FOUND, sourceState: { ...FOUND.sourceState, volumes: [] } };
  const TOLD = { ...KNOWN, targetNode: 'node-a', targetPod: 'target' };
  const READY = { ...TOLD, targetNodeAddress: '10.0.0.2', targetRunner: THERE };
  const BEGUN = { ...READY, startTimestamp: at(5000) };
  const reserved = { slots: 'reserved' as const };
  const up = { targetPod: podWith(), slots: 'committed' as const };
  const taken = { phase: 'Running' as const, rightToRun: { epoch: 4, holder: THERE } };

  const rows: readonly Row[] = [
    ['nobody waits yet', 'WaitingForSync', { guest: null }],
    [
      'nobody waits for too long',
      'Failed ReceiverMissing',
      { guest: null, phase: 'WaitingForSync', sinceMs: 10 * MINUTE },
    ],
    ['nobody waits, and it is cancelled', 'Failed Canceled', { guest: null, metadata: GONE }],
    ['nobody waits any more', 'Failed GuestGone', { guest: null, phase: 'Scheduling' }],
    ['who waits is not ready', 'WaitingForSync', { status: { phase: '' } }],
    ['who waits is told', 'WaitingForSync describe', { pair: { isDescribed: false } }],
    [
      'who would wait runs',
      'Failed ReceiverMissing',
      {
        phase: 'WaitingForSync',
        sinceMs: 11 * MINUTE,
        status: { phase: 'Running', rightToRun: { epoch: 1, holder: HERE } },
      },
    ],
    ['it waits for the other one', 'WaitingForSync', { phase: 'WaitingForSync', state: OPEN }],
    [
      'it waits for too long',
      'Failed SyncTimeout withdraw',
      { phase: 'WaitingForSync', sinceMs: 10 * MINUTE, state: OPEN },
    ],
    ['another one has its key', 'Failed KeyTaken', { pair: { isKeyTaken: true } }],
    ['another one has its guest', 'Failed AnotherMigration', { facts: { hasBetterRival: true } }],
    ['it is cancelled', 'Failed Canceled withdraw', { phase: 'WaitingForSync', state: OPEN, metadata: GONE }],
    ['who waits is to go', 'Failed GuestEnded withdraw', { phase: 'Pending', state: FOUND, guest: GONE }],
    ['the other one was heard of', 'Pending', { phase: 'WaitingForSync', state: FOUND, facts: reserved }],
    ['the disks are not known yet', 'Pending', { phase: 'Pending', state: FOUND, facts: reserved }],
    ['it has no slot', 'Pending', { phase: 'Pending', sinceMs: 600 * MINUTE, state: KNOWN }],
    [
      'the other one has no slot',
      'Pending',
      { phase: 'Pending', state: KNOWN, facts: reserved, pair: { isPeerReady: false } },
    ],
    [
      'who waits is unfit',
      'Failed ReceiverUnfit withdraw',
      { phase: 'Pending', state: FOUND, pair: { objection: 'small' } },
    ],
    [
      'the link is cut for too long',
      'Failed PeerLost withdraw',
      { phase: 'Pending', state: FOUND, status: CUT(10 * MINUTE) },
    ],
    [
      'the other one failed',
      'Failed PeerFailed withdraw',
      {
        phase: 'Pending',
        state: { ...FOUND, sourceState: { ...FOUND.sourceState, ...FAILED } },
      },
    ],
    [
      'who waits has to become the guest',
      'Pending adopt',
      { phase: 'Pending', state: KNOWN, facts: reserved, pair: { isAdopted: false } },
    ],
    ['all is there for a pod', 'Scheduling create-target', { phase: 'Pending', state: KNOWN, facts: reserved }],
    [
      'its pod waits for a node',
      'Scheduling',
      {
        phase: 'Scheduling',
        state: KNOWN,
        facts: { ...reserved, targetPod: podWith({ isUp: false, nodeName: '' }) },
      },
    ],
    [
      'its pod never starts',
      'Failed TargetPodPending withdraw',
      {
        phase: 'Scheduling',
        state: KNOWN,
        facts: { targetPod: podWith({ isUp: false, createdMs: 0 }) },
      },
    ],
    [
      'its pod fits nowhere',
      'Failed TargetPodUnschedulable withdraw',
      {
        phase: 'Scheduling',
        state: KNOWN,
        facts: { targetPod: podWith({ isUp: false, isUnschedulable: true, createdMs: 0 }) },
      },
    ],
    [
      'its pod ended',
      'Failed TargetPodDown withdraw',
      { phase: 'Scheduling', state: KNOWN, facts: { targetPod: podWith({ isDown: true }) } },
    ],
    ['its pod is gone', 'Failed TargetPodRemoved withdraw', { phase: 'Scheduling', state: KNOWN, facts: reserved }],
    [
      'its pod runs, and its slot is not for good',
      'Scheduled',
      { phase: 'Scheduling', state: KNOWN, facts: { ...reserved, targetPod: podWith() } },
    ],
    [
      'its slot is not for good for too long',
      'Failed SlotTimeout withdraw',
      {
        phase: 'Scheduled',
        sinceMs: 61 * MINUTE,
        state: KNOWN,
        facts: { ...reserved, targetPod: podWith() },
      },
    ],
    [
      'its pod is elsewhere by now',
      'Failed SlotsElsewhere withdraw',
      { phase: 'Scheduled', state: KNOWN, facts: { ...up, slots: 'elsewhere' } },
    ],
    ['all is there', 'PreparingTarget hand-off', { phase: 'Scheduled', state: KNOWN, facts: up }],
    ['its agent knows', 'PreparingTarget', { phase: 'PreparingTarget', state: TOLD, facts: up }],
    [
      'its agent may not have heard',
      'PreparingTarget announce',
      { phase: 'PreparingTarget', state: TOLD, facts: up, guest: { labels: {} } },
    ],
    [
      'its agent does not prepare it',
      'PreparingTarget request-abort',
      { phase: 'PreparingTarget', sinceMs: 5 * MINUTE, state: TOLD, facts: up },
    ],
    ['its agent waits', 'TargetReady', { phase: 'PreparingTarget', state: READY, facts: up }],
    [
      'the source does not begin',
      'TargetReady request-abort',
      { phase: 'TargetReady', sinceMs: 10 * MINUTE, state: READY, facts: up },
    ],
    [
      'it is cancelled once its agent knows',
      'PreparingTarget request-abort',
      { phase: 'PreparingTarget', state: TOLD, facts: up, metadata: GONE },
    ],
    [
      'its pod ends once its agent knows',
      'PreparingTarget request-abort',
      {
        phase: 'PreparingTarget',
        state: TOLD,
        facts: { ...up, targetPod: podWith({ isDown: true }) },
      },
    ],
    [
      'who waits is to go once its agent knows',
      'PreparingTarget request-abort',
      {
        phase: 'PreparingTarget',
        state: TOLD,
        facts: up,
        guest: { ...GONE },
      },
    ],
    [
      'its agent was asked to stop',
      'TargetReady',
      { phase: 'TargetReady', state: { ...READY, abortRequested: true }, facts: up, metadata: GONE },
    ],
    ['the source has begun', 'Running', { phase: 'TargetReady', state: BEGUN, facts: up }],
    [
      'it is cancelled during the copy',
      'Running request-abort',
      { phase: 'Running', state: BEGUN, facts: up, metadata: GONE },
    ],
    [
      'nothing is heard of the copy',
      'Running request-abort',
      { phase: 'Running', state: BEGUN, facts: { ...up, newsMs: 0 } },
    ],
    [
      'the source kept the guest',
      'Failed PeerFailed withdraw',
      {
        phase: 'Running',
        state: { ...BEGUN, sourceState: { ...KNOWN.sourceState, ...FAILED } },
        facts: up,
      },
    ],
    [
      'its agent refused',
      'Failed ReportedByNode',
      { phase: 'Running', state: { ...BEGUN, failed: true, completed: true }, facts: up },
    ],
    ['somebody cleared the state', 'Failed StateCleared', { phase: 'Running', facts: up }],
    [
      'the source says that the guest has gone, and the record does not yet',
      'Running',
      {
        phase: 'Running',
        state: { ...BEGUN, sourceState: { ...KNOWN.sourceState, verdict: { phase: 'Succeeded' } } },
        facts: up,
      },
    ],
    ['the guest is there', 'Succeeded', { phase: 'Running', state: BEGUN, status: taken, facts: up }],
    [
      'the guest was there, and its node was given up since',
      'Succeeded',
      { phase: 'Running', state: BEGUN, status: { phase: 'Failed', rightToRun: { epoch: 5 } }, facts: up },
    ],
    [
      'the guest is there, though it was cancelled',
      'Succeeded',
      { phase: 'Running', state: BEGUN, status: taken, metadata: GONE },
    ],
    [
      'the guest is there, though the word is that it failed',
      'Succeeded',
      {
        phase: 'Running',
        state: { ...BEGUN, failed: true },
        status: taken,
        facts: up,
      },
    ],
    [
      'the guest is there, and its memory follows',
      'Running',
      { phase: 'Running', state: { ...BEGUN, mode: 'PostCopy' }, status: taken, facts: up },
    ],
    [
      'the guest is there, and ended before its memory came',
      'Failed GuestEnded',
      {
        phase: 'Running',
        state: { ...BEGUN, mode: 'PostCopy' },
        status: { ...taken, phase: 'Failed' },
        facts: up,
      },
    ],
  ];
  it.each(rows)('%s: %s', (_what, expected, half) => {
    const annotations = { [RECEIVER_ANNOTATION]: 'true' };
    const labels = { [TARGET_NODE_LABEL]: 'node-a' };
    const guest = guestOf('guest-2', half, { phase: 'WaitingForSync' }, { annotations, labels });
    expect(decided({ receive: { key: 'k' } }, half, guest)).toBe(expected);
  });
});

describe('two halves of one guest', () => {
  const partner = (phase: MigrationPhase, metadata: object = {}): VirtualMachineInstanceMigration => {
    const made = migrationIn(phase, { uid: 'move-2', name: 'other', ...metadata });
    const conditions = [{ type: 'migrationFailed', status: 'True' as const, reason: 'X', message: 'why' }];
    return phase === 'Failed' ? { ...made, status: { ...made.status, conditions } } : made;
  };
  const STATE: MigrationState = {
    migrationUid: 'move-1',
    sourceNode: 'node-a',
    targetNode: 'node-b',
    sourceState: { migrationUID: 'move-1', virtualMachineInstanceUID: 'guest-1' },
    targetState: { migrationUID: 'move-2', virtualMachineInstanceUID: 'guest-1' },
  };
  const running = { phase: 'Running' as const, nodeName: 'node-a', rightToRun: { epoch: 3, holder: HERE } };
  const same = (other?: VirtualMachineInstanceMigration, more: Partial<PairFacts> = {}): Partial<PairFacts> => ({
    isSameGuest: true,
    partner: other,
    ...more,
  });
  const stuck = {
    conditions: [{ type: 'LiveMigratable', status: 'False' as const, reason: 'DisksNotLiveMigratable' }],
  };

  it.each<Row>([
    ['it is alone', 'Synchronizing', { pair: same() }],
    ['it is alone for too long', 'Failed SyncTimeout', { phase: 'Synchronizing', sinceMs: 10 * MINUTE, pair: same() }],
    ['another one has its key', 'Failed KeyTaken', { pair: same(undefined, { isKeyTaken: true }) }],
    ['the other one is there', 'Pending', { phase: 'Synchronizing', pair: same(partner('WaitingForSync')) }],
    [
      'it has slots',
      'Scheduling create-target',
      {
        phase: 'Pending',
        pair: same(partner('Pending')),
        facts: { slots: 'reserved' },
      },
    ],
    [
      'its disks stay where they are',
      'Failed NotMigratable',
      { phase: 'Pending', pair: same(partner('Pending')), status: stuck },
    ],
    ['the other one is cancelled', 'Failed Canceled', { phase: 'Pending', pair: same(partner('Pending', GONE)) }],
    ['the other one is gone', 'Failed Canceled', { phase: 'Pending', pair: same() }],
    [
      'the other one is cancelled, and it had told',
      'Failed Canceled withdraw',
      {
        phase: 'Pending',
        pair: same(partner('Pending', GONE)),
        state: { migrationUid: 'move-1', sourceState: {} },
      },
    ],
  ])('the source, where %s: %s', (_what, expected, half) => {
    const guest = guestOf('guest-1', half, running, {});
    expect(decided({ sendTo: { key: 'k', connectURL: 'here:1' } }, half, guest)).toBe(expected);
  });

  it.each<Row>([
    ['it is alone', 'WaitingForSync', { pair: same() }],
    ['it is alone for too long', 'Failed SyncTimeout', { phase: 'WaitingForSync', sinceMs: 10 * MINUTE, pair: same() }],
    ['it is alone, and cancelled', 'Failed Canceled', { pair: same(), metadata: GONE }],
    ['the other one begins', 'WaitingForSync', { pair: same(partner('Synchronizing')) }],
    ['the other one runs', 'Running', { phase: 'Pending', pair: same(partner('Running')), metadata: GONE }],
    ['the other one has failed', 'Failed PeerFailed', { phase: 'Running', pair: same(partner('Failed')) }],
    ['the other one has succeeded', 'Succeeded', { phase: 'Running', pair: same(partner('Succeeded')) }],
    ['the other one is gone', 'Failed PeerFailed', { phase: 'Pending', pair: same() }],
    [
      'the other one is gone, and the guest may be there yet',
      'Running',
      {
        phase: 'Running',
        pair: same(),
        state: { ...STATE, completed: true },
        status: { rightToRun: { epoch: 3, holder: HERE, successor: THERE } },
      },
    ],
    [
      'the other one is gone, and the guest has stayed',
      'Failed PeerFailed',
      { phase: 'Running', pair: same(), state: STATE },
    ],
    [
      'the other one is gone, and the guest is there',
      'Succeeded',
      {
        phase: 'Running',
        pair: same(),
        state: STATE,
        status: { rightToRun: { epoch: 4, holder: { ...THERE, node: 'node-b' } } },
      },
    ],
  ])('the target, where %s: %s', (_what, expected, half) => {
    const guest = guestOf('guest-1', half, running, {});
    const told = { ...half, metadata: { uid: 'move-2', ...half.metadata } };
    expect(decided({ receive: { key: 'k' } }, told, guest)).toBe(expected);
  });
});
