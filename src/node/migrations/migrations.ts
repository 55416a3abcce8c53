import type { MigrationState } from '../../api/kubevirt/migration-state.ts';
import type { Runner } from '../../api/kubevirt/right-to-run.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { Clock } from '../../env/ports.ts';
import type { MachineSpec } from '../../hypervisor/machine.ts';
import { type Attempt, isSameRunner } from '../../migration/right-to-run/attempt.ts';
import type { Message } from '../../migration/right-to-run/plan.ts';
import type { Standing } from '../../migration/right-to-run/standing.ts';
import type { View } from '../../migration/right-to-run/view.ts';
import type { SeenMachine } from '../guests/machines.ts';
import type { Outcome, Scene } from '../guests/scene.ts';
import type { Incoming } from './incoming.ts';
import type { LeavingDisks } from './leaving-disks.ts';
import { isSameLetter, letterOf } from './letters.ts';
import { sourceReport, targetReport } from './migration-report.ts';
import { attemptIn, isReplaced, migrationWish, partIn, patienceOf } from './migration-wish.ts';
import { leavingAttempt } from './leaving.ts';
import type { Outgoing } from './outgoing.ts';

/** Where other agents reach this one. */
export interface AgentAddress {
  readonly address: string;
  readonly port: number;
}

export interface MigrationsOptions {
  readonly clock: Clock;
  readonly outgoing: Outgoing;
  readonly incoming: Incoming;
  /** The disks of guests that are to go elsewhere. */
  readonly disks: Pick<LeavingDisks, 'tend' | 'told' | 'forget'>;
  /** Undefined for as long as nobody can reach this agent. */
  readonly address: () => AgentAddress | undefined;
}

/** What a view of a pod says of its migration. */
export type MigrationView = Pick<View, 'wish' | 'peerMachine' | 'inbox' | 'hasMigrationFailed'>;

/** The guests that leave this node, and those that come to it, as far as the protocol and the reports go. */
export class Migrations {
  readonly #options: MigrationsOptions;

  constructor(options: MigrationsOptions) {
    this.#options = options;
  }

  /** Whether the machine of a pod may have a migration that matters. */
  mayMigrate({ guest, pod }: Scene, standing: Standing, self: Runner): boolean {
    if (standing.kind === 'receiving' || leavingAttempt(standing)) return true;
    const part = partIn({ self, guest, pod });
    return standing.kind === 'holding' && part?.side === 'target' && part.state.completed !== true;
  }

  /** What is known of a pod's migration, and what is wanted. */
  view({ podUID, guest, pod, hold }: Scene, standing: Standing, self: Runner): MigrationView {
    const { clock, outgoing, incoming } = this.#options;
    const state = guest?.status?.migrationState;
    const pending = { self, guest, pod, patience: patienceOf(hold, standing, clock.now()) };
    const wish = migrationWish(pending, standing, (attempt) => outgoing.canSend(podUID, attempt));
    if (standing.kind === 'receiving' || standing.kind === 'refused') {
      const { attempt } = standing;
      const heard = incoming.inbox(podUID, attempt, state);
      // Its source may have said so while nobody listened, and has other things to say by now.
      const isOver = standing.kind === 'receiving' && heard.length === 0 && isReplaced(guest, attempt);
      const inbox: readonly Message[] = isOver ? [{ kind: 'aborted', attempt }] : heard;
      return { wish, inbox, peerMachine: 'unknown', hasMigrationFailed: false };
    }
    const taken = 'taken' in standing && standing.taken?.across ? standing.taken : undefined;
    // A source whose record is another one asks for as long as it has not heard that its guest is here.
    const asked = taken ? incoming.inbox(podUID, taken, state) : [];
    const attempt = leavingAttempt(standing) ?? wish.migrate;
    if (!attempt) {
      const question = questionOf(guest, self);
      const inbox = [...asked, ...(question ? [question] : [])];
      return { wish, inbox, peerMachine: 'unknown', hasMigrationFailed: false };
    }
    return {
      wish,
      inbox: [...asked, ...outgoing.inbox(podUID, attempt, state)],
      peerMachine: outgoing.peerMachine(podUID, attempt),
      hasMigrationFailed: outgoing.hasFailed(podUID, attempt),
    };
  }

  /** What the machine is like that waits for this attempt; undefined where that is not known. */
  targetSpec(podUID: string, attempt: Attempt): MachineSpec | undefined {
    return this.#options.outgoing.targetSpec(podUID, attempt);
  }

  /** Asks the other side what only it knows, where something waits for that alone. Never rejects. */
  refresh(podUID: string, standing: Standing, seen: SeenMachine): Promise<void> {
    return this.#options.outgoing.refresh(podUID, standing, seen);
  }

  /** Whether the other side has to be heard before anything can go on, and nobody but this side asks. */
  isWaiting({ podUID, view, seen }: Outcome): boolean {
    const { standing } = view;
    if (standing.kind === 'granted') return !view.inbox.some(({ kind }) => kind === 'taken');
    return this.#options.outgoing.isWaiting(podUID, standing, seen);
  }

  /** Says something to the other side. Never rejects. */
  async send(podUID: string, guest: VirtualMachineInstance | undefined, message: Message): Promise<void> {
    const { outgoing, incoming } = this.#options;
    if (message.attempt.target.podUID === podUID) incoming.say(podUID, message);
    else await outgoing.send(podUID, guest, message);
  }

  /** Gives up copying from here. */
  cancel(podUID: string): Promise<void> {
    return this.#options.outgoing.cancel(podUID);
  }

  /** The guest was continued here. */
  noteContinued(podUID: string): void {
    this.#options.incoming.noteContinued(podUID);
  }

  /** Does what the protocol leaves to others: opening targets, copying. */
  tend(outcome: Outcome): void {
    this.#options.outgoing.tend(outcome);
    this.#options.disks.tend(outcome);
  }

  /** Whether nothing is done for this pod that can wait, since its guest stands still. */
  isStill({ podUID, view }: Outcome): boolean {
    return this.#options.outgoing.isStill(podUID, view.standing);
  }

  /** The guest's migration as this pod's half of it should be; undefined where it is no side of one. */
  status(
    { podUID, guest, pod }: Scene,
    self: Runner,
    standing: Standing,
    seen: SeenMachine,
  ): MigrationState | undefined {
    const { clock, outgoing, incoming, disks, address } = this.#options;
    const part = partIn({ self, guest, pod });
    const told = disks.told(podUID, guest, self);
    if (!part) return told;
    const { side } = part;
    const state = told ?? part.state;
    if (side === 'source') {
      const holder = guest?.status?.rightToRun?.holder;
      const hasGone = holder !== undefined && !isSameRunner(holder, self);
      const facts = { ...outgoing.facts(podUID, state), hasGone };
      return { ...state, ...sourceReport(state, standing, facts, clock.now()) };
    }
    const isWaiting = seen.fact === 'inmigrate';
    const facts = { ...incoming.facts(podUID, standing, seen), self, place: address(), isWaiting };
    return { ...state, ...targetReport(state, standing, facts, clock.now()) };
  }

  /** Lets go of all copies, which go on as far as they can. */
  letGo(): void {
    this.#options.outgoing.letGo();
  }

  forget(podUID: string): void {
    this.#options.outgoing.forget(podUID);
    this.#options.incoming.forget(podUID);
    this.#options.disks.forget(podUID);
  }
}

/** A target's question after an attempt of which nothing is left here, unless it was answered. */
function questionOf(guest: VirtualMachineInstance | undefined, self: Runner): Message | undefined {
  const { targetLetter: letter, sourceLetter, targetRunner } = guest?.status?.migrationState ?? {};
  if (!guest || letter?.kind !== 'is-it-over' || letter.sourcePodUID !== self.podUID) return undefined;
  if (targetRunner?.podUID !== letter.targetPodUID) return undefined;
  const attempt = attemptIn(guest, letter.epoch, { source: self, target: targetRunner });
  if (attempt.sourceMigrationUID !== letter.migrationUid) return undefined;
  const answered = letterOf({ kind: 'aborted', attempt });
  return isSameLetter(sourceLetter, answered) ? undefined : { kind: 'is-it-over', attempt };
}
