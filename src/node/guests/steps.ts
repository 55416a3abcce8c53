import type {
  VirtualMachineInstance,
  VirtualMachineInstanceStatus,
} from '../../api/kubevirt/virtual-machine-instance.ts';
import { unreachable } from '../../api/unreachable.ts';
import type { MachineSpec } from '../../hypervisor/machine.ts';
import type { Client } from '../../kube/client.ts';
import { virtualMachineInstances } from '../../kube/kubevirt-resources.ts';
import { statusPatch } from '../../kube/status-patch.ts';
import type { MachineCommand, Step } from '../../migration/right-to-run/plan.ts';
import type { JournalFile } from '../journal/journal-file.ts';
import type { Machines } from './machines.ts';

/** For whom steps are done. */
export interface StepTarget {
  readonly vm: string;
  readonly podUID: string;
  readonly guest: VirtualMachineInstance | undefined;
  /** Where its machine may be started. */
  readonly spec: MachineSpec | undefined;
  /** What else is to be said of the guest together with a new record, by what is durable then. */
  readonly statusBeside: (guest: VirtualMachineInstance) => Partial<VirtualMachineInstanceStatus>;
}

/** Told of a guest as it was before a write, and as the server answered it. */
export type OnGuestWritten = (podUID: string, before: VirtualMachineInstance, after: VirtualMachineInstance) => void;

/** Does what the protocol of the right to run asks for, one step after the other. */
export class Steps {
  readonly #client: Client;
  readonly #journal: JournalFile;
  readonly #machines: Machines;
  readonly #onWritten: OnGuestWritten;

  constructor(options: {
    readonly client: Client;
    readonly journal: JournalFile;
    readonly machines: Machines;
    readonly onWritten: OnGuestWritten;
  }) {
    this.#client = options.client;
    this.#journal = options.journal;
    this.#machines = options.machines;
    this.#onWritten = options.onWritten;
  }

  /** Does them all in this order; rejects at the first that fails, and the rest is dropped. Answers the guest as it is then. */
  async run(
    steps: readonly Step[],
    target: StepTarget,
    signal: AbortSignal,
  ): Promise<VirtualMachineInstance | undefined> {
    let { guest } = target;
    for (const step of steps) {
      switch (step.kind) {
        case 'journal':
          await this.#journal.append({ vm: target.vm, podUID: target.podUID, entry: step.entry });
          break;
        case 'record':
          if (!guest) throw new Error('the guest is gone, and its record with it');
          guest = await this.patch(
            target.podUID,
            guest,
            { ...target.statusBeside(guest), rightToRun: step.to },
            signal,
          );
          break;
        case 'machine':
          await this.#command(step.command, target);
          break;
        case 'stamp':
        case 'discard-images':
        case 'send':
          throw new Error(`${step.kind}: nothing here ever moved`);
        default:
          unreachable(step);
      }
    }
    return guest;
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
    const next = await this.#client.patch(virtualMachineInstances, namespace, name, patch, signal, options);
    this.#onWritten(podUID, guest, next);
    return next;
  }

  async #command(command: MachineCommand, { podUID, spec }: StepTarget): Promise<void> {
    if (command === 'start') {
      if (!spec) throw new Error('nobody has said what the machine is like');
      return this.#machines.start(podUID, spec);
    }
    const machine = this.#machines.get(podUID);
    switch (command) {
      case 'continue':
        if (!machine) throw new Error('the machine is gone');
        return machine.continue();
      case 'kill':
        await machine?.kill();
        return;
      case 'close-exports':
      case 'cancel-migration':
        // Nothing was exported, and no copy is under way.
        return;
      case 'start-incoming':
        throw new Error('this agent receives no guests');
      default:
        return unreachable(command);
    }
  }
}
