import { effectiveRunStrategy } from '../../api/kubevirt/run-strategy.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { VirtualMachine } from '../../api/kubevirt/virtual-machine.ts';
import { controllerOf } from '../../kube/owner.ts';
import { keyOf } from '../../kube/resource.ts';
import { VMIS, VMS } from '../buckets.ts';
import type { Invariant, ObservedMachine, Unsettled } from '../invariant.ts';
import type { State } from '../observer.ts';

/**
 * In the end a virtual machine that is to run runs, one that is not does not, and whatever is executed is executed by
 * the one whom the record of the right to run names. No machine is left that nobody knows of.
 */
export function machinesSettle(): Invariant {
  return {
    name: 'machines-settle',
    unsettled({ state, machines }) {
      const alive = machines.filter(({ isAlive }) => isAlive);
      return [
        ...[...vms(state)].flatMap((machine) => complaint(keyOf(machine), aboutMachine(machine, state))),
        ...[...vmis(state)].flatMap((guest) => complaint(keyOf(guest), aboutGuest(guest, alive))),
        ...alive.flatMap((machine) => complaint(machine.guest, aboutModel(machine, state))),
      ];
    },
  };
}

const vms = (state: State): Iterable<VirtualMachine> => state.list(VMS) as Iterable<VirtualMachine>;
const vmis = (state: State): Iterable<VirtualMachineInstance> => state.list(VMIS) as Iterable<VirtualMachineInstance>;

function complaint(key: string, what: string | undefined): Unsettled[] {
  return what === undefined ? [] : [{ key, what }];
}

function aboutMachine(machine: VirtualMachine, state: State): string | undefined {
  const strategy = effectiveRunStrategy(machine.spec);
  const guest = state.get(VMIS, keyOf(machine)) as VirtualMachineInstance | undefined;
  // Who was left behind by another machine of this name is in the way, and stays.
  if (guest && controllerOf(guest)?.uid !== machine.metadata.uid) return undefined;
  const phase = guest?.status?.phase ?? 'no guest';
  if (strategy === 'Always' && phase !== 'Running') return `is to run always, and has ${phase}`;
  if (strategy === 'Halted' && guest) return `is to be halted, and has a guest in phase ${phase}`;
  return undefined;
}

function aboutGuest(guest: VirtualMachineInstance, alive: readonly ObservedMachine[]): string | undefined {
  const { phase = '', rightToRun } = guest.status ?? {};
  const holder = rightToRun?.holder?.podUID;
  if (phase === 'Succeeded' || phase === 'Failed') return holder === undefined ? undefined : `is ${phase}, and held`;
  const isExecuted = alive.some(({ podUID, isExecuting }) => isExecuting && podUID === holder);
  if (phase === 'Running' && isExecuted) return undefined;
  return `is ${phase === '' ? 'in no phase' : phase}, held by ${holder ?? 'nobody'}, ${isExecuted ? '' : 'not '}executed`;
}

function aboutModel({ guest, node, podUID }: ObservedMachine, state: State): string | undefined {
  const holder = (state.get(VMIS, guest) as VirtualMachineInstance | undefined)?.status?.rightToRun?.holder?.podUID;
  return holder === podUID ? undefined : `has a machine left on ${node} for pod ${podUID}, of which nobody knows`;
}
