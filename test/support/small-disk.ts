import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmSync, statfsSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { leftOut } from './left-out.ts';
import { passageDirectory } from './passage.ts';

/** What a disk is filled by. */
const PIECE_BYTES = 2 ** 20;

/**
 * A small disk of the test's own: a tmpfs in a mount namespace that nobody else sees, so that filling it harms no one.
 * Processes are started inside with `wrap`; from outside its files are reached by `path`.
 */
export class SmallDisk {
  /** Where processes inside find it. */
  readonly directory: string;
  readonly #holder: ChildProcess;

  private constructor(directory: string, holder: ChildProcess) {
    this.directory = directory;
    this.#holder = holder;
  }

  /**
   * Undefined, and said by name, where the system does not allow such a namespace. Others than we may pass through it
   * where that is asked for, as QEMU has to.
   */
  static async make(sizeMiB: number, isPassage = false): Promise<SmallDisk | undefined> {
    const [unshare, mount] = [
      ['unshare', '--mount', ...asRoot()],
      `mount -t tmpfs -o size=${sizeMiB}m,mode=${isPassage ? '0711' : '0700'} tmpfs`,
    ];
    const directory = isPassage ? passageDirectory() : mkdtempSync(join(tmpdir(), 'godwit-test-'));
    const probe = spawnSync(unshare[0] ?? '', [...unshare.slice(1), 'sh', '-c', `${mount} ${directory}`], {
      encoding: 'utf8',
    });
    if (probe.status !== 0) {
      rmSync(directory, { recursive: true });
      leftOut(`tests on a full disk need a mount namespace (${probe.stderr?.trim() || String(probe.error)})`);
      return undefined;
    }
    const holder = spawn(
      unshare[0] ?? '',
      [...unshare.slice(1), 'sh', '-c', `${mount} ${directory} && echo ready && exec sleep infinity`],
      {
        stdio: ['ignore', 'pipe', 'ignore'],
      },
    );
    await new Promise((resolve) => holder.stdout?.once('data', resolve));
    return new SmallDisk(directory, holder);
  }

  /** The command and arguments that run a command inside. */
  wrap(command: string, args: readonly string[]): [command: string, args: string[]] {
    const namespaces = asRoot().length === 0 ? ['--mount'] : ['--mount', '--user', '--preserve-credentials'];
    return ['nsenter', ['--target', String(this.#holder.pid), ...namespaces, '--', command, ...args]];
  }

  /** A file on the disk, as this process can reach it. */
  path(name: string): string {
    return join('/proc', String(this.#holder.pid), 'root', this.directory, name);
  }

  /** Leaves so many bytes free, whatever there is now, and whoever else writes meanwhile. */
  fill(leaveBytes: number): void {
    this.free();
    const ballast = openSync(this.path('ballast'), 'w');
    for (;;) {
      const { bavail, bsize } = statfsSync(this.path(''));
      const excessBytes = bavail * bsize - leaveBytes;
      if (excessBytes <= 0) break;
      writeSync(ballast, Buffer.alloc(Math.min(excessBytes, PIECE_BYTES)));
    }
    closeSync(ballast);
  }

  /** Takes back what `fill` took. */
  free(): void {
    rmSync(this.path('ballast'), { force: true });
  }

  remove(): void {
    this.#holder.kill('SIGKILL');
    rmSync(this.directory, { recursive: true, force: true });
  }
}

/** Those who are not root become it in a user namespace. */
function asRoot(): string[] {
  return process.getuid?.() === 0 ? [] : ['--user', '--map-root-user'];
}
