import { ApiError } from '../../api/status.ts';
import type { Env } from '../../env/ports.ts';
import type { Client } from '../../kube/client.ts';
import { Controller, type Result, soonest } from '../../kube/controller.ts';
import type { EventRecorder } from '../../kube/event-recorder.ts';
import { errorText } from '../../kube/error-text.ts';
import type { KubeMetrics } from '../../kube/metrics.ts';
import { frozenOptions } from '../../migration/policies/options.ts';
import { isHeard, isSettled } from '../../migration/right-to-run/decide.ts';
import type { JournaledStanding } from '../../migration/right-to-run/journal.ts';
import type { Refusal } from '../../migration/right-to-run/plan.ts';
import { NO_STANDING } from '../../migration/right-to-run/standing.ts';
import type { JournalFile } from '../journal/journal-file.ts';
import { describedMachines } from '../migrations/described-machines.ts';
import { Incoming } from '../migrations/incoming.ts';
import { configurationOf, sourceKeysOf } from '../migrations/leaving.ts';
import { LeavingDisks } from '../migrations/leaving-disks.ts';
import { Migrations } from '../migrations/migrations.ts';
import { comingSizes, filledVolumes } from '../migrations/moved-images.ts';
import type { NodeMigration } from '../migrations/node-migration.ts';
import { Outgoing } from '../migrations/outgoing.ts';
import type { NodeMetrics } from '../node-metrics.ts';
import type { PeerService } from '../migrations/peer.ts';
import type { ImageStamps } from '../volumes/image-stamp-files.ts';
import { Ending } from './ending.ts';
import type { GuestNotes } from './guest-notes.ts';
import { Hearing } from './hearing.ts';
import { KubeletPods } from './kubelet-pods.ts';
import { guestOwner, isPodOver } from './launcher-pod.ts';
import type { Launchers } from './launchers.ts';
import type { Machines } from './machines.ts';
import { OtherNodes } from './other-nodes.ts';
import { OwnPods } from './own-pods.ts';
import type { PodKeeper } from './pod-keeper.ts';
import { shutdownTimes } from './power-off.ts';
import { Plugging } from './plugging.ts';
import type { Preparation, Prepared } from './preparation.ts';
import { type Followed, type InterfacesOf, isFresh, type Manner, Protocol } from './protocol.ts';
import { Reports } from './reports.ts';
import type { Scene } from './scene.ts';
import { Steps } from './steps.ts';
import { machineUidOf, type Surroundings } from './surroundings.ts';

export interface GuestsOptions {
  readonly env: Env;
  readonly client: Client;
  readonly recorder: Pick<EventRecorder, 'event'>;
  readonly surroundings: Surroundings;
  readonly journal: JournalFile;
  readonly machines: Machines;
  readonly preparation: Preparation;
  readonly notes: GuestNotes;
  readonly stamps?: ImageStamps | undefined;
  readonly interfacesOf?: InterfacesOf | undefined;
  readonly migration: NodeMigration;
  /** What machines are started by, where launcher pods are a kubelet's. */
  readonly launchers?: Launchers | undefined;
  readonly metrics?: KubeMetrics;
  readonly nodeMetrics?: NodeMetrics | undefined;
}

const WORKERS = 16;
/** Preparing may copy disks. */
const RECONCILE_TIMEOUT_MS = 300_000;
/** How soon it is tried again what met somebody else's write. */
const CONFLICT_MS = 100;
/** How soon a machine is asked again that did not answer. */
const UNKNOWN_MS = 2000;
/** What is enqueued, besides pods, to say that all were looked at since the API's data was restored. */
const HEARING = 'hearing';
/** How soon it is looked again whether what was refused is refused still. */
const REFUSED_MS = 30_000;
/** How soon the other side of a migration is spoken to again that was not heard. */
const SAY_AGAIN_MS = 1000;
/** News of a copy come in twos and threes: they are told together. */
const NEWS_MS = 300;

/**
 * Runs the guests of the launcher pods that are bound to this node. Each pod is brought to where it should be by looking
 * at it, at its guest, at the journal and at its machine. Nothing else counts, so that an agent that was killed goes on
 * where its journal says it was.
 *
 * A guest that is being moved stands still for a moment, in which nothing may wait for the API server, nor for the other
 * guests: then its pod is advanced by what is known already, and looked at in the ordinary way afterwards.
 */
export class Guests {
  /** Answers the sources of guests that come to this node. */
  readonly peers: PeerService;
  readonly #env: Env;
  readonly #recorder: Pick<EventRecorder, 'event'>;
  readonly #surroundings: Surroundings;
  readonly #journal: JournalFile;
  readonly #machines: Machines;
  readonly #preparation: Preparation;
  readonly #notes: GuestNotes;
  readonly #ending: Ending;
  readonly #plugging: Plugging;
  readonly #migrations: Migrations;
  readonly #others: OtherNodes;
  readonly #protocol: Protocol;
  /** Pods as they were last looked at. */
  readonly #scenes = new Map<string, Scene>();
  /** Whoever follows the protocol of a pod, alone. */
  readonly #turns = new Map<string, Promise<unknown>>();
  readonly #sayingAgain = new Set<string>();
  readonly #stopping = new AbortController();
  readonly #hearing: Hearing;
  readonly #pods: PodKeeper;
  readonly #reports: Reports;
  readonly #controller: Controller;
  #departure: Departure | undefined;

  constructor(options: GuestsOptions) {
    const { env, client, recorder, surroundings, journal, machines, notes, metrics } = options;
    const { clock } = env;
    this.#env = env;
    this.#recorder = recorder;
    this.#surroundings = surroundings;
    this.#journal = journal;
    this.#machines = machines;
    this.#preparation = options.preparation;
    this.#notes = notes;
    this.#ending = new Ending({ clock, log: env.log, recorder, machines });
    this.#plugging = new Plugging({ machines, recorder, log: env.log });
    const { incoming, migrations } = this.#newMigrations(options);
    this.peers = incoming;
    this.#migrations = migrations;
    this.#others = new OtherNodes(client, clock);
    this.#hearing = new Hearing({ client, surroundings, journal, log: env.log });
    const steps = new Steps({
      client,
      journal,
      machines,
      migrations,
      stamps: options.stamps,
      discard: (podUID) => this.#preparation.forget(podUID),
      onWritten: (podUID, before, after) => {
        surroundings.wrote(after);
        this.#reports.tellPeople(podUID, before, after);
      },
    });
    this.#protocol = new Protocol({
      clock,
      log: env.log,
      surroundings,
      journal,
      machines,
      notes,
      steps,
      stamps: options.stamps,
      migrations,
      others: this.#others,
      ramBytesOf: options.migration.ramBytesOf,
      interfacesOf: options.interfacesOf,
    });
    const { launchers } = options;
    this.#pods = launchers
      ? new KubeletPods({ ...env, client, launchers, onNews: (podUID) => this.enqueue(podUID) })
      : new OwnPods({ clock, client, recorder, write: (podUID, write) => surroundings.writePod(podUID, write) });
    this.#reports = new Reports({ clock, recorder, notes, steps, migrations, pods: this.#pods });
    this.#controller = new Controller({
      name: 'guests',
      env,
      workers: WORKERS,
      reconcileTimeoutMs: RECONCILE_TIMEOUT_MS,
      reconcile: (podUID, signal) => this.#reconcile(podUID, signal),
      ...(metrics ? { metrics } : {}),
    });
  }

  /** How many guests are this node's to execute. */
  get count(): number {
    let count = 0;
    for (const { standing } of this.#journal.pods()) if (standing.kind === 'holding') count++;
    return count;
  }

  /** Asks for a pod to be looked at. */
  enqueue(podUID: string): void {
    if (podUID !== '') this.#controller.enqueue(podUID);
  }

  /**
   * Takes the protocol of a pod as far as it goes by what is known already, at once and without the API server: records
   * and reports follow. Never rejects.
   */
  async advance(podUID: string): Promise<void> {
    const vm = this.#journal.vmOf(podUID);
    if (vm === undefined || this.#stopping.signal.aborted) return;
    try {
      await this.#follow({ ...this.#recall(podUID), podUID, vm }, { isOffline: true }, this.#stopping.signal);
    } catch (error) {
      this.#env.log.info('the protocol of a pod did not go on', { pod: podUID, error: errorText(error) });
      this.#sayAgain(podUID);
    }
    this.enqueue(podUID);
  }

  /** Ends every guest within its grace period, and starts no other. Resolves when none is left. */
  leave(): Promise<void> {
    if (this.#departure) return this.#departure.done;
    const left = [...this.#journal.pods()].filter(({ standing }) => !isOver(standing)).map(({ podUID }) => podUID);
    let resolve = (): void => undefined;
    const done = new Promise<void>((it) => (resolve = it));
    this.#departure = { left: new Set(left), done, resolve };
    if (left.length === 0) resolve();
    this.#ending.leave();
    for (const podUID of left) this.enqueue(podUID);
    return done;
  }

  async run(signal: AbortSignal): Promise<void> {
    // What the journal knows goes first: its machines may run, and nobody else would ask for them.
    for (const { podUID, standing } of this.#journal.pods()) {
      if (!isOver(standing)) this.enqueue(podUID);
    }
    this.#surroundings.onChange((podUID) => this.enqueue(podUID));
    this.#surroundings.onRestoration(() => this.#beHeard());
    this.#beHeard();
    const stop = (): void => this.#stopping.abort(signal.reason);
    signal.addEventListener('abort', stop, { once: true });
    await Promise.all([this.#controller.run(signal), this.#pods.run(signal)]);
    this.#migrations.letGo();
  }

  /** Since the API's data was restored, all that the journal knows of is looked at, what has ended too. */
  #beHeard(): void {
    if (this.#hearing.due === undefined) return;
    for (const { podUID } of this.#journal.pods()) this.enqueue(podUID);
    this.enqueue(HEARING);
  }

  #newMigrations({ env, journal, machines, notes, preparation, migration, nodeMetrics }: GuestsOptions): {
    readonly incoming: Incoming;
    readonly migrations: Migrations;
  } {
    const { peers, credentials, relays, cpus, host, migrationHost, diskBytesOf, diskFileOf } = migration;
    const directoryOf = (podUID: string): string => preparation.directoryOf(podUID);
    const describe = describedMachines({ machines, notes, directoryOf, diskBytesOf, diskFileOf });
    const advance = (podUID: string): Promise<void> => this.advance(podUID);
    const outgoing = new Outgoing({
      env,
      peers,
      credentials,
      relays,
      cpus,
      machines,
      describe,
      metrics: nodeMetrics,
      advance: (podUID) => void advance(podUID),
      enqueue: (podUID) => this.enqueue(podUID),
      tell: (podUID) => this.#controller.enqueue(podUID, { afterMs: NEWS_MS }),
    });
    const describeComing = (podUID: string) => describe(podUID, this.#recall(podUID).guest);
    const incoming = new Incoming({
      env,
      journal,
      machines,
      describe: describeComing,
      credentials,
      relays,
      host,
      migrationHost,
      portsOf: (podUID) => frozenOptions(configurationOf(this.#recall(podUID).guest)).portRange,
      sourceKeysOf: (attempt) => sourceKeysOf(attempt, this.#recall(attempt.target.podUID).guest),
      advance,
    });
    const { address } = migration;
    const enqueue = (podUID: string): void => this.enqueue(podUID);
    const disks = new LeavingDisks({ machines, notes, diskBytesOf, log: env.log, enqueue });
    return { incoming, migrations: new Migrations({ clock: env.clock, outgoing, incoming, disks, address }) };
  }

  async #reconcile(podUID: string, signal: AbortSignal): Promise<Result | void> {
    if (podUID === HEARING) return this.#hearing.tell(signal);
    const { due } = this.#hearing;
    try {
      const note = this.#notes.get(podUID);
      const pod = await this.#surroundings.pod(podUID, note, signal);
      if (pod && !guestOwner(pod)) return await this.#pods.tellForeign(pod, signal);
      const guest = await this.#surroundings.guest(podUID, pod, note, signal);
      if (!pod && !guest && !this.#surroundings.canName(podUID, note)) return this.#nameless(podUID, due);
      const vm = this.#journal.vmOf(podUID) ?? (guest && machineUidOf(guest));
      if (vm !== undefined) return await this.#bring({ podUID, vm, ...this.#held(pod, guest) }, due, signal);
      // The journal does not know it and its guest is gone: it never had a machine that was ours to start.
      if (pod) await this.#reports.tellOrphan(pod, signal);
      else await this.#forget(podUID);
    } catch (error) {
      if (!(error instanceof ApiError) || (error.code !== 404 && error.code !== 409)) throw error;
      // Somebody else wrote at the same time, or it is gone: all is looked at anew.
      return { requeueAfterMs: CONFLICT_MS };
    } finally {
      this.#noteDeparture(podUID);
    }
  }

  /** What the journal says is enough: a record that could not be written is written by the next agent. */
  #noteDeparture(podUID: string): void {
    if (!this.#departure?.left.has(podUID)) return;
    const vm = this.#journal.vmOf(podUID);
    const standing = vm === undefined ? undefined : this.#journal.standing(vm, podUID);
    // A guest that was only about to start has no machine, and gets none any more.
    if (standing && !isOver(standing) && standing.kind !== 'starting') return;
    this.#departure.left.delete(podUID);
    if (this.#departure.left.size === 0) this.#departure.resolve();
  }

  async #bring(scene: Scene, due: string | undefined, signal: AbortSignal): Promise<Result> {
    const { podUID, vm, pod } = scene;
    const standing = this.#journal.standing(vm, podUID);
    if (standing.kind === 'unknown') return this.#refused(scene, LATER_JOURNAL);
    const endingMs = pod && (await this.#pods.endingMs(pod, signal));
    const ending = await this.#ending.bring({ ...scene, endingMs }, standing);
    const prepared = isFresh(standing) ? await this.#prepare(scene, signal) : undefined;
    const otherMs = await this.#lookAtOther(scene, standing, signal);
    const outcome = await this.#follow(scene, { prepared }, signal);
    const { refusal, view } = outcome;
    if (this.#hearing.note(podUID, isHeard(view), due)) this.enqueue(HEARING);
    let pluggedMs: number | undefined;
    if (!this.#migrations.isStill(outcome)) {
      const { fields, retryAfterMs } = await this.#plugging.bring(outcome);
      pluggedMs = retryAfterMs;
      await this.#reports.tellGuest(outcome, fields, signal);
      await this.#reports.tellPod(
        outcome,
        refusal?.code === 'StaleImage' ? unusable(refusal.message) : prepared,
        signal,
      );
    }
    // What is known of it, or of the other node, is not forgotten while anything depends on it.
    if (!pod && isSettled(view) && !refusal && otherMs === undefined) await this.#forget(podUID);
    return soonest([
      ending,
      prepared?.kind === 'missing' ? { requeueAfterMs: prepared.retryAfterMs } : {},
      refusal ? this.#refused(outcome, refusal) : {},
      { requeueAfterMs: otherMs },
      { requeueAfterMs: pluggedMs },
    ]);
  }

  /** Looks whether the node at the other end is out of service; what cannot be asked now is asked later. */
  async #lookAtOther(
    { podUID, guest }: Scene,
    standing: JournaledStanding,
    signal: AbortSignal,
  ): Promise<number | undefined> {
    if (standing.kind === 'unknown') return undefined;
    try {
      return await this.#others.look(podUID, standing, guest?.status?.rightToRun, signal);
    } catch (error) {
      if (signal.aborted) throw error;
      this.#env.log.info('nobody says how the other node of a migration is', { pod: podUID, error: errorText(error) });
      return REFUSED_MS;
    }
  }

  /** Follows the protocol, alone, from where the pod stands by then. */
  async #follow(scene: Scene, manner: Manner, signal: AbortSignal): Promise<Followed> {
    const { podUID, vm } = scene;
    const outcome = await this.#inTurn(podUID, async () => {
      const standing = this.#journal.standing(vm, podUID);
      if (standing.kind === 'unknown') throw new Error(LATER_JOURNAL.message);
      const followed = await this.#protocol.follow(scene, standing, manner, signal);
      // In the same turn: what the next one aborts must not be begun after it.
      this.#migrations.tend(followed);
      return followed;
    });
    const { pod, guest } = outcome;
    this.#scenes.set(podUID, { podUID, vm, pod, guest });
    if (this.#migrations.isWaiting(outcome)) this.#sayAgain(podUID);
    return outcome;
  }

  /** What is known of a pod without asking anybody. */
  #recall(podUID: string): Pick<Scene, 'guest' | 'pod' | 'hold'> {
    const last = this.#scenes.get(podUID);
    const pod = this.#surroundings.recalledPod(podUID) ?? last?.pod;
    return this.#held(pod, this.#surroundings.recalledGuest(podUID, pod, this.#notes.get(podUID), last?.guest));
  }

  #held(pod: Scene['pod'], guest: Scene['guest']): Pick<Scene, 'pod' | 'guest' | 'hold'> {
    return { pod, guest, hold: this.#surroundings.holdOf(pod, guest) };
  }

  #sayAgain(podUID: string): void {
    if (this.#sayingAgain.has(podUID) || this.#stopping.signal.aborted) return;
    this.#sayingAgain.add(podUID);
    this.#env.clock.setTimer(() => {
      this.#sayingAgain.delete(podUID);
      void this.advance(podUID);
    }, SAY_AGAIN_MS);
  }

  /** Does something about a pod when all that was to be done before is. */
  async #inTurn<T>(podUID: string, act: () => Promise<T>): Promise<T> {
    const before = this.#turns.get(podUID) ?? Promise.resolve();
    const turn = before.then(act);
    const settled = turn.then(noop, noop);
    this.#turns.set(podUID, settled);
    try {
      return await turn;
    } finally {
      if (this.#turns.get(podUID) === settled) this.#turns.delete(podUID);
    }
  }

  /** Prepares what the machine needs; undefined where it will never be needed. */
  async #prepare({ podUID, pod, guest }: Scene, signal: AbortSignal): Promise<Prepared | undefined> {
    if (!pod || !guest || isPodOver(pod) || this.#departure) return undefined;
    const { phase } = guest.status ?? {};
    const isWanted = phase !== 'Succeeded' && phase !== 'Failed';
    if (!isWanted || shutdownTimes({ guest, pod }, this.#env.clock.now()) !== undefined) return undefined;
    const self = this.#surroundings.runner(podUID, guest, NO_STANDING);
    const coming = { filled: filledVolumes({ self, guest, pod }), sizesBytes: comingSizes(guest) };
    const prepared = await this.#preparation.prepare(podUID, guest, coming, signal);
    // A kubelet may have to wait for just that before it runs the pod, which is looked at again then.
    return prepared.kind === 'ready' && !this.#pods.canRun(pod) ? undefined : prepared;
  }

  #refused({ podUID, guest }: Scene, { code, message }: Refusal | typeof LATER_JOURNAL): Result {
    if (code === 'MachineUnknown') return { requeueAfterMs: UNKNOWN_MS };
    this.#env.log.warn('the right to run is in question', { pod: podUID, code, message });
    if (guest) this.#recorder.event(guest, 'Warning', code, message);
    return { requeueAfterMs: REFUSED_MS };
  }

  /** Whose machine it is that the journal knows nobody can tell: it is left as it is until somebody can. */
  async #nameless(podUID: string, due: string | undefined): Promise<Result | void> {
    const vm = this.#journal.vmOf(podUID);
    if (vm === undefined) return this.#forget(podUID);
    const { kind } = this.#journal.standing(vm, podUID);
    if (kind === 'ended' || kind === 'refused') {
      if (this.#hearing.note(podUID, true, due)) this.enqueue(HEARING);
      return this.#forget(podUID);
    }
    this.#env.log.warn('the journal knows a pod of which nothing else is known', { pod: podUID, vm });
    return { requeueAfterMs: REFUSED_MS };
  }

  /** Nothing of the pod is left but its log, and what the journal says of it. */
  async #forget(podUID: string): Promise<void> {
    this.#machines.forget(podUID);
    this.#ending.forget(podUID);
    this.#migrations.forget(podUID);
    this.#others.forget(podUID);
    this.#scenes.delete(podUID);
    await this.#pods.forget(podUID);
    await this.#preparation.forget(podUID);
  }
}

/** All guests leave the node. */
interface Departure {
  /** UIDs of the pods whose guests have not ended yet. */
  readonly left: Set<string>;
  readonly done: Promise<void>;
  readonly resolve: () => void;
}

/** An image was left behind after all had been prepared: that cannot be put right for this pod any more. */
function unusable(message: string): Prepared {
  return { kind: 'impossible', cause: { reason: 'StaleImage', message } };
}

function isOver({ kind }: JournaledStanding): boolean {
  return kind === 'ended' || kind === 'refused';
}

const noop = (): void => undefined;

const LATER_JOURNAL = {
  code: 'LaterJournal',
  message: 'a later version of this agent wrote about the pod, and this one does not understand it',
} as const;
