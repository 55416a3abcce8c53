import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { type Running, startCli, type Wrap } from './cli.ts';
import { runLines } from './network-namespace.ts';
import type { VirtualMachines } from './virtual-machines.ts';

/** Guests may open this device, wherever the test runs: their node has one of its own, which nobody else sees. */
const OPEN_TUNNEL = 'mount -t tmpfs tun /dev/net && mknod -m 666 /dev/net/tun c 10 200';

/** A node whose guests can be on a bridge, beside those that a cluster has. Its place is a network of its own; needs root. */
export class BridgedNode {
  readonly #agent: Running;
  readonly #bridge: string;
  readonly #wrap: Wrap;

  private constructor(agent: Running, bridge: string, wrap: Wrap) {
    this.#agent = agent;
    this.#bridge = bridge;
    this.#wrap = wrap;
  }

  /** Makes the bridge, and starts the node's agent. */
  static async join(host: VirtualMachines, name: string, bridge: string): Promise<BridgedNode> {
    const { directory, place } = host.godwit;
    runLines([`ip link add ${bridge} type bridge`, `ip link set ${bridge} up`], place.wrap);
    const within: Wrap = (command, args) =>
      place.wrap('unshare', ['--mount', 'sh', '-c', `${OPEN_TUNNEL} && exec "$@"`, 'sh', command, ...args]);
    const options = {
      name,
      bridge,
      'data-dir': join(host.nodesDirectory, name),
      'bootstrap-kubeconfig': join(host.nodesDirectory, 'bootstrap-kubeconfig'),
      images: join(directory, 'images'),
      shared: join(directory, 'shared'),
    };
    const args = Object.entries(options).flatMap(([option, value]) => [`--${option}`, value]);
    const agent = startCli(['agent', ...args], {}, within);
    await agent.printed('works for');
    return new BridgedNode(agent, bridge, place.wrap);
  }

  /** How many guests are on the bridge. */
  get guestCount(): number {
    const { status, stdout, stderr } = spawnSync(
      ...this.#wrap('ip', ['-brief', 'link', 'show', 'master', this.#bridge, 'up']),
      { encoding: 'utf8' },
    );
    if (status !== 0) throw new Error(stderr);
    return stdout.split('\n').filter((line) => / UP /.test(line)).length;
  }

  /** Ends the agent; guests are for whoever ends the host. */
  async leave(): Promise<void> {
    this.#agent.child.kill('SIGKILL');
    await this.#agent.finished;
  }
}
