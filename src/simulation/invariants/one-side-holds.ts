import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import { isAway } from '../../api/kubevirt/right-to-run-transition.ts';
import type { InvariantAcross, ObservedMachine, Scene, Unsettled } from '../invariant.ts';
import { guestsOf } from '../moves.ts';

/**
 * In the end every guest that is anywhere is in one machine, and one object, of all that it ever was, says that it holds it;
 * and nobody waits any more to hear whether a guest has arrived.
 */
export function oneSideHolds(): InvariantAcross {
  return {
    name: 'one-side-holds',
    unsettledAcross(scenes) {
      const machines = scenes.flatMap((scene) => scene.machines);
      const holders = scenes.flatMap((scene) => holdersIn(scene));
      const boots = new Set(machines.filter(({ isAlive }) => isAlive).map(({ bootId }) => bootId));
      return [...scenes.flatMap(aboutReserved), ...[...boots].flatMap((boot) => aboutBoot(boot, machines, holders))];
    },
  };
}

interface Holder {
  readonly key: string;
  readonly podUID: string;
}

function holdersIn({ state }: Scene): readonly Holder[] {
  return guestsOf(state).flatMap((guest) => {
    const record = guest.status?.rightToRun;
    return record?.holder && !isAway(record) ? [{ key: keyOfGuest(guest), podUID: record.holder.podUID }] : [];
  });
}

function aboutReserved({ state }: Scene): readonly Unsettled[] {
  return guestsOf(state)
    .filter(({ status }) => status?.rightToRun?.across === true && status.rightToRun.successor !== undefined)
    .map((guest) => ({ key: keyOfGuest(guest), what: 'does not know whether its guest has gone' }));
}

function aboutBoot(boot: string, all: readonly ObservedMachine[], holders: readonly Holder[]): readonly Unsettled[] {
  const machines = all.filter(({ bootId }) => bootId === boot);
  const alive = machines.filter(({ isAlive }) => isAlive);
  const key = alive[0]?.guest ?? boot;
  if (alive.length > 1) return [{ key, what: `is in ${alive.length} machines` }];
  const held = holders.filter(({ podUID }) => machines.some((machine) => machine.podUID === podUID));
  if (held.length > 1) return [{ key, what: `is held by ${held.map((holder) => holder.key).join(' and by ')}` }];
  return held[0]?.podUID === alive[0]?.podUID ? [] : [{ key, what: 'is in a machine, and nobody holds it there' }];
}

function keyOfGuest({ metadata }: VirtualMachineInstance): string {
  return `${metadata.namespace}/${metadata.name}`;
}
