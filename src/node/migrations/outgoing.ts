import { errorMessage } from '../../api/error-message.ts';
import type { MigrationState } from '../../api/kubevirt/migration-state.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { MachineSpec } from '../../hypervisor/machine.ts';
import { type Attempt, isSameAttempt, isSameRunner } from '../../migration/right-to-run/attempt.ts';
import type { Message } from '../../migration/right-to-run/plan.ts';
import type { Standing } from '../../migration/right-to-run/standing.ts';
import type { MachineFact } from '../../migration/right-to-run/view.ts';
import type { SeenMachine } from '../guests/machines.ts';
import type { Outcome } from '../guests/scene.ts';
import { CANCELLED, hear, type Leaving, newLeaving, peerOf } from './leaving.ts';
import { messageOf } from './letters.ts';
import { askedAttempt, isWelcome, partIn, patienceOf } from './migration-wish.ts';
import type { SourceFacts } from './migration-report.ts';
import { OutgoingCopies, type OutgoingOptions } from './outgoing-copies.ts';
import { PeerError } from './peer.ts';

/** For so long the guest may stand still, before anything is granted, because nobody says that the target has it. */
const PATIENCE_MS = 15_000;
/** How long a letter may be undelivered before it is also written into the guest's status. */
const LETTER_AFTER_MS = 3000;

/** The migrations away from this node: what the source's half of the protocol rests on, and the copies. */
export class Outgoing {
  readonly #options: OutgoingOptions;
  readonly #copies: OutgoingCopies;
  readonly #leaving = new Map<string, Leaving>();

  constructor(options: OutgoingOptions) {
    this.#options = options;
    this.#copies = new OutgoingCopies(options);
  }

  /** Whether the target waits for this very attempt. */
  canSend(podUID: string, attempt: Attempt): boolean {
    const leaving = this.#leaving.get(podUID);
    return leaving?.opened !== undefined && leaving.failure === undefined && isSameAttempt(leaving.attempt, attempt);
  }

  /** What the machine is like that waits for this attempt. */
  targetSpec(podUID: string, attempt: Attempt): MachineSpec | undefined {
    return this.#of(podUID, attempt)?.opened?.opened.machine.spec;
  }

  /** What was said of an attempt by its target. */
  inbox(podUID: string, attempt: Attempt, state: MigrationState | undefined): readonly Message[] {
    const leaving = this.#of(podUID, attempt);
    const written = messageOf(state?.targetLetter, attempt);
    return [...(leaving?.letters ?? []), ...(written ? [written] : [])];
  }

  /** What the target's machine was last said to be; unknown where another attempt is meant. */
  peerMachine(podUID: string, attempt: Attempt): MachineFact {
    return this.#of(podUID, attempt)?.peerMachine ?? 'unknown';
  }

  hasFailed(podUID: string, attempt: Attempt): boolean {
    const leaving = this.#of(podUID, attempt);
    return leaving?.failure !== undefined || leaving?.copy?.state === 'failed';
  }

  /** Whether the guest stands still because it is being moved: then nothing is done that can wait. */
  isStill(podUID: string, standing: Standing): boolean {
    // What was granted has left; and a grant that is not heard has to be written down.
    const attempt = standing.kind === 'holding' ? standing.reserved : undefined;
    const { copy } = (attempt && this.#of(podUID, attempt)) ?? {};
    return copy?.stoppedAtMs !== undefined && (copy.state === 'switching' || copy.state === 'completed');
  }

  /** Asks the target how it is, where only that is missing for a grant. Never rejects. */
  async refresh(podUID: string, standing: Standing, { fact }: SeenMachine): Promise<void> {
    const leaving = this.#waitingToGrant(podUID, standing, fact);
    if (!leaving?.peer) return;
    const { attempt, peer } = leaving;
    const nowMs = this.#options.env.clock.now();
    let answer: string;
    try {
      hear(leaving, await this.#copies.exchange(peer, { kind: 'look', attempt }));
      answer = `its machine is ${leaving.peerMachine}`;
    } catch (error) {
      this.#copies.log(podUID, 'the target does not say whether it has the guest', error);
      answer = errorMessage(error);
    }
    const isThere = leaving.peerMachine === 'paused' || leaving.peerMachine === 'postcopy';
    leaving.askedSinceMs = isThere ? undefined : (leaving.askedSinceMs ?? nowMs);
    // Neither half of a guest can go on without the other.
    if (leaving.askedSinceMs === undefined || fact === 'postcopy' || nowMs - leaving.askedSinceMs < PATIENCE_MS) return;
    leaving.failure ??= `the agent of the target did not say that it has the guest: ${answer}`;
  }

  /** Whether the target has to be asked again before anything can go on. */
  isWaiting(podUID: string, standing: Standing, { fact }: SeenMachine): boolean {
    return this.#waitingToGrant(podUID, standing, fact) !== undefined;
  }

  /** Tells the target. Never rejects: what was not heard is said again, and written down where it can be read. */
  async send(podUID: string, guest: VirtualMachineInstance | undefined, message: Message): Promise<void> {
    const leaving = this.#begin(podUID, message.attempt, guest);
    const { copy, peer } = leaving;
    const nowMs = this.#options.env.clock.now();
    const stoppedAtMs = message.kind === 'grant' ? copy?.stoppedAtMs : undefined;
    const stoppedForMs = stoppedAtMs === undefined ? undefined : Math.max(0, Math.round(nowMs - stoppedAtMs));
    try {
      if (!peer) throw new PeerError('Unreachable', 'nobody has said where the target is');
      const request = { kind: 'letter', message, ...(stoppedForMs === undefined ? {} : { stoppedForMs }) } as const;
      hear(leaving, await this.#copies.exchange(peer, request));
      leaving.undelivered = undefined;
    } catch (error) {
      this.#copies.log(podUID, `the target does not hear "${message.kind}"`, error);
      const isSame = leaving.undelivered?.message.kind === message.kind;
      if (!isSame) leaving.undelivered = { message, sinceMs: nowMs };
    }
  }

  /** Gives up copying, and begins with it no more; the guest goes on here. */
  async cancel(podUID: string): Promise<void> {
    const leaving = this.#leaving.get(podUID);
    if (leaving) leaving.isCalledOff = true;
    if (leaving?.copy) return leaving.copy.cancel();
    const migration = this.#options.machines.get(podUID)?.migration;
    await migration?.cancel();
    await migration?.dropMirrors();
  }

  /** Opens the target, starts the copy or takes over one that a former agent began, as the journal demands. */
  tend(outcome: Outcome): void {
    const { podUID, guest, pod, view, hold } = outcome;
    const { standing, self, record } = view;
    this.#noteCancelled(podUID, guest);
    if (standing.kind === 'granted') {
      const leaving = this.#begin(podUID, standing.attempt, guest);
      const isToAdopt = standing.isPostCopy && view.machine === 'postcopy' && !leaving.copy && !leaving.isStarting;
      if (isToAdopt) void this.#copies.adopt(outcome, leaving);
      return;
    }
    if (standing.kind !== 'holding') return;
    // Nothing can be begun with a machine that does not answer: it is looked at again soon.
    const isMute = view.machine === 'unknown';
    if (standing.reserved) {
      const leaving = this.#begin(podUID, standing.reserved, guest);
      leaving.deadlineMs = hold?.untilMs;
      const isRecorded = isSameRunner(record?.successor, standing.reserved.target);
      if (leaving.copy || leaving.isStarting || leaving.failure !== undefined || !isRecorded) return;
      if (isMute) return;
      void (leaving.opened ? this.#copies.start(outcome, leaving) : this.#copies.adopt(outcome, leaving));
      return;
    }
    const asked = { self, guest, pod, patience: patienceOf(hold, standing, this.#options.env.clock.now()) };
    const isNew = guest?.status?.migrationState?.startTimestamp === undefined;
    const attempt = isNew && isWelcome(asked) && partIn(asked)?.side === 'source' ? askedAttempt(asked) : undefined;
    if (!attempt || standing.mustContinue || isMute) return;
    const leaving = this.#begin(podUID, attempt, guest);
    if (!leaving.opened && !leaving.isOpening && leaving.failure === undefined)
      void this.#copies.open(outcome, leaving);
  }

  /** What is told of the migration of this name. */
  facts(podUID: string, state: MigrationState): SourceFacts {
    const leaving = this.#leaving.get(podUID);
    if (!leaving || leaving.attempt.sourceMigrationUID !== state.migrationUid) return {};
    const { failure, undelivered, told } = leaving;
    const isLate =
      undelivered !== undefined &&
      (undelivered.message.kind !== 'grant' || this.#options.env.clock.now() - undelivered.sinceMs >= LETTER_AFTER_MS);
    return {
      failure: failure ?? leaving.cause ?? (state.abortRequested === true ? CANCELLED : undefined),
      undelivered: isLate ? undelivered.message : undefined,
      copy: told,
    };
  }

  /** Lets go of all copies, which go on as far as they can. */
  letGo(): void {
    for (const { copy } of this.#leaving.values()) copy?.detach();
  }

  forget(podUID: string): void {
    this.#leaving.delete(podUID);
  }

  #of(podUID: string, attempt: Attempt): Leaving | undefined {
    const leaving = this.#leaving.get(podUID);
    return leaving && isSameAttempt(leaving.attempt, attempt) ? leaving : undefined;
  }

  #begin(podUID: string, attempt: Attempt, guest: VirtualMachineInstance | undefined): Leaving {
    const peer = peerOf(guest?.status?.migrationState, attempt);
    const known = this.#of(podUID, attempt);
    if (known) {
      // It may have been started anew since, and be elsewhere.
      known.peer = peer ?? known.peer;
      return known;
    }
    const leaving = newLeaving(attempt, peer);
    this.#leaving.set(podUID, leaving);
    return leaving;
  }

  #noteCancelled(podUID: string, guest: VirtualMachineInstance | undefined): void {
    const leaving = this.#leaving.get(podUID);
    const { migrationUid, abortRequested } = guest?.status?.migrationState ?? {};
    if (leaving && migrationUid === leaving.attempt.sourceMigrationUID && abortRequested) leaving.isCancelled = true;
  }

  #waitingToGrant(podUID: string, standing: Standing, fact: MachineFact): Leaving | undefined {
    if (standing.kind !== 'holding' || !standing.reserved) return undefined;
    const isOver = fact === 'postmigrate' || fact === 'postcopy' || (fact === 'dead' && standing.isCompleted);
    return isOver ? this.#of(podUID, standing.reserved) : undefined;
  }
}
