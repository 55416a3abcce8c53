import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Wrap } from '../../cli.ts';
import type { NetworkNamespace } from '../../network-namespace.ts';

/** What kubelets would set of the kernel, and with it of this machine: they find it to be so already. */
const KERNEL: Readonly<Record<string, string>> = {
  'vm/overcommit_memory': '1',
  'vm/panic_on_oom': '0',
  'kernel/panic': '10',
  'kernel/panic_on_oops': '1',
};

/** Run as the first process there. Mounts of containers are to be seen by agents, and so are shared. */
const SET_UP = `
  set -e
  directory=$1 agent=$2 shared=$3
  mount --bind "$directory/lib" /var/lib
  mount --bind "$directory/log" /var/log
  mkdir /var/lib/godwit
  mount --bind "$agent" /var/lib/godwit
  mkdir /var/lib/godwit/shared
  mount --bind "$shared" /var/lib/godwit/shared
  mount -t tmpfs -o mode=755 tmpfs /run
  for each in ${Object.keys(KERNEL).join(' ')}; do mount --bind "$directory/kernel/$each" "/proc/sys/$each"; done
  mount --make-rshared /
  echo ready
  read -r _`;

/** Where a host has its files. */
export interface HostDirectories {
  /** For all that the others are not for. */
  readonly directory: string;
  /** What its agent finds as its own. */
  readonly agentDirectory: string;
  /** What all hosts have mounted below that, as `shared`. */
  readonly sharedDirectory: string;
}

/**
 * What a host has of its own besides its network: processes, mounts, and the directories in which a kubelet, a container runtime and an
 * agent keep what is theirs. All that runs there ends with it. Needs root.
 */
export class HostNamespace {
  readonly #network: NetworkNamespace;
  readonly #holder: ChildProcess;
  readonly #first: number;

  private constructor(network: NetworkNamespace, holder: ChildProcess, first: number) {
    this.#network = network;
    this.#holder = holder;
    this.#first = first;
  }

  static async hold(network: NetworkNamespace, directories: HostDirectories): Promise<HostNamespace> {
    const { directory, agentDirectory, sharedDirectory } = directories;
    for (const each of ['lib', 'log']) mkdirSync(join(directory, each), { recursive: true });
    for (const each of [agentDirectory, sharedDirectory]) mkdirSync(each, { recursive: true, mode: 0o711 });
    for (const [name, value] of Object.entries(KERNEL)) {
      const path = join(directory, 'kernel', name);
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, `${value}\n`);
    }
    const own = ['--mount', '--pid', '--fork', '--kill-child', '--mount-proc'];
    const setUp = ['sh', '-c', SET_UP, 'sh', directory, agentDirectory, sharedDirectory];
    // It ends when it hears that nobody is there who could tell it anything.
    const holder = spawn(...network.wrap('unshare', [...own, ...setUp]), { stdio: ['pipe', 'pipe', 'inherit'] });
    const [first] = await Promise.race([once(holder.stdout, 'data'), once(holder, 'exit')]);
    if (!Buffer.isBuffer(first)) throw new Error('this system gives no namespaces for hosts');
    const children = readFileSync(`/proc/${holder.pid}/task/${holder.pid}/children`, 'utf8');
    return new HostNamespace(network, holder, Number(children.trim()));
  }

  /** Brings a command into it, which ends when whoever was started for that does. */
  readonly wrap: Wrap = (command, args) => {
    const there = ['--target', String(this.#first), '--net', '--uts', '--mount', '--pid', '--'];
    return ['nsenter', [...there, 'setpriv', '--pdeathsig', 'KILL', '--', command, ...args]];
  };

  /** Ends everything that runs there. */
  async release(): Promise<void> {
    if (this.#holder.exitCode === null && this.#holder.signalCode === null) {
      const exited = once(this.#holder, 'exit');
      this.#holder.kill('SIGKILL');
      await exited;
    }
    this.#network.release();
  }
}
