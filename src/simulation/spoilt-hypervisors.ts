import type { Hypervisor, Machine, MachineEnd } from '../hypervisor/hypervisor.ts';

/** Hypervisors with bugs: what they say of machines is not so. */

/** Finds no machine that another agent has started. */
export function denyingMachines(inner: Hypervisor): Hypervisor {
  return { start: (spec, run) => inner.start(spec, run), adopt: () => Promise.resolve(undefined) };
}

/** Says that machines have ended which it was told to end, and lets them go on. */
export function endingNothing(inner: Hypervisor): Hypervisor {
  return {
    start: async (spec, run) => immortal(await inner.start(spec, run)),
    adopt: async (run) => {
      const machine = await inner.adopt(run);
      return machine && immortal(machine);
    },
  };
}

function immortal(machine: Machine): Machine {
  const end: MachineEnd = { reason: 'Quit', message: 'the model of a machine says that it quit, and goes on', log: [] };
  let pretend: (end: MachineEnd) => void = () => undefined;
  const pretended = new Promise<MachineEnd>((resolve) => (pretend = resolve));
  const over = (): Promise<MachineEnd> => {
    pretend(end);
    return Promise.resolve(end);
  };
  const changed = new Map<string | symbol, unknown>([
    ['ended', Promise.race([machine.ended, pretended])],
    ['powerDown', () => Promise.resolve()],
    ['quit', over],
    ['kill', over],
  ]);
  return new Proxy(machine, {
    get(target, name) {
      if (changed.has(name)) return changed.get(name);
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}
