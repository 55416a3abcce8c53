import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { install } from './install.ts';

/** The two guests, built from their sources, and what their serial logs tell. */

/** The repository. Benchmarks have this file, too, as it was built. */
const [root = ''] = ['../..', '../../..']
  .map((way) => fileURLToPath(new URL(way, import.meta.url)))
  .filter((directory) => existsSync(join(directory, 'package.json')));
const guestDirectory = join(root, 'guest');
const built = join(root, 'dist', 'guest');
/** Several test files may want a guest at once; it is built once, and by one of them. */
const LOCK = '/tmp/godwit-test-guest.lock';

/** What makes every Linux guest start faster where it is translated, and say on its console why it does not start. */
export const LINUX_ARGUMENTS = 'console=ttyS0 quiet panic=-1 mitigations=off nokaslr no_timer_check';

/** A kernel, and what it finds first. */
export interface LinuxGuest {
  readonly kernel: string;
  readonly initrd: string;
}

function has(command: string): boolean {
  return spawnSync(command, ['--version'], { stdio: 'ignore' }).status === 0;
}

function run(what: string, command: string, args: readonly string[]): void {
  const { status, stderr, error } = spawnSync('flock', [LOCK, command, ...args], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${what} cannot be built: ${error?.message ?? stderr}`);
}

function needCompiler(): void {
  install('gcc', ['gcc', 'libc6-dev', 'binutils'], () => has('gcc') && existsSync('/usr/include/stdio.h'));
}

/** Builds into the second directory from the first, unless what is there is newer than all sources. */
const BUILD_ONCE = `
  [ -e "$2/probe.img" ] && [ -z "$(find "$1" "$1/../common" -newer "$2/probe.img")" ] && exit
  mkdir -p "$2" && "$1/build.sh" "$2"`;

/** Puts the bare-metal guest into a directory. Answers the path of its kernel. */
export function probeGuest(directory: string): string {
  needCompiler();
  const from = join(built, 'probe');
  run('the probe guest', 'sh', ['-c', BUILD_ONCE, 'sh', join(guestDirectory, 'probe'), from]);
  for (const file of ['probe.elf', 'probe.img']) copyFileSync(join(from, file), join(directory, file));
  return join(directory, 'probe.elf');
}

/** Puts the Linux guest into a directory; others than we may have to read it there. */
export function linuxGuest(directory: string): LinuxGuest {
  needCompiler();
  const from = join(built, 'linux');
  run('the Linux guest', process.execPath, [join(guestDirectory, 'linux', 'build.mjs'), '--out', from]);
  const guest = { kernel: join(directory, 'vmlinux'), initrd: join(directory, 'initramfs') };
  copyFileSync(join(from, 'vmlinux'), guest.kernel);
  copyFileSync(join(from, 'initramfs'), guest.initrd);
  return guest;
}

/** One line `guest boot=… count=… …` of a serial log. */
export interface Sign {
  readonly boot: string;
  readonly count: number;
  readonly memory: string;
  readonly disk: string;
}

/**
 * Every sign of life in a serial log, oldest first. A line that is not over is none: QEMU died, the guest left, or it is still being said.
 * Nor is one that says what no guest says: a byte of it was written once more (see `credible`).
 */
export function signsOfLife(log: string): Sign[] {
  const pattern = /^guest boot=([0-9a-f]{32}) count=(\d+) uptime=\d+\.\d memory=(ok|bad) disk=(ok|bad|none)\r?\n/gm;
  return [...log.matchAll(pattern)].map(([, boot = '', count, memory = '', disk = '']) => {
    return { boot, count: Number(count), memory, disk };
  });
}

/**
 * Those that are next to one that came just before or after them. QEMU writes a byte to its log once more when whoever
 * listens at the console was too slow to take it, which may make one number of another: such a sign stands alone. A
 * guest that runs twice does not.
 */
export function credible(signs: readonly Sign[]): Sign[] {
  const isNext = (one: Sign | undefined, other: Sign | undefined): boolean =>
    one !== undefined && other !== undefined && one.boot === other.boot && one.count + 1 === other.count;
  return signs.filter((sign, index) => isNext(signs[index - 1], sign) || isNext(sign, signs[index + 1]));
}

/**
 * Throws when a guest ran twice: across all serial logs of a virtual machine no boot id and count appear twice, since
 * a count goes up as long as the guest lives and each boot has an id of its own. Answers how many signs it saw.
 */
export function assertNeverDoubled(logs: readonly string[]): number {
  const seen = new Map<string, number>();
  let signs = 0;
  for (const [index, log] of logs.entries())
    for (const { boot, count } of credible(signsOfLife(log))) {
      const key = `boot=${boot} count=${count}`;
      const before = seen.get(key);
      if (before !== undefined) throw new Error(`a guest ran twice: ${key} is in logs ${before} and ${index}`);
      seen.set(key, index);
      signs++;
    }
  return signs;
}
