import { describe, expect, it } from 'vitest';
import { HypervisorError } from '../hypervisor.ts';
import { QemuMemory } from './qemu-memory.ts';

const UNIT = 128 * 2 ** 20;
const OLD = { major: 7, minor: 2, micro: 22 };
const NEW = { major: 10, minor: 0, micro: 2 };

/** A machine into which so many pieces were plugged. */
function machineWith(count: number, { version = OLD, hasKvm = false, isMade = false } = {}) {
  const done: string[] = [];
  const answers: Record<string, unknown> = {
    'query-memory-devices': [...Array.from({ length: count }, () => ({ type: 'dimm' })), { type: 'nvdimm' }],
    'query-memory-size-summary': { 'base-memory': 1, 'plugged-memory': count * UNIT },
    'query-kvm': { present: true, enabled: hasKvm },
  };
  const memory = new QemuMemory(
    async (name, args) => {
      if (name in answers) return answers[name];
      done.push(`${name} ${String(args?.['id'])}`);
      if (isMade && name === 'object-add')
        throw new HypervisorError('Refused', "attempt to add duplicate property 'a' to object (type 'container')");
      return {};
    },
    () => version,
  );
  return { memory, done };
}

describe('memory that is plugged into QEMU', () => {
  it('comes in pieces, each after the one before', async () => {
    const { memory, done } = machineWith(1);
    await memory.plug(3, UNIT);
    expect(done).toEqual([
      'object-add plugged-memory-1',
      'device_add plugged-dimm-1',
      'object-add plugged-memory-2',
      'device_add plugged-dimm-2',
    ]);
    expect(await memory.plugged()).toBe(1);
    expect(await memory.pluggedBytes()).toBe(UNIT);
  });

  it('is left alone where there is enough', async () => {
    const { memory, done } = machineWith(2);
    await memory.plug(2, UNIT);
    expect(done).toEqual([]);
  });

  it('is plugged in where somebody had only made it', async () => {
    const { memory, done } = machineWith(0, { isMade: true });
    await memory.plug(1, UNIT);
    expect(done).toEqual(['object-add plugged-memory-0', 'device_add plugged-dimm-0']);
  });

  it.each([
    ['where there is none', 0, {}, true],
    ['but not where an old QEMU translates', 1, {}, false],
    ['where it does not', 1, { hasKvm: true }, true],
    ['by a new one', 1, { version: NEW }, true],
  ])('is tracked %s', async (_what, count, making, expected) => {
    expect(await machineWith(count, making).memory.isTracked()).toBe(expected);
  });
});
