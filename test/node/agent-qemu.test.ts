import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { VirtualMachineInstance } from '../../src/api/kubevirt/virtual-machine-instance.ts';
import { NAMESPACE } from '../../src/control/control.fixture.ts';
import { virtualMachineInstances } from '../../src/kube/kubevirt-resources.ts';
import { Workbench } from '../support/qemu.ts';
import { killMachines, pidOf, QemuScene } from './qemu-scene.ts';

let bench: Workbench;
let scene: QemuScene;
beforeAll(async () => {
  bench = await Workbench.open();
  scene = new QemuScene(bench);
  await scene.start();
}, 120_000);
afterAll(async () => {
  await scene.stop();
  await killMachines(instances);
  bench.close();
});

const instances: string[] = [];

async function run(): Promise<string> {
  await scene.makeGuest();
  const { metadata } = await scene.bind();
  const { uid = '' } = metadata;
  instances.push(uid);
  await scene.phaseBecomes('Running');
  return uid;
}

async function remove(): Promise<void> {
  await scene.delete(virtualMachineInstances, 'web');
  await scene.until(async () => expect(await scene.list(virtualMachineInstances)).toEqual([]));
}

const pausedReason = ({ status }: VirtualMachineInstance): string | undefined =>
  status?.conditions?.find(({ type }) => type === 'Paused')?.reason;

describe('a guest in a real QEMU', () => {
  it('runs, outlives its agent, is held and let go on, and shuts down when it is deleted', async () => {
    const uid = await run();
    const pid = await pidOf(uid);
    expect(pid).toBeDefined();
    const [log] = (await scene.agent?.access.serialLogs(NAMESPACE, 'web')) ?? [];
    await scene.until(() => expect(readFileSync(log?.path ?? '', 'utf8')).toContain('guest boot='));
    await scene.stopAgent();
    await scene.startAgent();
    await scene.agent?.access.pause(NAMESPACE, 'web');
    await scene.until(async () => expect(pausedReason(await scene.guest())).toBe('PausedByUser'));
    await scene.agent?.access.unpause(NAMESPACE, 'web');
    await scene.until(async () => expect(pausedReason(await scene.guest())).toBeUndefined());
    await scene.agent?.access.reset(NAMESPACE, 'web');
    const boots = (): Set<string> =>
      new Set([...readFileSync(log?.path ?? '', 'utf8').matchAll(/guest boot=(\S+)/g)].map(([, boot = '']) => boot));
    await scene.until(() => expect(boots().size).toBe(2));
    expect(await pidOf(uid)).toBe(pid);
    await remove();
    expect(await pidOf(uid)).toBeUndefined();
    expect(await scene.events()).toContain('web Normal Stopped: The VirtualMachineInstance was shut down.');
  }, 120_000);
  it('whose QEMU is killed has failed, whether its agent was there or not', async () => {
    for (const isThere of [true, false]) {
      const uid = await run();
      if (!isThere) await scene.stopAgent();
      process.kill((await pidOf(uid)) ?? 0, 'SIGKILL');
      if (!isThere) {
        await scene.until(async () => expect(await pidOf(uid)).toBeUndefined());
        await scene.startAgent();
      }
      await scene.phaseBecomes('Failed');
      await remove();
    }
  }, 120_000);
});
