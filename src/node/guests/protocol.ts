import { errorMessage } from '../../api/error-message.ts';
import type {
  VirtualMachineInstance,
  VirtualMachineInstanceStatus,
} from '../../api/kubevirt/virtual-machine-instance.ts';
import type { Clock } from '../../env/ports.ts';
import { HypervisorError } from '../../hypervisor/hypervisor.ts';
import { type MachineSpec, MachineSpecError } from '../../hypervisor/machine.ts';
import type { Plan, Refusal } from '../../migration/right-to-run/plan.ts';
import type { Standing } from '../../migration/right-to-run/standing.ts';
import type { View, Wish } from '../../migration/right-to-run/view.ts';
import type { JournalFile } from '../journal/journal-file.ts';
import type { GuestNotes } from './guest-notes.ts';
import { guestStatus } from './guest-status.ts';
import type { Machines, SeenMachine } from './machines.ts';
import type { Prepared } from './preparation.ts';
import type { Outcome, Scene } from './scene.ts';
import type { Steps } from './steps.ts';
import type { Surroundings } from './surroundings.ts';
import { type Intent, nextPlan, startIntent } from './wish.ts';

/** No story of a pod has more chapters: what goes on longer goes in circles. */
const ROUNDS_MAX = 12;

export interface ProtocolOptions {
  readonly clock: Clock;
  readonly surroundings: Surroundings;
  readonly journal: JournalFile;
  readonly machines: Machines;
  readonly notes: GuestNotes;
  readonly steps: Steps;
  readonly interfacesOf: InterfacesOf | undefined;
}

/** What is said of the interfaces of a guest that runs in such a machine. */
export type InterfacesOf = (
  guest: VirtualMachineInstance,
  spec: MachineSpec,
) => VirtualMachineInstanceStatus['interfaces'];

/** Takes a launcher pod through the protocol of the right to run, as far as it goes for now. */
export class Protocol {
  readonly #options: ProtocolOptions;

  constructor(options: ProtocolOptions) {
    this.#options = options;
  }

  /** Rejects when a step fails; then all is to be looked at anew. */
  async follow(
    scene: Scene,
    standing: Standing,
    prepared: Prepared | undefined,
    signal: AbortSignal,
  ): Promise<Outcome & { readonly refusal: Refusal | undefined }> {
    const { machines } = this.#options;
    let now: Situation = { scene, standing, seen: await machines.look(scene.podUID) };
    for (let round = 0; ; round++) {
      const { view, plan, spec } = await this.#decide(now, prepared, signal);
      if (plan.steps.length === 0) return { ...now.scene, view, seen: now.seen, refusal: plan.refusal };
      if (round === ROUNDS_MAX) throw new Error(`pod ${scene.podUID} comes to no rest: ${JSON.stringify(plan.steps)}`);
      const guest = await this.#do(now, view, plan, spec, signal);
      now = {
        scene: { ...scene, guest },
        standing: this.#standing(scene, standing),
        seen: await machines.look(scene.podUID),
      };
    }
  }

  async #decide(
    { scene, standing, seen }: Situation,
    prepared: Prepared | undefined,
    signal: AbortSignal,
  ): Promise<{ view: View; plan: Plan; spec: MachineSpec | undefined }> {
    const { surroundings } = this.#options;
    const { podUID, guest } = scene;
    const intent = this.#intent(scene, prepared);
    const isStart = intent === 'start' && guest !== undefined && isFresh(standing) && seen.fact === 'dead';
    const wish: Wish = isStart
      ? {
          start: {
            remembered: await surroundings.remembered(guest, signal),
            isPaused: guest.spec.startStrategy === 'Paused',
          },
        }
      : {};
    const self = surroundings.runner(podUID, guest, standing.kind !== 'none');
    const view: View = {
      self,
      record: guest?.status?.rightToRun,
      standing,
      machine: seen.fact,
      hasMigrationFailed: false,
      peerMachine: 'unknown',
      inbox: [],
      outOfService: surroundings.outOfService(self),
      unheard: [],
      wish,
    };
    return {
      view,
      plan: nextPlan(view, intent),
      spec: isStart && prepared?.kind === 'ready' ? prepared.spec : undefined,
    };
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
    { scene, seen, standing }: Situation,
    view: View,
    plan: Plan,
    spec: MachineSpec | undefined,
    signal: AbortSignal,
  ): Promise<VirtualMachineInstance | undefined> {
    const { clock, notes, steps, surroundings } = this.#options;
    const { podUID, pod } = scene;
    if (spec) await this.#note(scene);
    const statusBeside = (guest: VirtualMachineInstance): Partial<VirtualMachineInstanceStatus> => {
      const { status, agent } = seen;
      const facts = { guest, self: view.self, standing: this.#standing(scene, standing), status, agent };
      return {
        ...guestStatus({ ...facts, end: notes.endOf(podUID, seen) }, clock.now()),
        ...(spec ? this.#ofMachine(guest, spec) : {}),
      };
    };
    try {
      return await steps.run(plan.steps, { ...scene, spec, statusBeside }, signal);
    } catch (error) {
      if (!isStartFailure(error)) throw error;
      await notes.noteEnd(podUID, { reason: 'Failed', message: errorMessage(error), log: [] });
      return surroundings.guest(podUID, pod, notes.get(podUID), signal);
    }
  }

  /** What the guest's machine is like, on record for those who want to reach it, or to move it to another. */
  #ofMachine(guest: VirtualMachineInstance, spec: MachineSpec): Partial<VirtualMachineInstanceStatus> {
    const interfaces = this.#options.interfacesOf?.(guest, spec) ?? [];
    return { machine: { type: spec.machineType }, ...(interfaces.length > 0 ? { interfaces } : {}) };
  }

  /** Whose machine it is that is about to be started. */
  async #note({ podUID, pod, guest }: Scene): Promise<void> {
    const { notes, clock } = this.#options;
    if (!guest || !pod || notes.get(podUID)) return;
    const { namespace = '', name = '', uid: guestUID = '' } = guest.metadata;
    const podName = pod.metadata.name ?? '';
    await notes.put({ podUID, podName, namespace, name, guestUID, atMs: clock.now() });
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
}

/** Whether the pod has had no machine yet. */
export function isFresh(standing: Standing): boolean {
  return standing.kind === 'none' || standing.kind === 'starting';
}

function isStartFailure(error: unknown): boolean {
  return error instanceof MachineSpecError || (error instanceof HypervisorError && error.code === 'StartFailed');
}
