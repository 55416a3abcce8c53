import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Running, startCli } from './cli.ts';
import { leftOut } from './left-out.ts';
import { TcpProxy } from './tcp-proxy.ts';
import type { VirtualMachines } from './virtual-machines.ts';

const relay = fileURLToPath(new URL('relay.mjs', import.meta.url));

/** Whether this system lets tests have networks of their own; says so where it does not. */
export function hasFarNodes(): boolean {
  const { status, stderr, error } = spawnSync('sh', ['-c', 'unshare --net ip link set lo up'], { encoding: 'utf8' });
  if (status !== 0) leftOut(`cutting links needs a network namespace (${error?.message ?? stderr.trim()})`);
  return status === 0;
}

/**
 * A node in a network of its own: whatever it says to others goes through links of ours, one for each port outside, which
 * can be cut. Nobody outside can call it.
 */
export class FarNode {
  readonly name: string;
  readonly #holder: ChildProcess;
  readonly #relay: ChildProcess;
  readonly #agent: Running;
  readonly #links: ReadonlyMap<number, TcpProxy>;

  private constructor(
    name: string,
    parts: { holder: ChildProcess; relay: ChildProcess; agent: Running },
    links: FarNode['links'],
  ) {
    this.name = name;
    this.#holder = parts.holder;
    this.#relay = parts.relay;
    this.#agent = parts.agent;
    this.#links = links;
  }

  /** Starts the node's agent, which can call only these ports of the host. */
  static async join(host: VirtualMachines, name: string, ports: readonly number[]): Promise<FarNode> {
    const { directory } = host.godwit;
    const sockets = join(directory, 'links');
    mkdirSync(sockets, { mode: 0o711 });
    const all = [Number(new URL(host.godwit.access().url).port), ...ports];
    const links = new Map<number, TcpProxy>();
    for (const port of all) links.set(port, await TcpProxy.open(port, join(sockets, String(port))));
    const own = "exec unshare --net sh -c 'ip link set lo up && echo ready && exec sleep infinity'";
    const holder = await ready(spawn('sh', ['-c', own]));
    const inside = (command: string, args: readonly string[]): [string, string[]] => [
      'nsenter',
      ['--target', String(holder.pid), '--net', '--', command, ...args],
    ];
    const relaying = await ready(spawn(...inside(process.execPath, [relay, sockets, ...all.map(String)])));
    const options = {
      name,
      'data-dir': join(host.nodesDirectory, name),
      'bootstrap-kubeconfig': join(host.nodesDirectory, 'bootstrap-kubeconfig'),
      images: join(directory, 'images'),
      shared: join(directory, 'shared'),
    };
    const args = Object.entries(options).flatMap(([option, value]) => [`--${option}`, value]);
    const agent = startCli(['agent', ...args], {}, inside);
    await agent.printed('works for');
    return new FarNode(name, { holder, relay: relaying, agent }, links);
  }

  get links(): ReadonlyMap<number, TcpProxy> {
    return this.#links;
  }

  /** The link to a port of the host. */
  link(port: number): TcpProxy {
    const found = this.#links.get(port);
    if (!found) throw new Error(`${this.name} cannot call port ${port}`);
    return found;
  }

  /** Ends the agent and the links; guests are for whoever ends the host. */
  async leave(): Promise<void> {
    this.#agent.child.kill('SIGKILL');
    await this.#agent.finished;
    for (const link of this.#links.values()) link.close();
    for (const child of [this.#relay, this.#holder]) child.kill('SIGKILL');
  }
}

async function ready(child: ChildProcess): Promise<ChildProcess> {
  child.stderr?.pipe(process.stderr);
  if (child.stdout) await once(child.stdout, 'data');
  return child;
}
