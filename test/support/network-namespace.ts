import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import type { Wrap } from './cli.ts';

/** A network and a host name of its own, for as long as this process holds it, or somebody is within. Needs root. */
export class NetworkNamespace {
  readonly #holder: ChildProcess;

  private constructor(holder: ChildProcess) {
    this.#holder = holder;
  }

  static async hold(): Promise<NetworkNamespace> {
    // It ends when it hears that nobody is there who could tell it anything.
    const own = "exec unshare --net --uts sh -c 'ip link set lo up && echo ready && read -r _'";
    const child = spawn('sh', ['-c', own], { stdio: ['pipe', 'pipe', 'inherit'] });
    const [first] = await Promise.race([once(child.stdout, 'data'), once(child, 'exit')]);
    if (!Buffer.isBuffer(first)) throw new Error('this system gives no network namespaces');
    return new NetworkNamespace(child);
  }

  /** By which links are put into it. */
  get pid(): number {
    return this.#holder.pid ?? 0;
  }

  /** Brings a command into it. */
  readonly wrap: Wrap = (command, args) => [
    'nsenter',
    ['--target', String(this.pid), '--net', '--uts', '--', command, ...args],
  ];

  /** Runs lines of shell within. */
  run(...lines: readonly string[]): void {
    runLines(lines, this.wrap);
  }

  /** It goes, with all links that lead to it, as soon as nobody is within. */
  release(): void {
    this.#holder.kill('SIGKILL');
  }
}

/** Runs lines of shell on this machine. */
export function runHere(...lines: readonly string[]): void {
  runLines(lines, (command, args) => [command, [...args]]);
}

/** Runs lines of shell somewhere. */
export function runLines(lines: readonly string[], wrap: Wrap): void {
  const { status, stderr } = spawnSync(...wrap('sh', ['-c', lines.join(' && ')]), { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${lines.join('; ')}: ${stderr}`);
}
