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

/** Ends machines whose migration it was told to cancel. */
export function endingAtCancel(inner: Hypervisor): Hypervisor {
  return {
    start: async (spec, run) => frail(await inner.start(spec, run)),
    adopt: async (run) => {
      const machine = await inner.adopt(run);
      return machine && frail(machine);
    },
  };
}

function frail(machine: Machine): Machine {
  const { migration } = machine;
  const cancel = async (): Promise<void> => {
    await migration.cancel();
    await machine.kill();
  };
  return changed(
    machine,
    new Map<string | symbol, unknown>([['migration', changed(migration, new Map([['cancel', cancel]]))]]),
  );
}

function immortal(machine: Machine): Machine {
  const end: MachineEnd = { reason: 'Quit', message: 'the model of a machine says that it quit, and goes on', log: [] };
  let pretend: (end: MachineEnd) => void = () => undefined;
  const pretended = new Promise<MachineEnd>((resolve) => (pretend = resolve));
  const over = (): Promise<MachineEnd> => {
    pretend(end);
    return Promise.resolve(end);
  };
  const pretences = new Map<string | symbol, unknown>([
    ['ended', Promise.race([machine.ended, pretended])],
    ['powerDown', () => Promise.resolve()],
    ['quit', over],
    ['kill', over],
  ]);
  return changed(machine, pretences);
}

/** The same, but for some of what it has. */
function changed<T extends object>(object: T, members: ReadonlyMap<string | symbol, unknown>): T {
  return new Proxy(object, {
    get(target, name) {
      if (members.has(name)) return members.get(name);
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}
