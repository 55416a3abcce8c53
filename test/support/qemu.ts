import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Processes } from '../../src/env/ports.ts';
import { realConnector } from '../../src/env/real-connector.ts';
import { realFiles } from '../../src/env/real-files.ts';
import { realProcesses } from '../../src/env/real-processes.ts';
import { realClock } from '../../src/env/real.ts';
import { silentLogger } from '../../src/env/test.ts';
import type { MachineRun } from '../../src/hypervisor/hypervisor.ts';
import type { DiskSpec, MachineSpec } from '../../src/hypervisor/machine.ts';
import { QemuHypervisor, qemuVersion } from '../../src/hypervisor/qemu/qemu-hypervisor.ts';
import type { QemuVersion } from '../../src/hypervisor/qemu/qmp-message.ts';
import { LINUX_ARGUMENTS, type LinuxGuest, linuxGuest, probeGuest } from './guests.ts';
import { install } from './install.ts';
import { passageDirectory } from './passage.ts';

/** The real QEMU: the one on the PATH (or in GODWIT_QEMU), else Debian's package, installed on the way. */
export const PROGRAM = process.env['GODWIT_QEMU'] ?? 'qemu-system-x86_64';

/** Whom QEMU runs as where tests run as root: a number that is nobody's. */
export const UNPRIVILEGED = process.getuid?.() === 0 ? { uid: 64_801, gid: 64_801 } : undefined;

function has(command: string): boolean {
  return spawnSync(command, ['--version'], { stdio: 'ignore' }).status === 0;
}

/** Sees to it that there is such a command. */
function need(command: string, ...packages: readonly string[]): void {
  install(command, packages, () => has(command));
  if (!has(command)) throw new Error(`there is no ${command}: install ${packages.join(' ')}`);
}

/** A hypervisor, the probe guest and a place for their files. */
export class Workbench {
  readonly directory: string;
  readonly version: QemuVersion;
  readonly hypervisor: QemuHypervisor;
  #names = 0;
  #linux: LinuxGuest | undefined;

  private constructor(directory: string, version: QemuVersion) {
    this.directory = directory;
    this.version = version;
    this.hypervisor = Workbench.hypervisor(version);
  }

  static async open(): Promise<Workbench> {
    need(PROGRAM, 'qemu-system-x86');
    const directory = passageDirectory();
    probeGuest(directory);
    return new Workbench(directory, await qemuVersion(realProcesses, PROGRAM));
  }

  /** A hypervisor that knows nothing of what others have started. */
  static hypervisor(
    version: QemuVersion,
    connector = realConnector,
    program = PROGRAM,
    processes: Processes = realProcesses,
  ): QemuHypervisor {
    return new QemuHypervisor({
      env: { clock: realClock, log: silentLogger },
      connector,
      processes,
      hostFiles: realFiles,
      program,
      version,
      user: UNPRIVILEGED,
    });
  }

  /** A run that nobody has had. */
  newRun(): MachineRun {
    const instance = `t${process.pid}-${this.#names++}`;
    return { directory: join(this.directory, instance), instance };
  }

  /** A machine with the probe in it. */
  spec(options: { machineType?: string; memoryMiB?: number; commandLine?: string; disk?: string } = {}): MachineSpec {
    const { machineType = 'microvm', memoryMiB = 32, commandLine = 'mib=8 tick=20', disk } = options;
    return {
      name: `test/probe-${this.#names}`,
      uuid: '6f1c2d3e-0000-4000-8000-000000000001',
      machineType,
      accelerator: 'tcg',
      cpu: { model: 'qemu64', features: [{ name: 'rdrand', isEnabled: true }], sockets: 1, cores: 1, threads: 1 },
      memoryBytes: memoryMiB * 1024 * 1024,
      kernel: { path: join(this.directory, 'probe.elf'), commandLine },
      ...(disk === undefined ? {} : { disks: [this.#disk(disk, machineType)] }),
    };
  }

  /** A machine with the Linux guest in it. */
  linux(
    options: { machineType?: string; commandLine?: string; disks?: readonly string[]; forward?: number } = {},
  ): MachineSpec {
    const { machineType = 'pc-q35-7.2', commandLine = 'tick=50', disks = [], forward } = options;
    this.#linux ??= linuxGuest(this.directory);
    const { kernel, initrd } = this.#linux;
    const forwards = [{ protocol: 'tcp' as const, hostAddress: '127.0.0.1', hostPort: forward ?? 0, guestPort: 80 }];
    return {
      ...this.spec({ machineType, memoryMiB: 96 }),
      kernel: { path: kernel, initrdPath: initrd, commandLine: `${LINUX_ARGUMENTS} ${commandLine}` },
      disks: disks.map((path, index) => {
        return {
          place: { bus: 'virtio', at: 8 + index },
          path,
          format: 'raw',
          cache: 'writeback',
          serial: `d${index}`,
        };
      }),
      networks: [
        {
          place: { bus: 'virtio', at: 4 },
          mac: '52:54:00:00:00:01',
          backend: { kind: 'user', forwards: forward === undefined ? [] : forwards },
        },
      ],
    };
  }

  /** An empty disk that QEMU may write to. */
  newDisk(mebibytes = 4): string {
    const directory = join(this.directory, `disks-${this.#names++}`);
    mkdirSync(directory);
    chmodSync(directory, 0o777);
    const path = join(directory, 'disk.raw');
    writeFileSync(path, '');
    truncateSync(path, mebibytes * 1024 * 1024);
    chmodSync(path, 0o666);
    return path;
  }

  close(): void {
    rmSync(this.directory, { recursive: true, force: true });
  }

  #disk(path: string, machineType: string): DiskSpec {
    const place =
      machineType === 'microvm' ? { bus: 'virtio-mmio' as const, at: 0 } : { bus: 'virtio' as const, at: 4 };
    return { place, path, format: 'raw', cache: 'writeback' };
  }
}
