import { errorMessage } from '../../api/error-message.ts';
import type { Clock, HostFiles, Timer, UserIdentity } from '../../env/ports.ts';
import type { Hypervisor, Machine, MachineRun } from '../hypervisor.ts';
import type { Accelerator } from '../machine.ts';
import { BOOT_WORD, bootImage } from './boot-sector.ts';

/**
 * Whether KVM works, found out by using it. That `/dev/kvm` can be opened, and even that it makes processors, proves
 * nothing: there are hosts where every guest dies a moment later. So a guest is run that does what systems do when they
 * boot, and KVM is trusted when a word comes out of its serial port.
 */

/** Far more than a guest needs where it runs at all; without KVM it takes half a second. */
const TIMEOUT_MS = 10_000;
/** Far more than it takes to end a machine, also one that has to be called in vain before. */
const END_TIMEOUT_MS = 45_000;

export interface ProbeOptions {
  readonly clock: Clock;
  readonly hypervisor: Hypervisor;
  readonly hostFiles: HostFiles;
  /** Whom the hypervisor runs guests as: it is they who must be able to use KVM. */
  readonly user: UserIdentity | undefined;
  /** Always the same for one agent, and nobody else's: so one is found again whose agent was killed. */
  readonly run: MachineRun;
  /** A versioned machine type with a SATA controller. */
  readonly machineType: string;
}

/** What is to be used, and why nothing better. */
export interface AcceleratorVerdict {
  readonly accelerator: Accelerator;
  readonly reason: string;
}

/** Finds out which accelerator guests can run on here; never rejects. */
export async function probeAccelerator(options: ProbeOptions): Promise<AcceleratorVerdict> {
  const problem = await problemWith('kvm', options);
  return problem === undefined
    ? { accelerator: 'kvm', reason: 'a guest ran on KVM' }
    : { accelerator: 'tcg', reason: `KVM does not work: ${problem}` };
}

/** Runs a guest on the accelerator. Answers what went wrong, or undefined when it ran. */
export async function problemWith(accelerator: Accelerator, options: ProbeOptions): Promise<string | undefined> {
  const { hostFiles, hypervisor, user, run, machineType } = options;
  const path = `${run.directory}/boot.img`;
  let machine: Machine | undefined;
  try {
    // It has the directory, and what it does on KVM may be why it does not end: nothing is started beside it.
    await endFormer(options);
    await hostFiles.makePrivateDirectory(run.directory, user);
    await hostFiles.writePrivate(path, bootImage(), user);
    machine = await hypervisor.start(
      {
        name: `probe of ${accelerator}`,
        uuid: '00000000-0000-4000-8000-000000000000',
        machineType,
        accelerator,
        cpu: { model: 'qemu64', sockets: 1, cores: 1, threads: 1 },
        memoryBytes: 32 * 1024 * 1024,
        disks: [{ place: { bus: 'sata', at: 0 }, path, format: 'raw', cache: 'writeback', bootOrder: 1 }],
      },
      run,
    );
    return await problemOf(machine, options.clock);
  } catch (error) {
    return errorMessage(error);
  } finally {
    // One that does not end is found by the next probe.
    const started = machine;
    if (started) await endInTime(options.clock, () => Promise.resolve(started)).catch(() => undefined);
  }
}

/** Ends the machine of a former probe whose agent was killed. Rejects where that cannot be done in time. */
async function endFormer({ clock, hypervisor, run }: ProbeOptions): Promise<void> {
  try {
    await endInTime(clock, () => hypervisor.adopt(run));
  } catch (error) {
    throw new Error(`the machine of a former probe could not be ended: ${errorMessage(error)}`, { cause: error });
  }
}

/** Ends the machine that is found, if any. Lets go of one that goes on: called for ever, it would be in the log for ever. */
async function endInTime(clock: Clock, find: () => Promise<Machine | undefined>): Promise<void> {
  let machine: Machine | undefined;
  let isLetGo = false;
  let timer: Timer | undefined;
  const late = new Promise<never>((_, reject) => {
    const error = new Error(`it goes on after ${END_TIMEOUT_MS / 1000} s`);
    timer = clock.setTimer(() => reject(error), END_TIMEOUT_MS);
  });
  const end = async (): Promise<void> => {
    machine = await find();
    if (isLetGo) machine?.detach();
    else await machine?.kill();
  };
  try {
    await Promise.race([end(), late]);
  } catch (error) {
    isLetGo = true;
    machine?.detach();
    throw error;
  } finally {
    timer?.cancel();
  }
}

/** Lets the machine run until it has spoken, or cannot any more. */
async function problemOf(machine: Machine, clock: Clock): Promise<string | undefined> {
  let verdict: (problem: string | undefined) => void = () => undefined;
  const decided = new Promise<string | undefined>((resolve) => (verdict = resolve));
  const timer = clock.setTimer(() => verdict(`the guest said nothing for ${TIMEOUT_MS / 1000} s`), TIMEOUT_MS);
  // A processor that fails stops the machine.
  const forget = machine.onEvent(({ kind }) => {
    if (kind === 'stopped') verdict('the processor of the guest failed');
  });
  void machine.ended.then(({ message }) => verdict(message));
  let heard = '';
  const console = await machine.openConsole({
    data: (bytes) => {
      // The firmware may speak before; only the end matters, and that nothing grows without bounds.
      heard = (heard + Buffer.from(bytes).toString('latin1')).slice(-1024);
      if (heard.includes(BOOT_WORD)) verdict(undefined);
    },
    closed: () => undefined,
  });
  try {
    await machine.continue();
    return await decided;
  } finally {
    timer.cancel();
    forget();
    console.close();
  }
}
