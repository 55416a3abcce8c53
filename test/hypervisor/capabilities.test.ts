import { expect, it } from 'vitest';
import { realProcesses } from '../../src/env/real-processes.ts';
import { queryCapabilities } from '../../src/hypervisor/qemu/capabilities.ts';

it('QEMU says what guests can be given', async () => {
  const found = await queryCapabilities(realProcesses, 'qemu-system-x86_64', 'tcg');
  expect(found.version).toMatch(/^\d+\.\d+\.\d+$/);
  expect(found.cpuModels).toEqual(expect.arrayContaining(['qemu64', 'Nehalem']));
  expect(found.cpuFeatures).toEqual(expect.arrayContaining(['sse4.1', 'cx16']));
  expect(found.machineTypes).toEqual(expect.arrayContaining(['q35', 'pc', 'microvm']));
  expect(found.hostModel?.name).toBeTruthy();
});
