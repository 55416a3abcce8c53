import { errorMessage } from '../../api/error-message.ts';
import type { ChildProcess, Connector, Env, HostFiles, Processes, UserIdentity } from '../../env/ports.ts';
import { type Hypervisor, HypervisorError, type MachineRun } from '../hypervisor.ts';
import { type MachineSpec, MachineSpecError } from '../machine.ts';
import { commandLine, instanceArgument } from './command-line.ts';
import { diskInUse } from './disk-in-use.ts';
import { withNearbyPaths } from './nearby-paths.ts';
import { QemuMachine, type QemuMachineOptions } from './qemu-machine.ts';
import type { QemuVersion } from './qmp-message.ts';
import { checkRamBytes } from './ram-size.ts';
import { type RunFiles, runFiles } from './run-files.ts';

/** How much of QEMU's log is told when it does not start. */
const LOG_BYTES = 2048;

export interface QemuOptions {
  readonly env: Pick<Env, 'clock' | 'log'>;
  readonly connector: Connector;
  readonly processes: Processes;
  readonly hostFiles: HostFiles;
  /** The program, such as `qemu-system-x86_64`. */
  readonly program: string;
  readonly version: QemuVersion;
  /** Whom QEMU runs as, if not as this process: never root. */
  readonly user: UserIdentity | undefined;
}

/** The version of a QEMU program. Rejects where there is none. */
export async function qemuVersion(processes: Processes, program: string): Promise<QemuVersion> {
  const text = await processes.run(program, ['--version']);
  const match = /version (\d+)\.(\d+)\.(\d+)/.exec(text);
  if (!match) throw new HypervisorError('StartFailed', `${program} does not tell its version: ${text.slice(0, 100)}`);
  return { major: Number(match[1]), minor: Number(match[2]), micro: Number(match[3]) };
}

/** Runs each machine as a QEMU of its own, detached, with no more rights than it needs. */
export class QemuHypervisor implements Hypervisor {
  readonly #options: QemuOptions;

  constructor(options: QemuOptions) {
    const { user, processes } = options;
    if (user ? user.uid === 0 : processes.isRoot) throw new Error('QEMU must not run as root: name somebody else');
    this.#options = options;
  }

  async start(spec: MachineSpec, run: MachineRun): Promise<QemuMachine> {
    const { processes, hostFiles, program, version, user } = this.#options;
    const files = runFiles(run.directory);
    const nearby = withNearbyPaths(spec, files.directory);
    const { arguments: args, ramBytes } = commandLine(nearby, { version, instance: run.instance });
    let child: ChildProcess;
    try {
      await hostFiles.makePrivateDirectory(files.directory, user);
      child = await processes.spawnDetached({
        command: program,
        arguments: args,
        directory: files.directory,
        outputPath: files.log,
        user,
        mark: instanceArgument(run.instance),
      });
    } catch (error) {
      throw new HypervisorError('StartFailed', `cannot start ${program}: ${errorMessage(error)}`, error);
    }
    return this.#reachOrKill(nearby, run, files, child, (machine) =>
      // The program may have been replaced since its version was asked for.
      checkRamBytes(ramBytes, machine.version, spec.accelerator),
    );
  }

  async adopt(run: MachineRun): Promise<QemuMachine | undefined> {
    const { processes, hostFiles } = this.#options;
    const files = runFiles(run.directory);
    const pid = Number.parseInt(await hostFiles.readEnd(files.pid, 32), 10);
    const mark = instanceArgument(run.instance);
    const process = await processes.findByArgument(mark, files.directory, Number.isNaN(pid) ? undefined : pid);
    if (!process) return undefined;
    const exited = processes.watch?.(files.directory);
    return QemuMachine.adopt({ ...this.#machineOptions(run, files), process, exited });
  }

  async #reachOrKill(
    spec: MachineSpec,
    run: MachineRun,
    files: RunFiles,
    child: ChildProcess,
    check: (machine: QemuMachine) => void,
  ): Promise<QemuMachine> {
    const { processes, hostFiles } = this.#options;
    const { identity: process, exited } = child;
    try {
      // QEMU writes none where directories above are closed to it. Who does not find it looks through all processes.
      await hostFiles.writePrivate(files.pid, Buffer.from(`${process.pid}\n`), undefined);
      const machine = await QemuMachine.connect({ ...this.#machineOptions(run, files), process, exited });
      check(machine);
      return machine;
    } catch (error) {
      await processes.kill(process, 'SIGKILL');
      const { code, signal } = await exited;
      const said = (await hostFiles.readEnd(files.log, LOG_BYTES)).trim();
      const how = `${errorMessage(error)} (exit ${code ?? signal})`;
      const why = said === '' || error instanceof MachineSpecError ? how : (diskInUse(said, spec) ?? said);
      throw new HypervisorError('StartFailed', `QEMU did not start: ${why}`, error);
    }
  }

  #machineOptions(run: MachineRun, files: RunFiles): Omit<QemuMachineOptions, 'process' | 'exited'> {
    const { env, connector, processes, hostFiles } = this.#options;
    const log = env.log.child({ instance: run.instance });
    return { clock: env.clock, log, connector, processes, hostFiles, run, files };
  }
}
