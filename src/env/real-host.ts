import { access, constants, readFile, statfs } from 'node:fs/promises';
import { arch, availableParallelism, hostname, networkInterfaces, platform, release, totalmem } from 'node:os';
import type { HostFacts, HostIdentity, HostUsage } from './ports.ts';

/** Go's names of architectures, where they differ from Node's. */
const ARCHITECTURES: ReadonlyMap<string, string> = new Map([
  ['x64', 'amd64'],
  ['ia32', '386'],
]);

/** The first line of a file that not every host has, or that not everybody may read. */
async function lineOf(path: string): Promise<string> {
  return (await textOf(path)).split('\n', 1)[0]?.trim() ?? '';
}

async function textOf(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch {
    // Whoever asks has to do without.
    return '';
  }
}

/** What `PRETTY_NAME` of os-release says. */
async function osImage(): Promise<string> {
  const name = /^PRETTY_NAME=(?:"([^"\n]*)"|'([^'\n]*)'|(.*))$/m.exec(await textOf('/etc/os-release'));
  return name?.[1] ?? name?.[2] ?? name?.[3] ?? platform();
}

/** What this process may use: a container may have less than its host. */
function memoryBytes(): number {
  const allowed = process.constrainedMemory();
  return allowed > 0 ? Math.min(totalmem(), allowed) : totalmem();
}

/** Addresses that work from elsewhere; link-local ones need to be told through which device. */
function addresses(): string[] {
  return Object.values(networkInterfaces())
    .flatMap((each) => each ?? [])
    .filter(({ internal, address }) => !internal && !/^(fe80:|169\.254\.)/i.test(address))
    .map(({ address }) => address);
}

async function identity(): Promise<HostIdentity> {
  return {
    operatingSystem: platform(),
    architecture: ARCHITECTURES.get(arch()) ?? arch(),
    hostname: hostname().toLowerCase(),
    osImage: await osImage(),
    kernelVersion: release(),
    machineID: await lineOf('/etc/machine-id'),
    systemUUID: await lineOf('/sys/class/dmi/id/product_uuid'),
    bootID: await lineOf('/proc/sys/kernel/random/boot_id'),
    cpus: availableParallelism(),
    memoryBytes: memoryBytes(),
    addresses: addresses(),
  };
}

async function usage(path: string): Promise<HostUsage> {
  const disk = await statfs(path);
  const availableKilobytes = /^MemAvailable:\s+(\d+) kB$/m.exec(await textOf('/proc/meminfo'))?.[1];
  // The fourth field counts threads, which is what the kernel limits.
  const running = /\/(\d+)/.exec(await lineOf('/proc/loadavg'))?.[1];
  return {
    memoryAvailableBytes: availableKilobytes === undefined ? memoryBytes() : Number(availableKilobytes) * 1024,
    disk: {
      bytes: disk.blocks * disk.bsize,
      availableBytes: disk.bavail * disk.bsize,
      inodes: disk.files,
      freeInodes: disk.ffree,
    },
    processes: { running: Number(running ?? 0), max: Number(await lineOf('/proc/sys/kernel/pid_max')) },
  };
}

/** The host that this process runs on. */
export const realHost: HostFacts = {
  identity,
  usage,
  async canOpen(path) {
    try {
      await access(path, constants.R_OK | constants.W_OK);
      return true;
    } catch {
      // Why not does not matter.
      return false;
    }
  },
};
