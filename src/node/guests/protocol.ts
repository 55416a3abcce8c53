import { errorMessage } from '../../api/error-message.ts';
import type { Runner } from '../../api/kubevirt/right-to-run.ts';
import type {
  VirtualMachineInstance,
  VirtualMachineInstanceStatus,
} from '../../api/kubevirt/virtual-machine-instance.ts';
import type { Clock, Logger } from '../../env/ports.ts';
import { HypervisorError } from '../../hypervisor/hypervisor.ts';
import { type MachineSpec, MachineSpecError } from '../../hypervisor/machine.ts';
import { type Attempt, epochAcross } from '../../migration/right-to-run/attempt.ts';
import type { Plan, Refusal, Step } from '../../migration/right-to-run/plan.ts';
import type { Standing } from '../../migration/right-to-run/standing.ts';
import type { StartWish, View, Wish } from '../../migration/right-to-run/view.ts';
import type { JournalFile } from '../journal/journal-file.ts';
import type { Migrations } from '../migrations/migrations.ts';
import { filledImages, leftImages, seenImages } from '../migrations/moved-images.ts';
import type { ImageStamps } from '../volumes/image-stamp-files.ts';
import type { GuestNotes } from './guest-notes.ts';
import { guestStatus } from './guest-status.ts';
import type { Machines, SeenMachine } from './machines.ts';
import type { OtherNodes } from './other-nodes.ts';
import type { Prepared } from './preparation.ts';
import type { Outcome, Scene } from './scene.ts';
import type { Steps, StepTarget } from './steps.ts';
import type { Surroundings } from './surroundings.ts';
import { type Intent, nextPlan, startIntent } from './wish.ts';

/** No story of a pod has more chapters: what goes on longer goes in circles. */
const ROUNDS_MAX = 12;

export interface ProtocolOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly surroundings: Surroundings;
  readonly journal: JournalFile;
  readonly machines: Machines;
  readonly notes: GuestNotes;
  readonly steps: Steps;
  /** Where absent, no image is of a claim. */
  readonly stamps: Pick<ImageStamps, 'look'> | undefined;
  readonly migrations: Migrations;
  readonly others: OtherNodes;
  /** How much RAM, to the byte, a machine gets on this node. */
  readonly ramBytesOf: (spec: MachineSpec) => number;
  readonly interfacesOf: InterfacesOf | undefined;
}

/** What is said of the interfaces of a guest that runs in such a machine. */
export type InterfacesOf = (
  guest: VirtualMachineInstance,
  spec: MachineSpec,
) => VirtualMachineInstanceStatus['interfaces'];

/** How the protocol is to be followed. */
export interface Manner {
  /** What the machine needs, where it was prepared. */
  readonly prepared?: Prepared | undefined;
  /** Whether to do without the API server: records are then left to whoever follows with it. */
  readonly isOffline?: boolean;
}

/** Where the protocol has led to. */
export interface Followed extends Outcome {
  readonly refusal: Refusal | undefined;
  /** Whether a record has to be written before it goes on. */
  readonly needsRecord: boolean;
}

/** Takes a launcher pod through the protocol of the right to run, as far as it goes for now. */
export class Protocol {
  readonly #options: ProtocolOptions;

  constructor(options: ProtocolOptions) {
    this.#options = options;
  }

  /** Rejects when a step fails; then all is to be looked at anew. */
  async follow(scene: Scene, standing: Standing, manner: Manner, signal: AbortSignal): Promise<Followed> {
    let now = await this.#look(scene, standing);
    let hasTalked = false;
    for (let round = 0; ; round++) {
      const { view, plan, spec } = await this.#decide(now, manner, signal);
      const outcome = { ...now.scene, view, seen: now.seen, refusal: plan.refusal, needsRecord: false };
      const isTalk = plan.steps.every(isTalking);
      // What was just said need not be said again before anything else happens.
      if (plan.steps.length === 0 || (isTalk && hasTalked)) return outcome;
      if (round === ROUNDS_MAX) throw new Error(`pod ${scene.podUID} comes to no rest: ${JSON.stringify(plan.steps)}`);
      const guest = await this.#do(now, view, plan, { spec, isOffline: manner.isOffline === true }, signal);
      hasTalked = isTalk;
      now = await this.#look({ ...scene, guest }, this.#standing(scene, standing));
      const needsRecord = manner.isOffline === true && plan.steps.some(({ kind }) => kind === 'record');
      if (needsRecord) return { ...outcome, ...now.scene, seen: now.seen, needsRecord };
    }
  }

  async #look(scene: Scene, standing: Standing): Promise<Situation> {
    const { machines, migrations, surroundings } = this.#options;
    const { podUID } = scene;
    const self = surroundings.runner(podUID, scene.guest, standing);
    const seen = await machines.look(podUID, migrations.mayMigrate(scene, standing, self));
    const isReserved = standing.kind === 'holding' && standing.reserved !== undefined;
    if (isReserved && seen.fact === 'postmigrate' && !standing.isCompleted) void this.#noteCompleted(scene);
    await migrations.refresh(podUID, standing, seen);
    return { scene, standing, seen, self };
  }

  /**
   * Should the machine die now, this is what lets its guest go on at the target. Nobody waits for it: what is journaled next
   * is durable only after it.
   */
  async #noteCompleted({ vm, podUID }: Scene): Promise<void> {
    const { journal, log } = this.#options;
    try {
      await journal.append({ vm, podUID, entry: { kind: 'machine', event: 'completed' } });
    } catch (error) {
      log.warn('that a copy is complete was not noted', { pod: podUID, error: errorMessage(error) });
    }
  }

  async #decide(
    { scene, standing, seen, self }: Situation,
    { prepared }: Manner,
    signal: AbortSignal,
  ): Promise<{ view: View; plan: Plan; spec: MachineSpec | undefined }> {
    const { surroundings, migrations, others } = this.#options;
    const { guest } = scene;
    const intent = this.#intent(scene, prepared);
    const isStart = intent === 'start' && guest !== undefined && isFresh(standing) && seen.fact === 'dead';
    const migration = migrations.view(scene, standing, self);
    const { receive, migrate, ...moving } = migration.wish;
    const spec = prepared?.kind === 'ready' && surroundings.isRegistered ? prepared.spec : undefined;
    const wish: Wish = {
      ...moving,
      ...(migrate ? { migrate: this.#sent(migrate, scene.podUID) } : {}),
      ...(receive && spec ? { receive: await this.#received(receive, guest, spec, signal) } : {}),
      ...(isStart ? { start: await this.#start(scene, guest, prepared, signal) } : {}),
    };
    const view: View = {
      ...migration,
      self,
      record: guest?.status?.rightToRun,
      standing,
      machine: seen.fact,
      outOfService: new Set([...surroundings.outOfService(self), ...others.outOfService(scene.podUID, standing)]),
      unheard: await this.#unheard(guest, isStart, signal),
      wish,
    };
    const plan = nextPlan(view, intent, guest !== undefined);
    return { view, plan, spec: spec && (wish.receive ? this.#incoming(spec) : spec) };
  }

  /** A guest that is gone has no record that could be set right: then this node has nothing more to say of it. */
  async #unheard(
    guest: VirtualMachineInstance | undefined,
    isStart: boolean,
    signal: AbortSignal,
  ): Promise<readonly string[]> {
    const { surroundings } = this.#options;
    if (isStart) return surroundings.unheard(signal);
    const known = surroundings.restoration?.unheard ?? [];
    return guest ? known : known.filter((name) => name !== surroundings.node);
  }

  async #start(
    { vm }: Scene,
    guest: VirtualMachineInstance,
    prepared: Prepared | undefined,
    signal: AbortSignal,
  ): Promise<StartWish> {
    const { surroundings, stamps } = this.#options;
    const { spec, accepted } = prepared?.kind === 'ready' ? prepared : {};
    const { namespace = '' } = guest.metadata;
    // Looked at now: since all was prepared, its last guest may have left the image behind.
    const images = spec && stamps ? await seenImages(spec, stamps, accepted) : [];
    return {
      remembered: await surroundings.remembered(guest, signal),
      ...(images.length > 0 ? { disks: { vm, namespace, images } } : {}),
      isPaused: guest.spec.startStrategy === 'Paused',
    };
  }

  /** An attempt of a source, with the images that are left behind. */
  #sent(attempt: Attempt, podUID: string): Attempt {
    const { migrations, notes, stamps } = this.#options;
    const here = notes.get(podUID)?.spec;
    const there = migrations.targetSpec(podUID, attempt);
    return here && there && stamps ? { ...attempt, ...leftImages(here, there, attempt) } : attempt;
  }

  /**
   * An attempt of a target, with the images that are filled. What is received into a record of its own begins above all
   * that its machine ever had.
   */
  async #received(
    asked: Attempt,
    guest: VirtualMachineInstance | undefined,
    spec: MachineSpec,
    signal: AbortSignal,
  ): Promise<Attempt> {
    const { surroundings, stamps } = this.#options;
    const { migrationState, rightToRun } = guest?.status ?? {};
    let attempt = asked;
    if (asked.across && guest) {
      const remembered = await surroundings.remembered(guest, signal);
      const known = Math.max(remembered?.epoch ?? 0, rightToRun?.epoch ?? 0);
      attempt = { ...asked, across: { targetEpoch: epochAcross(asked.epoch, known) } };
    }
    return stamps
      ? { ...attempt, ...(await filledImages(spec, stamps, migrationState, rightToRun?.volumes, attempt)) }
      : attempt;
  }

  #incoming(spec: MachineSpec): MachineSpec {
    return { ...spec, incoming: { ramBytes: this.#options.ramBytesOf(spec) } };
  }

  #intent({ vm, podUID, guest, pod }: Scene, prepared: Prepared | undefined): Intent {
    const { surroundings, journal } = this.#options;
    if (prepared?.kind === 'impossible') return 'never';
    const isPrepared = prepared?.kind === 'ready' && surroundings.isRegistered;
    // The record is what keeps machines apart; this keeps those of one node apart should a record be lost.
    const isCrowded = [...journal.podsOf(vm)].some(([other, { kind }]) => {
      return other !== podUID && kind !== 'ended' && kind !== 'refused';
    });
    return startIntent({ node: surroundings.node, guest, pod, isPrepared, isCrowded });
  }

  /** Does the steps; answers the guest as it is then. */
  async #do(
    { scene, seen, standing, self }: Situation,
    view: View,
    plan: Plan,
    { spec, isOffline }: { readonly spec: MachineSpec | undefined; readonly isOffline: boolean },
    signal: AbortSignal,
  ): Promise<VirtualMachineInstance | undefined> {
    const { clock, notes, steps, surroundings, migrations } = this.#options;
    const { podUID, pod } = scene;
    const isStart = plan.steps.some(isStarting);
    if (spec && isStart) await this.#note(scene, spec);
    const statusBeside: StepTarget['statusBeside'] = (guest, record) => {
      const { status, agent } = seen;
      const durable = this.#standing(scene, standing);
      // How the guest is follows from the record that is about to be: whoever reads that one reads this.
      const next = { ...guest, status: { ...guest.status, rightToRun: record } };
      const facts = { guest: next, self: view.self, standing: durable, status, agent };
      const migrationState = migrations.status({ ...scene, guest }, self, durable, seen);
      const started = spec && isStart ? spec : this.#arrived(view, durable, podUID);
      return {
        ...guestStatus({ ...facts, end: notes.endOf(podUID, seen) }, clock.now()),
        ...(started ? this.#ofMachine(guest, started) : {}),
        ...(migrationState ? { migrationState } : {}),
      };
    };
    try {
      return await steps.run(plan.steps, { ...scene, spec, statusBeside, isOffline }, signal);
    } catch (error) {
      if (!isStartFailure(error)) throw error;
      await notes.noteEnd(podUID, { reason: 'Failed', message: errorMessage(error), log: [] });
      return surroundings.guest(podUID, pod, notes.get(podUID), signal);
    }
  }

  /** What the machine is like that a guest has just come to. */
  #arrived({ record, self }: View, standing: Standing, podUID: string): MachineSpec | undefined {
    if (standing.kind !== 'holding' || (record?.epoch ?? 0) >= standing.epoch) return undefined;
    const isComing = record?.successor?.podUID === self.podUID || standing.taken?.across !== undefined;
    return isComing ? this.#options.notes.get(podUID)?.spec : undefined;
  }

  /** What the guest's machine is like, on record for those who want to reach it, or to move it to another. */
  #ofMachine(guest: VirtualMachineInstance, spec: MachineSpec): Partial<VirtualMachineInstanceStatus> {
    const interfaces = this.#options.interfacesOf?.(guest, spec) ?? [];
    return { machine: { type: spec.machineType }, ...(interfaces.length > 0 ? { interfaces } : {}) };
  }

  /** Whose machine it is that is about to be started. */
  async #note({ podUID, pod, guest }: Scene, spec: MachineSpec): Promise<void> {
    const { notes, clock } = this.#options;
    if (!guest || !pod || notes.get(podUID)) return;
    const { namespace = '', name = '', uid: guestUID = '' } = guest.metadata;
    const podName = pod.metadata.name ?? '';
    await notes.put({ podUID, podName, namespace, name, guestUID, atMs: clock.now(), spec });
  }

  /** Where the pod stands by now; the journal of this version is never written by a later one. */
  #standing({ vm, podUID }: Scene, before: Standing): Standing {
    const standing = this.#options.journal.standing(vm, podUID);
    return standing.kind === 'unknown' ? before : standing;
  }
}

interface Situation {
  readonly scene: Scene;
  readonly standing: Standing;
  readonly seen: SeenMachine;
  readonly self: Runner;
}

/** Whether a step changes nothing on this side, and may be done again at any time. */
function isTalking({ kind }: Step): boolean {
  return kind === 'send' || kind === 'stamp';
}

function isStarting(step: Step): boolean {
  return step.kind === 'machine' && (step.command === 'start' || step.command === 'start-incoming');
}

/** Whether the pod has had no machine yet. */
export function isFresh(standing: Standing): boolean {
  return standing.kind === 'none' || standing.kind === 'starting';
}

function isStartFailure(error: unknown): boolean {
  return error instanceof MachineSpecError || (error instanceof HypervisorError && error.code === 'StartFailed');
}
