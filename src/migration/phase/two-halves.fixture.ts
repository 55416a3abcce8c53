import type { MigrationState } from '../../api/kubevirt/migration-state.ts';
import { isAway } from '../../api/kubevirt/right-to-run-transition.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import {
  isFinalMigration,
  type VirtualMachineInstanceMigration,
} from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { RECEIVER_ANNOTATION } from '../../api/kubevirt/well-known.ts';
import { formatTime } from '../../api/meta.ts';
import { unreachable } from '../../api/unreachable.ts';
import { applySource, applyTarget } from '../halves/apply.ts';
import { parseSourceHalf, parseTargetHalf } from '../halves/parse.ts';
import { sourceHalf, targetHalf } from '../halves/project.ts';
import { syncTimeoutMs } from './deadlines.ts';
import { decide } from './decide.ts';
import type { MigrationDecision } from './decision.ts';
import { type MigrationFacts, ownState, type PairFacts } from './facts.ts';
import { statusAfter } from './status.ts';

/**
 * Two halves of a migration between two guests, with all that works on them: a controller and an agent on each side, and a
 * link that carries halves over, each side's in order, some of them late. Whoever drives it says what happens next; nothing
 * happens otherwise. Agents keep to the protocol of the right to run, in as few words as it takes.
 */

const SOURCE_RUNNER = { node: 'node-a', nodeUID: 'node-uid', podUID: 'pod-s' };
// Of the same names as the source's: clusters know nothing of each other.
const TARGET_RUNNER = { node: 'node-a', nodeUID: 'other-uid', podUID: 'pod-t' };
const POD_CREATED_MS = 0;

/** What may happen next. */
export const ACTIONS = [
  'source controls',
  'target controls',
  'source acts',
  'target acts',
  'source speaks',
  'target speaks',
  'source hears',
  'target hears',
  'grant arrives',
  'answer arrives',
  'pod starts',
  'time passes',
  'source is cancelled',
  'target is cancelled',
  'copy fails',
  'pod ends',
  'copy ends',
] as const;
export type Action = (typeof ACTIONS)[number];

interface Side {
  migration: VirtualMachineInstanceMigration;
  guest: VirtualMachineInstance;
}

export class TwoHalves {
  nowMs = Date.parse('2026-05-01T12:00:00Z');
  source: Side = {
    migration: migrationOf('send', { sendTo: { key: 'k', connectURL: 'there:1' } }),
    guest: guestOf('web', { phase: 'Running', rightToRun: { epoch: 3, holder: SOURCE_RUNNER } }),
  };
  target: Side = {
    migration: migrationOf('receive', { receive: { key: 'k' } }),
    guest: {
      ...guestOf('new', { phase: 'WaitingForSync' }),
      metadata: { name: 'new', namespace: 'there', uid: 'guest-new', annotations: { [RECEIVER_ANNOTATION]: 'true' } },
    },
  };
  /** What the agents have in their journals. */
  sourceJournal: 'holding' | 'reserved' | 'granted' | 'given' = 'holding';
  targetJournal: 'none' | 'receiving' | 'refused' | 'taken' = 'none';
  #isCopied = false;
  #hasFailed = false;
  #heard: 'grant' | undefined;
  #answer: 'taken' | 'refused' | undefined;
  #pod: 'none' | 'there' | 'up' | 'down' = 'none';
  readonly #toTarget: Wire = { under: [], last: '' };
  readonly #toSource: Wire = { under: [], last: '' };

  /** Whether both say how it ended. */
  get isOver(): boolean {
    return isFinalMigration(this.source.migration) && isFinalMigration(this.target.migration);
  }

  get verdicts(): string {
    return `${this.source.migration.status?.phase} ${this.target.migration.status?.phase}`;
  }

  /** Who could execute the guest now. */
  get runners(): number {
    const isAtSource = this.sourceJournal === 'holding' || this.sourceJournal === 'reserved';
    return Number(isAtSource) + Number(this.targetJournal === 'taken');
  }

  perform(action: Action): void {
    switch (action) {
      case 'source controls':
        return this.#control(this.source);
      case 'target controls':
        return this.#control(this.target);
      case 'source acts':
        return this.#actAtSource();
      case 'target acts':
        return this.#actAtTarget();
      case 'source speaks':
        return speak(this.#toTarget, sourceHalf({ ...this.source, node: undefined }));
      case 'target speaks':
        return speak(this.#toSource, targetHalf({ ...this.target, node: undefined }));
      case 'source hears':
        return this.#hearAtSource();
      case 'target hears':
        return this.#hearAtTarget();
      case 'grant arrives':
        if (this.sourceJournal === 'granted') this.#heard = 'grant';
        return;
      case 'answer arrives':
        if (this.targetJournal === 'taken' || this.targetJournal === 'refused') this.#answer = this.targetJournal;
        return;
      case 'pod starts':
        if (this.#pod === 'there') this.#pod = 'up';
        return;
      case 'time passes':
        this.nowMs += 4 * 60_000;
        return;
      case 'source is cancelled':
        return this.#cancel(this.source);
      case 'target is cancelled':
        return this.#cancel(this.target);
      case 'copy fails':
        this.#hasFailed = this.sourceJournal === 'reserved';
        return;
      case 'copy ends':
        this.#isCopied = this.sourceJournal === 'reserved';
        return;
      case 'pod ends':
        // An agent that has taken the guest keeps it.
        if (this.#pod !== 'none' && this.targetJournal !== 'taken') this.#pod = 'down';
        return;
      default:
        return unreachable(action);
    }
  }

  #cancel(side: Side): void {
    if (isFinalMigration(side.migration)) return;
    const { metadata } = side.migration;
    side.migration = {
      ...side.migration,
      metadata: { ...metadata, deletionTimestamp: metadata.deletionTimestamp ?? formatTime(this.nowMs) },
    };
  }

  #hearAtTarget(): void {
    const half = this.#toTarget.under.shift();
    const parsed = half === undefined ? undefined : parseSourceHalf(JSON.parse(half));
    if (parsed && 'problem' in parsed) throw new Error(parsed.problem);
    const told = parsed && applySource(this.target, parsed.half);
    if (told) this.target.guest = withStatus(this.target.guest, told);
  }

  #hearAtSource(): void {
    const half = this.#toSource.under.shift();
    const parsed = half === undefined ? undefined : parseTargetHalf(JSON.parse(half));
    if (parsed && 'problem' in parsed) throw new Error(parsed.problem);
    const told = parsed && applyTarget(this.source, parsed.half);
    if (told) this.source.guest = withStatus(this.source.guest, told);
  }

  #control(side: Side): void {
    const facts = this.factsOf(side);
    const decision = decide(facts);
    this.#make(side, facts, decision);
    const { phase, failure } = decision;
    const status = statusAfter({ ...facts, guest: side.guest }, { phase, failure });
    side.migration = { ...side.migration, status: { ...side.migration.status, ...status } };
  }

  /** What a controller knows of its side. */
  factsOf(side: Side): MigrationFacts {
    const isSource = side === this.source;
    const state = ownState(side);
    const { sourceState, targetState } = state ?? {};
    const isFound = isSource ? targetState !== undefined : sourceState !== undefined;
    const slots = isSource ? slotOf(isFound, state?.targetNode) : slotOf(isFound, this.#pod === 'none' ? '' : 'x');
    const pair: PairFacts = {
      isKeyTaken: false,
      isSameGuest: false,
      partner: undefined,
      isDescribed: isSource ? sourceState !== undefined : targetState !== undefined,
      objection: undefined,
      isAdopted: true,
      isPeerReady: true,
      isGivenAway: false,
      isRecordOld: false,
    };
    return {
      ...side,
      pair,
      slots,
      targetPod: isSource || this.#pod === 'none' ? undefined : this.#podFacts(),
      hasBetterRival: false,
      isEvacuated: false,
      isOtherOwnerAlive: false,
      causes: [],
      newsMs: this.nowMs,
      nowMs: this.nowMs,
      syncTimeoutMs: syncTimeoutMs({}),
    };
  }

  #podFacts(): NonNullable<MigrationFacts['targetPod']> {
    return {
      name: 'target',
      nodeName: TARGET_RUNNER.node,
      isUp: this.#pod === 'up',
      isDown: this.#pod === 'down',
      cause: '',
      isUnschedulable: false,
      createdMs: POD_CREATED_MS + this.nowMs,
    };
  }

  #make(side: Side, facts: MigrationFacts, { step }: MigrationDecision): void {
    const state = ownState(facts) ?? {};
    const isSource = side === this.source;
    if (!step) return;
    switch (step.kind) {
      case 'adopt':
      case 'announce':
        return;
      case 'describe':
        return this.#write(side, { ...state, ...(isSource ? describedSource(side) : describedTarget(side)) });
      case 'create-target':
        this.#pod = 'there';
        return;
      case 'hand-off':
        return this.#write(side, {
          ...state,
          ...(isSource
            ? { sourceNode: SOURCE_RUNNER.node, sourcePod: 'source' }
            : { targetNode: TARGET_RUNNER.node, targetPod: 'target', migrationConfiguration: {} }),
        });
      case 'request-abort':
        return this.#write(side, { ...state, abortRequested: true });
      case 'withdraw':
        if (isSource && this.sourceJournal !== 'holding') throw new Error('withdrew what the source had begun');
        return this.#write(side, { ...state, abortRequested: true, failed: true, completed: true });
      default:
        return unreachable(step);
    }
  }

  #write(side: Side, migrationState: MigrationState): void {
    side.guest = withStatus(side.guest, { migrationState });
  }

  #actAtSource(): void {
    const { guest } = this.source;
    const state = guest.status?.migrationState ?? {};
    const isAsked = state.abortRequested !== true && state.completed !== true;
    const record = guest.status?.rightToRun;
    if (this.sourceJournal === 'holding') {
      if (!isAsked || state.sourceNode === undefined || !state.targetRunner || state.startTimestamp) return;
      this.sourceJournal = 'reserved';
      const rightToRun = { epoch: 3, holder: SOURCE_RUNNER, successor: state.targetRunner, across: true };
      const migrationState = { ...state, startTimestamp: formatTime(this.nowMs), mode: 'PreCopy' as const };
      this.source.guest = withStatus(guest, { rightToRun, migrationState });
    } else if (this.sourceJournal === 'reserved') {
      if (!isAsked || this.#hasFailed) return this.#keep(3);
      if (this.#isCopied && this.targetJournal === 'receiving') this.sourceJournal = 'granted';
    } else if (this.sourceJournal === 'granted') {
      if (this.#answer === 'refused') return this.#keep(4);
      if (this.#answer !== 'taken' || !record?.successor) return;
      this.sourceJournal = 'given';
      const rightToRun = { epoch: 4, holder: record.successor, across: true };
      this.source.guest = withStatus(guest, { rightToRun, phase: 'Succeeded' });
    }
  }

  #keep(epoch: number): void {
    this.sourceJournal = 'holding';
    const { guest } = this.source;
    const { migrationState } = guest.status ?? {};
    const rightToRun = { epoch, holder: SOURCE_RUNNER };
    const failed = { ...migrationState, failed: true, completed: true, failureReason: 'kept' };
    this.source.guest = withStatus(guest, { rightToRun, migrationState: failed });
  }

  #actAtTarget(): void {
    const { guest } = this.target;
    const state = guest.status?.migrationState ?? {};
    const isOfUs = state.targetNode !== undefined && state.targetPod === 'target';
    const isAsked = isOfUs && state.abortRequested !== true && state.completed !== true && this.#pod === 'up';
    if (this.targetJournal === 'none') {
      if (isAsked && state.sourceState?.runner) {
        this.targetJournal = 'receiving';
        const told = { ...state, targetRunner: TARGET_RUNNER, targetNodeAddress: '10.0.0.2' };
        this.target.guest = withStatus(guest, { migrationState: told });
      } else if (isOfUs && !isAsked) this.#refuse(state);
    } else if (this.targetJournal === 'receiving') {
      if (this.#heard === 'grant') {
        this.targetJournal = 'taken';
        const rightToRun = { epoch: 4, holder: TARGET_RUNNER };
        const told = { ...state, completed: true };
        this.target.guest = withStatus(guest, { rightToRun, phase: 'Running', migrationState: told });
      } else if (!isAsked) this.#refuse(state);
    } else if (this.targetJournal === 'refused' && state.completed !== true) this.#refuse(state);
  }

  #refuse(state: MigrationState): void {
    this.targetJournal = 'refused';
    if (state.completed === true) return;
    const told = { ...state, failed: true, completed: true, failureReason: 'refused' };
    this.target.guest = withStatus(this.target.guest, { migrationState: told });
  }

  /** Lets everything go on, with nothing lost any more, until nothing changes. */
  settle(): void {
    for (let round = 0; round < 60 && !this.isOver; round++) {
      for (const action of HEALED) this.perform(action);
      while (this.#toTarget.under.length > 0) this.perform('target hears');
      while (this.#toSource.under.length > 0) this.perform('source hears');
      if (round % 4 === 3) this.perform('time passes');
    }
  }

  /** Whether the guest is where the verdict says. */
  get isAtTarget(): boolean {
    return this.targetJournal === 'taken' && isAway(this.source.guest.status?.rightToRun);
  }
}

const HEALED: readonly Action[] = [
  'source controls',
  'target controls',
  'pod starts',
  'source acts',
  'target acts',
  'copy ends',
  'grant arrives',
  'answer arrives',
  'source acts',
  'target acts',
  'source controls',
  'target controls',
  'source speaks',
  'target speaks',
];

/** What was said to one side, and is on its way. */
interface Wire {
  readonly under: string[];
  last: string;
}

/** Nobody says the same twice. */
function speak(wire: Wire, half: object): void {
  const text = JSON.stringify(half);
  if (text === wire.last) return;
  wire.under.push(text);
  wire.last = text;
}

function slotOf(isFound: boolean, targetNode: string | undefined): MigrationFacts['slots'] {
  if (!isFound) return undefined;
  return targetNode ? 'committed' : 'reserved';
}

function describedSource({ migration, guest }: Side): MigrationState {
  const runner = SOURCE_RUNNER;
  return {
    migrationUid: migration.metadata.uid ?? '',
    sourceState: { ...identified(migration, guest), runner, epoch: 3, node: runner.node, pod: 'source', volumes: [] },
  };
}

function describedTarget({ migration, guest }: Side): MigrationState {
  return { targetState: identified(migration, guest) };
}

function identified({ metadata }: VirtualMachineInstanceMigration, guest: VirtualMachineInstance) {
  const { name: domainName = '', namespace: domainNamespace = '', uid = '' } = guest.metadata;
  return { migrationUID: metadata.uid ?? '', virtualMachineInstanceUID: uid, domainName, domainNamespace };
}

function migrationOf(name: string, halves: object): VirtualMachineInstanceMigration {
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstanceMigration',
    metadata: { name, namespace: 'here', uid: `uid-of-${name}`, creationTimestamp: '2026-05-01T12:00:00Z' },
    spec: { vmName: name === 'send' ? 'web' : 'new', cause: 'CrossCluster', ...halves },
  };
}

function guestOf(name: string, status: VirtualMachineInstance['status']): VirtualMachineInstance {
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { name, namespace: 'here', uid: `guest-${name}` },
    spec: { domain: { devices: {} } },
    ...(status ? { status } : {}),
  };
}

function withStatus(
  guest: VirtualMachineInstance,
  status: NonNullable<VirtualMachineInstance['status']>,
): VirtualMachineInstance {
  return { ...guest, status: { ...guest.status, ...status } };
}
