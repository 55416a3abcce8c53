import { join } from 'node:path';
import { realDiskFiles } from '../../src/env/real-disk-files.ts';
import { realDurableFile } from '../../src/env/real-durable-file.ts';
import { realProcesses } from '../../src/env/real-processes.ts';
import { UNPRIVILEGED, Workbench } from '../support/qemu.ts';
import { AgentScene } from './agent-scene.ts';

/** The agent on a real disk and real QEMUs, with the controllers in this process. */
export class QemuScene extends AgentScene {
  /** Where the agent keeps what is its own. */
  readonly directory: string;
  readonly bench: Workbench;

  constructor(bench: Workbench) {
    super();
    this.bench = bench;
    this.directory = join(bench.directory, 'node-a');
  }

  override ports(): ReturnType<AgentScene['ports']> {
    const { bench, directory } = this;
    return {
      hypervisor: Workbench.hypervisor(bench.version),
      specOf: () => bench.spec(),
      journal: realDurableFile(join(directory, 'journal')),
      files: realDiskFiles,
      directory,
      ...(UNPRIVILEGED ? { user: UNPRIVILEGED } : {}),
    };
  }

  override async start(): Promise<void> {
    await realDiskFiles.makeDirectory(this.directory, { mode: 0o711 });
    await super.start();
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

/** The number of the QEMU of a pod, in its directory where others may show its mark. */
export async function pidOf(podUID: string, directory?: string): Promise<number | undefined> {
  return (await realProcesses.findByArgument(`null,id=instance-${podUID}`, directory))?.pid;
}

/** Ends the QEMUs of pods that are left. */
export async function killMachines(podUIDs: readonly string[]): Promise<void> {
  for (const podUID of podUIDs) {
    const left = await realProcesses.findByArgument(`null,id=instance-${podUID}`);
    if (left) await realProcesses.kill(left, 'SIGKILL');
  }
}
