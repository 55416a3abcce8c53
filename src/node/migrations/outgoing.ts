import { errorMessage } from '../../api/error-message.ts';
import type { MigrationState } from '../../api/kubevirt/migration-state.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { Env } from '../../env/ports.ts';
import { differences } from '../../hypervisor/compare.ts';
import type { Machine } from '../../hypervisor/hypervisor.ts';
import type { DevicePlace } from '../../hypervisor/machine.ts';
import { withinTime } from '../../kube/time-limit.ts';
import { frozenOptions } from '../../migration/policies/options.ts';
import { type Attempt, isSameAttempt, isSameRunner } from '../../migration/right-to-run/attempt.ts';
import type { Message } from '../../migration/right-to-run/plan.ts';
import type { Standing } from '../../migration/right-to-run/standing.ts';
import type { MachineFact } from '../../migration/right-to-run/view.ts';
import type { Machines, SeenMachine } from '../guests/machines.ts';
import type { Outcome } from '../guests/scene.ts';
import { Copy } from './copy.ts';
import { channelStatus, wantedMethod } from './copy-method.ts';
import type { CopyContext, CopyFailure, CopyHooks } from './copy-options.ts';
import type { CopyCredentials } from './copy-credentials.ts';
import type { CopyRelays, Road } from './copy-relays.ts';
import { type DescribeMachine, fileDifferences } from './described-machines.ts';
import { messageOf } from './letters.ts';
import { askedAttempt, isWelcome, partIn, patienceOf } from './migration-wish.ts';
import type { SourceFacts } from './migration-report.ts';
import {
  comparedMachine,
  type Opened,
  type Peer,
  type PeerAnswer,
  PeerError,
  type PeerRequest,
  type Peers,
  type WantedMethod,
} from './peer.ts';

export interface OutgoingOptions {
  readonly env: Env;
  readonly peers: Peers;
  readonly credentials: Pick<CopyCredentials, 'write'>;
  readonly relays?: Pick<CopyRelays, 'lead'> | undefined;
  /** How many processors this host has. */
  readonly cpus: number;
  readonly machines: Machines;
  readonly describe: DescribeMachine;
  /** Called when the protocol may go on, now. */
  readonly advance: (podUID: string) => void;
  /** Called when all is to be looked at anew. */
  readonly enqueue: (podUID: string) => void;
  /** Called when there is something to report, which need not be at once. */
  readonly tell: (podUID: string) => void;
}

/** What is known of one migration away from here, besides what the journal says. Lost with the agent. */
interface Leaving {
  readonly attempt: Attempt;
  peer: Peer | undefined;
  isOpening: boolean;
  openTries: number;
  opened:
    | { readonly opened: Opened; readonly method: WantedMethod; readonly disks: readonly DevicePlace[] }
    | undefined;
  isStarting: boolean;
  /** Whether the protocol has given it up: from then on nobody would end a copy that begins. */
  isCalledOff: boolean;
  copy: Copy | undefined;
  /** What is told of the copy. */
  told: SourceFacts['copy'];
  failure: string | undefined;
  /** When the guest will be gone from here for another reason; undefined for never, and may change. */
  deadlineMs: number | undefined;
  /** Whether it was known to be cancelled. */
  isCancelled: boolean;
  /** Why the copy came to nothing, as it was when it did. */
  cause: string | undefined;
  peerMachine: MachineFact;
  readonly letters: Message[];
  /** Since when the target is asked in vain whether it has the guest. */
  askedSinceMs: number | undefined;
  undelivered: { readonly message: Message; readonly sinceMs: number } | undefined;
}

/** A copy that can begin, or be left alone. */
interface PreparedCopy {
  readonly begin: () => Copy;
  readonly undo: () => Promise<void>;
}

/** Making certificates and listening takes a moment. */
const OPEN_TIMEOUT_MS = 20_000;
const OPEN_TRIES_MAX = 5;
const OPEN_AGAIN_MS = 1000;
/** A target writes its journal and continues its machine before it answers. */
const EXCHANGE_TIMEOUT_MS = 5000;
/** For so long the guest may stand still, before anything is granted, because nobody says that the target has it. */
const PATIENCE_MS = 15_000;
/** How long a letter may be undelivered before it is also written into the guest's status. */
const LETTER_AFTER_MS = 3000;

/** The migrations away from this node: what the source's half of the protocol rests on, and the copies. */
export class Outgoing {
  readonly #options: OutgoingOptions;
  readonly #leaving = new Map<string, Leaving>();
  readonly #never = new AbortController().signal;

  constructor(options: OutgoingOptions) {
    this.#options = options;
  }

  /** Whether the target waits for this very attempt. */
  canSend(podUID: string, attempt: Attempt): boolean {
    const leaving = this.#leaving.get(podUID);
    return leaving?.opened !== undefined && leaving.failure === undefined && isSameAttempt(leaving.attempt, attempt);
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
      this.#hear(leaving, await this.#exchange(peer, { kind: 'look', attempt }));
      answer = `its machine is ${leaving.peerMachine}`;
    } catch (error) {
      this.#log(podUID, 'the target does not say whether it has the guest', error);
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
      this.#hear(leaving, await this.#exchange(peer, request));
      leaving.undelivered = undefined;
    } catch (error) {
      this.#log(podUID, `the target does not hear "${message.kind}"`, error);
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
      if (isToAdopt) void this.#adopt(outcome, leaving);
      return;
    }
    if (standing.kind !== 'holding') return;
    if (standing.reserved) {
      const leaving = this.#begin(podUID, standing.reserved, guest);
      leaving.deadlineMs = hold?.untilMs;
      const isRecorded = isSameRunner(record?.successor, standing.reserved.target);
      if (leaving.copy || leaving.isStarting || leaving.failure !== undefined || !isRecorded) return;
      void (leaving.opened ? this.#start(outcome, leaving) : this.#adopt(outcome, leaving));
      return;
    }
    const asked = { self, guest, pod, patience: patienceOf(hold, standing, this.#options.env.clock.now()) };
    const isNew = guest?.status?.migrationState?.startTimestamp === undefined;
    const attempt = isNew && isWelcome(asked) && partIn(asked)?.side === 'source' ? askedAttempt(asked) : undefined;
    if (!attempt || standing.mustContinue) return;
    const leaving = this.#begin(podUID, attempt, guest);
    if (!leaving.opened && !leaving.isOpening && leaving.failure === undefined) void this.#open(outcome, leaving);
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
    const leaving: Leaving = {
      attempt,
      peer,
      isOpening: false,
      openTries: 0,
      opened: undefined,
      isStarting: false,
      isCalledOff: false,
      copy: undefined,
      told: undefined,
      failure: undefined,
      deadlineMs: undefined,
      isCancelled: false,
      cause: undefined,
      peerMachine: 'unknown',
      letters: [],
      askedSinceMs: undefined,
      undelivered: undefined,
    };
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

  #hear(leaving: Leaving, { machine, letters }: PeerAnswer): void {
    leaving.peerMachine = machine;
    for (const letter of letters) {
      const isNew = !leaving.letters.some(({ kind }) => kind === letter.kind);
      if (isNew && isSameAttempt(letter.attempt, leaving.attempt)) leaving.letters.push(letter);
    }
  }

  async #open(outcome: Outcome, leaving: Leaving): Promise<void> {
    const { podUID, guest } = outcome;
    const { env, enqueue, describe, cpus, relays } = this.#options;
    const { attempt, peer } = leaving;
    leaving.isOpening = true;
    try {
      if (!peer) throw new PeerError('Refused', 'nobody has said where the target is');
      const here = await describe(podUID);
      const options = frozenOptions(configurationOf(guest));
      const { portRange } = options;
      const method = wantedMethod(options, {
        memoryBytes: here.machine.ramBytes,
        cpus,
        canBePlain: relays !== undefined,
      });
      const answer = await this.#exchange(
        peer,
        {
          kind: 'open',
          attempt,
          method,
          ...(portRange ? { ports: portRange } : {}),
          copiedDisks: here.copiedDisks,
        },
        OPEN_TIMEOUT_MS,
      );
      if (!answer.opened) throw new PeerError('Refused', 'the target did not say where it waits');
      const isProven = method.isEncrypted ? answer.opened.credentials : answer.opened.secrets;
      if (!isProven) throw new PeerError('Refused', 'the target did not say how it knows who comes');
      if (answer.machine !== 'inmigrate') throw new PeerError('Refused', `its machine is ${answer.machine}`);
      const different = [
        ...differences(here.machine, comparedMachine(answer.opened.machine)),
        ...fileDifferences(here, answer.opened.diskFiles ?? {}),
      ];
      if (different.length > 0) throw new PeerError('Refused', `the machines differ: ${different.join('; ')}`);
      this.#hear(leaving, answer);
      leaving.opened = { opened: answer.opened, method, disks: here.copiedDisks };
      // Told with the reservation: a quick copy is over before there is anything else to tell.
      leaving.told = { mode: 'PreCopy', channel: channelStatus(method), progress: undefined, decisions: [] };
    } catch (error) {
      this.#log(podUID, 'the target cannot be opened', error);
      leaving.openTries++;
      const isFinal = !(error instanceof PeerError && error.code === 'Unreachable');
      if (isFinal || leaving.openTries >= OPEN_TRIES_MAX)
        leaving.failure = `the target could not be made ready: ${errorMessage(error)}`;
      else await new Promise<void>((resolve) => void env.clock.setTimer(resolve, OPEN_AGAIN_MS * leaving.openTries));
    }
    leaving.isOpening = false;
    enqueue(podUID);
  }

  /** Begins to copy. */
  async #start({ podUID, guest }: Outcome, leaving: Leaving): Promise<void> {
    const { credentials } = this.#options;
    const { opened, method, disks } = leaving.opened ?? {};
    if (!opened || !method || !disks) return;
    await this.#startWith(podUID, leaving, async (machine) => {
      const road = method.isEncrypted ? undefined : await this.#road(machine, opened);
      const files = opened.credentials ? await credentials.write(podUID, opened.credentials) : undefined;
      const context = this.#context(podUID, machine, guest, disks, leaving);
      const begin = (): Copy => Copy.start({ ...context, opened, method, credentials: files, road });
      const undo = async (): Promise<void> => {
        road?.close();
        await files?.remove();
      };
      return { begin, undo };
    });
  }

  /** The way of a copy that is not encrypted. */
  async #road({ run }: Machine, { host, memoryPort: port, secrets }: Opened): Promise<Road> {
    const { relays } = this.#options;
    if (!relays || !secrets) throw new Error('nobody could tell who sends it, nor who receives it');
    return relays.lead({ host, port }, secrets, run.directory);
  }

  /** A copy that a former agent began goes on, if there is one. */
  async #adopt({ podUID, guest }: Outcome, leaving: Leaving): Promise<void> {
    const { describe } = this.#options;
    const known = guest?.status?.migrationState ?? {};
    const startedAtMs = known.startTimestamp === undefined ? undefined : Date.parse(known.startTimestamp);
    await this.#startWith(podUID, leaving, async (machine) => {
      const { copiedDisks } = await describe(podUID);
      const context = this.#context(podUID, machine, guest, copiedDisks, leaving);
      return { begin: () => Copy.adopt({ ...context, known, startedAtMs }), undo: async () => undefined };
    });
  }

  async #startWith(
    podUID: string,
    leaving: Leaving,
    prepare: (machine: Machine) => Promise<PreparedCopy>,
  ): Promise<void> {
    const machine = this.#options.machines.get(podUID);
    if (!machine) return;
    leaving.isStarting = true;
    try {
      const { begin, undo } = await prepare(machine);
      if (leaving.isCalledOff) {
        leaving.failure ??= CANCELLED;
        await undo();
      } else leaving.copy = begin();
    } catch (error) {
      this.#log(podUID, 'a copy cannot begin', error);
      leaving.failure ??= `the copy could not begin: ${errorMessage(error)}`;
    }
    leaving.isStarting = false;
    this.#options.advance(podUID);
  }

  #context(
    podUID: string,
    machine: Machine,
    guest: VirtualMachineInstance | undefined,
    disks: readonly DevicePlace[],
    leaving: Leaving,
  ): CopyContext {
    const { env } = this.#options;
    const options = frozenOptions(configurationOf(guest));
    return { env, machine, disks, options, hooks: this.#hooks(podUID, leaving), deadlineMs: () => leaving.deadlineMs };
  }

  #hooks(podUID: string, leaving: Leaving): CopyHooks {
    const { advance, tell } = this.#options;
    let state = leaving.copy?.state;
    return {
      onNews: () => {
        const { copy } = leaving;
        if (!copy) return;
        const { mode, channel, progress, decisions } = copy;
        leaving.told = { mode, channel, progress, decisions };
        const hasTurned = state !== copy.state;
        state = copy.state;
        if (copy.state === 'failed') leaving.cause ??= causeOf(copy.failure, leaving.isCancelled);
        if (hasTurned) advance(podUID);
        else tell(podUID);
      },
      onStill: () => void this.#warmUp(leaving),
      listenAgain: async () => {
        const { attempt, peer } = leaving;
        if (!peer) throw new PeerError('Unreachable', 'nobody has said where the target is');
        const { listening } = await this.#exchange(peer, { kind: 'listen-again', attempt }, OPEN_TIMEOUT_MS);
        if (!listening) throw new PeerError('Refused', 'the target did not say where it waits');
        return listening;
      },
    };
  }

  /** A connection that was idle for long has to be made anew, better now than when everything else is over. */
  async #warmUp({ peer, attempt }: Leaving): Promise<void> {
    try {
      if (peer) await this.#exchange(peer, { kind: 'look', attempt });
    } catch {
      // It is asked again when it matters.
    }
  }

  #exchange(peer: Peer, request: PeerRequest, timeoutMs = EXCHANGE_TIMEOUT_MS): Promise<PeerAnswer> {
    const { env, peers } = this.#options;
    return withinTime(env.clock, timeoutMs, this.#never, (signal) => peers.exchange(peer, request, signal));
  }

  #log(podUID: string, what: string, error: unknown): void {
    this.#options.env.log.info(what, { pod: podUID, error: errorMessage(error) });
  }
}

const CANCELLED = 'the migration was cancelled';

/** Why a copy came to nothing. One that ended because it was cancelled may look as if it had failed. */
function causeOf(failure: CopyFailure | undefined, isCancelled: boolean): string | undefined {
  const isOwn = failure && failure.reason !== 'CopyFailed' && failure.reason !== 'MirrorFailed';
  return isCancelled && !isOwn ? CANCELLED : failure?.message;
}

/** The attempt that a source is in the middle of. */
export function leavingAttempt(standing: Standing): Attempt | undefined {
  if (standing.kind === 'granted') return standing.attempt;
  return standing.kind === 'holding' ? standing.reserved : undefined;
}

function configurationOf(guest: VirtualMachineInstance | undefined) {
  return guest?.status?.migrationState?.migrationConfiguration ?? {};
}

function peerOf(state: MigrationState | undefined, { target, sourceMigrationUID }: Attempt): Peer | undefined {
  const [port] = Object.keys(state?.targetDirectMigrationNodePorts ?? {});
  const address = state?.targetNodeAddress;
  if (state?.migrationUid !== sourceMigrationUID || address === undefined || port === undefined) return undefined;
  return { node: target.node, address, port: Number(port) };
}
