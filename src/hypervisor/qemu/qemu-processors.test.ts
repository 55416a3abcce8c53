import { describe, expect, it } from 'vitest';
import { QemuProcessors } from './qemu-processors.ts';

/** A machine with so many processors, and room for four, of which QEMU tells in no particular order. */
function machineWith(count: number): { processors: QemuProcessors; added: object[] } {
  const added: object[] = [];
  const places = [3, 0, 2, 1].map((socket) => ({
    type: 'qemu64-x86_64-cpu',
    props: { 'socket-id': socket, 'core-id': 0, 'thread-id': 0 },
    ...(socket < count ? { 'qom-path': `/machine/unattached/device[${socket}]` } : {}),
  }));
  const answers: Record<string, unknown> = {
    'query-cpus-fast': Array.from({ length: count }, () => ({})),
    'query-hotpluggable-cpus': places,
  };
  const processors = new QemuProcessors(async (name, args) => {
    if (name === 'device_add') added.push(args ?? {});
    return answers[name];
  });
  return { processors, added };
}

describe('processors of QEMU', () => {
  it('are plugged in in order', async () => {
    const { processors, added } = machineWith(1);
    expect(await processors.count()).toBe(1);
    await processors.plug(3);
    expect(added).toEqual([
      { driver: 'qemu64-x86_64-cpu', id: 'processor-1-0-0', 'socket-id': 1, 'core-id': 0, 'thread-id': 0 },
      { driver: 'qemu64-x86_64-cpu', id: 'processor-2-0-0', 'socket-id': 2, 'core-id': 0, 'thread-id': 0 },
    ]);
  });

  it('are left alone where there are enough', async () => {
    const { processors, added } = machineWith(3);
    await processors.plug(3);
    await processors.plug(2);
    expect(added).toEqual([]);
  });

  it('are not begun with where there is no room for all', async () => {
    const { processors, added } = machineWith(3);
    await expect(processors.plug(5)).rejects.toThrow('the machine has room for 1 more processors, not for 2');
    expect(added).toEqual([]);
  });
});
