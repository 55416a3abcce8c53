import { errorMessage } from '../../api/error-message.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { Env } from '../../env/ports.ts';
import { differences, placeName } from '../../hypervisor/compare.ts';
import type { Machine } from '../../hypervisor/hypervisor.ts';
import type { DevicePlace } from '../../hypervisor/machine.ts';
import { withinTime } from '../../kube/time-limit.ts';
import { TransportError } from '../../kube/transport.ts';
import { frozenOptions } from '../../migration/policies/options.ts';
import type { Attempt } from '../../migration/right-to-run/attempt.ts';
import type { Machines } from '../guests/machines.ts';
import type { Outcome } from '../guests/scene.ts';
import type { NodeMetrics } from '../node-metrics.ts';
import { Copy } from './copy.ts';
import type { CopyCredentials } from './copy-credentials.ts';
import { channelStatus, wantedMethod } from './copy-method.ts';
import type { CopyContext, CopyHooks } from './copy-options.ts';
import type { CopyRelays, Road } from './copy-relays.ts';
import { claimDifferences, type DescribeMachine, fileDifferences } from './described-machines.ts';
import { CANCELLED, causeOf, configurationOf, hear, type Leaving } from './leaving.ts';
import {
  comparedMachine,
  type Opened,
  type Peer,
  type PeerAnswer,
  PeerError,
  type PeerRequest,
  type Peers,
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
  readonly metrics?: Pick<NodeMetrics, 'follow'> | undefined;
  /** Called when the protocol may go on, now. */
  readonly advance: (podUID: string) => void;
  /** Called when all is to be looked at anew. */
  readonly enqueue: (podUID: string) => void;
  /** Called when there is something to report, which need not be at once. */
  readonly tell: (podUID: string) => void;
}

/** A copy that can begin, or be left alone. */
interface PreparedCopy {
  readonly begin: () => Copy;
  readonly undo: () => Promise<void>;
}

/** Making certificates and listening takes a moment, on a host under load a long one: then its answer is asked for again. */
const OPEN_TIMEOUT_MS = 20_000;
const OPEN_TRIES_MAX = 5;
const OPEN_AGAIN_MS = 1000;
/** The guest stands still meanwhile, and goes on where it is if there is no answer. */
const LAST_LOOK_TIMEOUT_MS = 2000;
/** A target writes its journal and continues its machine before it answers. */
const EXCHANGE_TIMEOUT_MS = 5000;

/** The copies of guests that leave this node: from asking a target to wait, up to copies that go on by themselves. */
export class OutgoingCopies {
  readonly #options: OutgoingOptions;
  readonly #never = new AbortController().signal;

  constructor(options: OutgoingOptions) {
    this.#options = options;
  }

  /** Asks the agent of a target. Rejects with a PeerError, also when there is no answer for too long. */
  async exchange(peer: Peer, request: PeerRequest, timeoutMs = EXCHANGE_TIMEOUT_MS): Promise<PeerAnswer> {
    const { env, peers } = this.#options;
    try {
      return await withinTime(env.clock, timeoutMs, this.#never, (signal) => peers.exchange(peer, request, signal));
    } catch (error) {
      if (error instanceof PeerError) throw error;
      const why = errorMessage(error instanceof TransportError ? (error.cause ?? error) : error);
      throw new PeerError('Unreachable', `the agent of node ${peer.node} has not answered: ${why}`, error);
    }
  }

  /** Says what did not work, and goes on. */
  log(podUID: string, what: string, error: unknown): void {
    this.#options.env.log.info(what, { pod: podUID, error: errorMessage(error) });
  }

  /** Has the target wait for the copy. Never rejects: what came of it is known of the migration. */
  async open(outcome: Outcome, leaving: Leaving): Promise<void> {
    const { podUID, guest } = outcome;
    const { env, enqueue, describe, cpus, relays } = this.#options;
    const { attempt, peer } = leaving;
    leaving.isOpening = true;
    try {
      if (!peer) throw new PeerError('Refused', 'nobody has said where the target is');
      const here = await describe(podUID, guest);
      const asked = frozenOptions(configurationOf(guest));
      // What is said elsewhere never takes encryption from a guest of this side, nor decides which ports are used there.
      const options = attempt.across ? { ...asked, disableTLS: false, portRange: undefined } : asked;
      const { portRange } = options;
      const method = wantedMethod(options, {
        memoryBytes: here.machine.ramBytes,
        cpus,
        canBePlain: relays !== undefined,
      });
      const answer = await this.exchange(
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
      const isProven = method.isEncrypted ? answer.opened.credentials : answer.opened.secrets?.memory.length;
      if (!isProven) throw new PeerError('Refused', 'the target did not say how it knows who comes');
      checkHost(attempt, peer, answer.opened.host);
      if (answer.machine !== 'inmigrate') throw new PeerError('Refused', `its machine is ${answer.machine}`);
      const different = [
        ...differences(here.machine, comparedMachine(answer.opened.machine)),
        ...fileDifferences(here, answer.opened.diskFiles ?? {}),
        ...claimDifferences(here, answer.opened.machine.spec),
      ];
      if (different.length > 0) throw new PeerError('Refused', `the machines differ: ${different.join('; ')}`);
      hear(leaving, answer);
      leaving.opened = { opened: answer.opened, method, disks: here.copiedDisks };
      // Told with the reservation: a quick copy is over before there is anything else to tell.
      leaving.told = { mode: 'PreCopy', channel: channelStatus(method), progress: undefined, decisions: [] };
    } catch (error) {
      this.log(podUID, 'the target cannot be opened', error);
      leaving.openTries++;
      // The target's agent, or the machine here, which may answer again.
      const isFinal = (error as { code?: unknown }).code !== 'Unreachable';
      if (isFinal || leaving.openTries >= OPEN_TRIES_MAX)
        leaving.failure = `the target could not be made ready: ${errorMessage(error)}`;
      else await new Promise<void>((resolve) => void env.clock.setTimer(resolve, OPEN_AGAIN_MS * leaving.openTries));
    }
    leaving.isOpening = false;
    enqueue(podUID);
  }

  /** Begins to copy. */
  async start({ podUID, guest }: Outcome, leaving: Leaving): Promise<void> {
    const { credentials } = this.#options;
    const { opened, method, disks } = leaving.opened ?? {};
    if (!opened || !method || !disks) return;
    await this.#startWith(podUID, guest, leaving, async (machine) => {
      const road = method.isEncrypted && !opened.secrets ? undefined : await this.#road(machine, opened);
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

  /** The way of what goes through the agents. */
  async #road({ run }: Machine, { host, memoryPort, disksPort, secrets }: Opened): Promise<Road> {
    const { relays } = this.#options;
    const port = disksPort ?? memoryPort;
    if (!relays || !secrets) throw new Error('nobody could tell who sends it, nor who receives it');
    return relays.lead({ host, port }, secrets, run.directory);
  }

  /** A copy that a former agent began goes on, if there is one. */
  async adopt({ podUID, guest }: Outcome, leaving: Leaving): Promise<void> {
    const { describe } = this.#options;
    const known = guest?.status?.migrationState ?? {};
    const startedAtMs = known.startTimestamp === undefined ? undefined : Date.parse(known.startTimestamp);
    await this.#startWith(podUID, guest, leaving, async (machine) => {
      const { copiedDisks } = await describe(podUID, guest);
      const places = new Set(copiedDisks.map(placeName));
      // Nobody may have said yet to this agent that they are: the guest would be let go without them.
      const unknown = (await machine.migration.mirrors()).filter(({ place }) => !places.has(placeName(place)));
      if (unknown.length > 0) throw new Error('disks are being copied of which nothing is known');
      const context = this.#context(podUID, machine, guest, copiedDisks, leaving);
      return { begin: () => Copy.adopt({ ...context, known, startedAtMs }), undo: async () => undefined };
    });
  }

  async #startWith(
    podUID: string,
    guest: VirtualMachineInstance | undefined,
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
      } else {
        leaving.copy = begin();
        this.#options.metrics?.follow(guest, leaving.copy);
      }
    } catch (error) {
      this.log(podUID, 'a copy cannot begin', error);
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
      ...(leaving.attempt.across ? { isTargetThere: () => this.#warmUp(leaving, LAST_LOOK_TIMEOUT_MS) } : {}),
      listenAgain: async () => {
        const { attempt, peer } = leaving;
        if (!peer) throw new PeerError('Unreachable', 'nobody has said where the target is');
        const { listening } = await this.exchange(peer, { kind: 'listen-again', attempt }, OPEN_TIMEOUT_MS);
        if (!listening) throw new PeerError('Refused', 'the target did not say where it waits');
        checkHost(attempt, peer, listening.host);
        return listening;
      },
    };
  }

  /** A connection that was idle for long has to be made anew, better now than when everything else is over. */
  async #warmUp({ peer, attempt }: Leaving, timeoutMs?: number): Promise<boolean> {
    try {
      if (peer) await this.exchange(peer, { kind: 'look', attempt }, timeoutMs);
      return peer !== undefined;
    } catch {
      // It is asked again when it matters.
      return false;
    }
  }
}

/**
 * A node of this cluster has proven which one it is, and says at which of its addresses it waits. What goes elsewhere goes where
 * that side said that its agent is, and nowhere else that the agent may name.
 */
function checkHost({ across }: Attempt, { address }: Peer, host: string): void {
  if (across !== undefined && host !== address)
    throw new PeerError('Refused', `the target waits at ${host}, and its agent was said to be at ${address}`);
}
