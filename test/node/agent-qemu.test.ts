import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { VirtualMachineInstance } from '../../src/api/kubevirt/virtual-machine-instance.ts';
import { NAMESPACE } from '../../src/control/control.fixture.ts';
import { realDiskFiles } from '../../src/env/real-disk-files.ts';
import { realDurableFile } from '../../src/env/real-durable-file.ts';
import { realProcesses } from '../../src/env/real-processes.ts';
import { virtualMachineInstances } from '../../src/kube/kubevirt-resources.ts';
import { UNPRIVILEGED, Workbench } from '../support/qemu.ts';
import { AgentScene } from './agent-scene.ts';

/** The agent on a real disk and real QEMUs, with the controllers in this process. */

class QemuScene extends AgentScene {
  readonly #bench: Workbench;

  constructor(bench: Workbench) {
    super();
    this.#bench = bench;
  }

  override ports(): ReturnType<AgentScene['ports']> {
    const directory = join(this.#bench.directory, 'node-a');
    return {
      hypervisor: Workbench.hypervisor(this.#bench.version),
      specOf: () => this.#bench.spec(),
      journal: realDurableFile(join(directory, 'journal')),
      files: realDiskFiles,
      directory,
      ...(UNPRIVILEGED ? { user: UNPRIVILEGED } : {}),
    };
  }

  /** Waits in real time, in which the clock of controllers and agent goes on too. */
  override async until<T>(check: () => T | Promise<T>): Promise<T> {
    for (let tries = 1; ; tries++) {
      await this.pass(20, 20);
      await new Promise((resolve) => setTimeout(resolve, 20));
      try {
        return await check();
      } catch (error) {
        if (tries === 1000) throw error;
      }
    }
  }
}

let bench: Workbench;
let scene: QemuScene;
beforeAll(async () => {
  bench = await Workbench.open();
  await realDiskFiles.makeDirectory(join(bench.directory, 'node-a'), { mode: 0o711 });
  scene = new QemuScene(bench);
  await scene.start();
}, 120_000);
afterAll(async () => {
  await scene.stop();
  for (const instance of instances) {
    const left = await realProcesses.findByArgument(`null,id=instance-${instance}`);
    if (left) await realProcesses.kill(left, 'SIGKILL');
  }
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

const pidOf = async (instance: string): Promise<number | undefined> =>
  (await realProcesses.findByArgument(`null,id=instance-${instance}`))?.pid;

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
