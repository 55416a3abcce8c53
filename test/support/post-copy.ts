import { spawnSync } from 'node:child_process';
import { chmodSync, copyFileSync, mkdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { install } from './install.ts';
import { passageDirectory } from './passage.ts';
import { PROGRAM, UNPRIVILEGED } from './qemu.ts';

/** Whether any program of this host may be asked by its guest for pages that are not there, as post-copy needs. */
export function hasPostCopyForAll(): boolean {
  return readFileSync('/proc/sys/vm/unprivileged_userfaultfd', 'latin1').trim() === '1';
}

/** Whether a program can be given the right to it. */
export const CAN_GIVE_POST_COPY = UNPRIVILEGED !== undefined;

/** QEMU with post-copy for all machines that this process has started, where that is possible at all. */
export class PostCopyOffer {
  readonly isPossible = hasPostCopyForAll() || CAN_GIVE_POST_COPY;
  readonly #path = process.env['PATH'];
  readonly #programs = passageDirectory();

  constructor() {
    if (!hasPostCopyForAll() && this.isPossible)
      process.env['PATH'] = `${dirname(postCopyQemu(this.#programs))}:${this.#path}`;
  }

  withdraw(): void {
    process.env['PATH'] = this.#path;
    rmSync(this.#programs, { recursive: true });
  }
}

/**
 * A QEMU that may do post-copy, which kernels let no ordinary user's programs do. A host that offers it gives this right
 * to its QEMU, or to all. Answers its path: in a directory that has nothing else, so that it can be put on a PATH.
 */
export function postCopyQemu(directory: string): string {
  const setcap = '/usr/sbin/setcap';
  install(setcap, ['libcap2-bin'], () => spawnSync(setcap, ['-h'], { stdio: 'ignore' }).error === undefined);
  // It looks for its own files in places beside the one that it was started from.
  mkdirSync(join(directory, 'usr/bin'), { recursive: true });
  for (const name of ['lib', 'share']) symlinkSync(`/usr/${name}`, join(directory, 'usr', name));
  const program = join(directory, 'usr/bin', 'qemu-system-x86_64');
  copyFileSync(spawnSync('which', [PROGRAM], { encoding: 'utf8' }).stdout.trim(), program);
  chmodSync(program, 0o755);
  const { status, stderr } = spawnSync(setcap, ['cap_sys_ptrace+ep', program], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`cannot let QEMU have post-copy: ${stderr}`);
  return program;
}
