import type { RightToRun } from '../../api/kubevirt/right-to-run.ts';
import { isAway } from '../../api/kubevirt/right-to-run-transition.ts';
import type {
  VirtualMachineInstance,
  VirtualMachineInstanceStatus,
} from '../../api/kubevirt/virtual-machine-instance.ts';
import { unreachable } from '../../api/unreachable.ts';
import type { Machine } from '../../hypervisor/hypervisor.ts';
import type { MachineSpec } from '../../hypervisor/machine.ts';
import type { Client } from '../../kube/client.ts';
import { virtualMachineInstances } from '../../kube/kubevirt-resources.ts';
import { statusPatch } from '../../kube/status-patch.ts';
import type { MachineCommand, NewStamp, Step } from '../../migration/right-to-run/plan.ts';
import type { JournalFile } from '../journal/journal-file.ts';
import type { Migrations } from '../migrations/migrations.ts';
import type { ImageStamps } from '../volumes/image-stamp-files.ts';
import type { Machines } from './machines.ts';

/** For whom steps are done. */
export interface StepTarget {
  readonly vm: string;
  readonly podUID: string;
  readonly guest: VirtualMachineInstance | undefined;
  /** Where its machine may be started. */
  readonly spec: MachineSpec | undefined;
  /** What else is to be said of the guest together with a new record, by what is durable then. */
  readonly statusBeside: (guest: VirtualMachineInstance, record: RightToRun) => Partial<VirtualMachineInstanceStatus>;
  /** Whether the API server is left alone: somebody else writes records, later. */
  readonly isOffline: boolean;
}

/** Told of a guest as it was before a write, and as the server answered it. */
export type OnGuestWritten = (podUID: string, before: VirtualMachineInstance, after: VirtualMachineInstance) => void;

export interface StepsOptions {
  readonly client: Client;
  readonly journal: JournalFile;
  readonly machines: Machines;
  readonly migrations: Pick<Migrations, 'cancel' | 'noteContinued' | 'send'>;
  /** Where absent, no image is of a claim. */
  readonly stamps: ImageStamps | undefined;
  /** Removes what a machine that is gone had to itself. */
  readonly discard: (podUID: string) => Promise<void>;
  readonly onWritten: OnGuestWritten;
}

/** Does what the protocol of the right to run asks for, one step after the other. */
export class Steps {
  readonly #options: StepsOptions;

  constructor(options: StepsOptions) {
    this.#options = options;
  }

  /** Does them all in this order; rejects at the first that fails, and the rest is dropped. Answers the guest as it is then. */
  async run(
    steps: readonly Step[],
    target: StepTarget,
    signal: AbortSignal,
  ): Promise<VirtualMachineInstance | undefined> {
    let { guest } = target;
    for (const [index, step] of steps.entries()) {
      if (step.kind === 'record' && target.isOffline) {
        // Whatever rests on the record waits for it. What is said to others never does.
        if (!steps.slice(index + 1).every(({ kind }) => kind === 'send')) return guest;
        continue;
      }
      guest = await this.#do(step, { ...target, guest }, signal);
    }
    return guest;
  }

  async #do(step: Step, target: StepTarget, signal: AbortSignal): Promise<VirtualMachineInstance | undefined> {
    const { journal, migrations, discard } = this.#options;
    const { guest, podUID, vm } = target;
    switch (step.kind) {
      case 'journal':
        await journal.append({ vm, podUID, entry: step.entry });
        return guest;
      case 'record':
        if (!guest) throw new Error('the guest is gone, and its record with it');
        return this.patch(
          podUID,
          guest,
          { ...target.statusBeside(guest, step.to), ...placed(podUID, step.to) },
          signal,
        );
      case 'machine':
        await this.#command(step.command, target);
        return guest;
      case 'send':
        await migrations.send(podUID, guest, step.message);
        return guest;
      case 'discard-images':
        await discard(podUID);
        for (const image of step.attempt.images ?? [])
          await this.#options.stamps?.discard(image, step.attempt.targetMigrationUID);
        return guest;
      case 'stamp':
        // Together: the guest may stand still meanwhile.
        await Promise.all(step.stamps.map((stamp) => this.#stamp(stamp, target)));
        return guest;
      default:
        return unreachable(step);
    }
  }

  /** Writes these fields of a guest's status, unless it has changed; answers it as it is then. */
  async patch(
    podUID: string,
    guest: VirtualMachineInstance,
    fields: Partial<VirtualMachineInstanceStatus>,
    signal: AbortSignal,
  ): Promise<VirtualMachineInstance> {
    const body = statusPatch(guest, fields);
    if (!body) return guest;
    const { namespace = '', name = '' } = guest.metadata;
    const patch = { type: 'merge', body } as const;
    const options = { subresource: 'status' };
    const { client, onWritten } = this.#options;
    const next = await client.patch(virtualMachineInstances, namespace, name, patch, signal, options);
    onWritten(podUID, guest, next);
    return next;
  }

  async #stamp({ image, ...stamp }: NewStamp, { vm, guest }: StepTarget): Promise<void> {
    const { stamps } = this.#options;
    if (!stamps) throw new Error('an image is to be stamped, and nothing here knows how');
    const { namespace = '', name = '' } = guest?.metadata ?? {};
    const words = stamp.state === 'stale' && image.wentTo !== undefined ? { wentTo: image.wentTo } : {};
    await stamps.write(image, { ...stamp, vm, guest: `${namespace}/${name}`, ...words });
  }

  async #command(command: MachineCommand, { podUID, spec }: StepTarget): Promise<void> {
    const { machines, migrations } = this.#options;
    switch (command) {
      case 'start':
      case 'start-incoming':
        if (!spec) throw new Error('nobody has said what the machine is like');
        return machines.start(podUID, spec);
      case 'continue':
        await this.#machine(podUID).continue();
        return migrations.noteContinued(podUID);
      case 'hold':
        return this.#machine(podUID).hold();
      case 'kill':
        await machines.get(podUID)?.kill();
        return;
      case 'close-exports':
        return this.#machine(podUID).migration.closeDisks();
      case 'cancel-migration':
        return migrations.cancel(podUID);
      default:
        return unreachable(command);
    }
  }

  #machine(podUID: string): Machine {
    const machine = this.#options.machines.get(podUID);
    if (!machine) throw new Error('the machine is gone');
    return machine;
  }
}

/** The record, and with it where the guest is: whoever reads that a move is over reads where it has led. */
function placed(podUID: string, rightToRun: RightToRun): Pick<VirtualMachineInstanceStatus, 'rightToRun' | 'nodeName'> {
  const { holder } = rightToRun;
  return holder?.podUID === podUID && !isAway(rightToRun) ? { rightToRun, nodeName: holder.node } : { rightToRun };
}
