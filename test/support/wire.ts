import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { MIGRATION_PORTS } from '../../src/api/kubevirt/migration-configuration.ts';
import { AGENT_PORTS } from '../../src/cli/node-services.ts';
import { SYNCHRONIZATION_PORT } from '../../src/sync/wire/address.ts';
import type { Place } from './godwit.ts';

/**
 * Two places, each in a network namespace of its own, and a router between them in a third one, which lets nothing pass but
 * some TCP ports of either. The test reaches both places itself. Made of iproute2 alone: rules for routes can tell ports.
 */

/** What may pass, as docs/configuration.md says: synchronization, agents, and what copies of guests come by. */
const OPEN_PORTS = [
  `${SYNCHRONIZATION_PORT}`,
  `${AGENT_PORTS[0]}-${AGENT_PORTS.at(-1)}`,
  `${MIGRATION_PORTS.first}-${MIGRATION_PORTS.last}`,
];
/** Whoever calls from one of the open ports would be taken for somebody who answers. */
const CALLING_PORTS = '32768 49151';
/** Above all that lets pass. */
const CUT = '1';

export class Wire {
  readonly east: Place;
  readonly west: Place;
  readonly #holders: readonly ChildProcess[];
  readonly #router: ChildProcess;

  private constructor(holders: readonly [ChildProcess, ChildProcess, ChildProcess], east: string, west: string) {
    this.#holders = holders;
    this.#router = holders[0];
    this.east = { host: east, wrap: (command, args) => inside(holders[1], command, args) };
    this.west = { host: west, wrap: (command, args) => inside(holders[2], command, args) };
  }

  /** Needs root. */
  static async lay(): Promise<Wire> {
    const holders = [await holder(), await holder(), await holder()] as const;
    const [router, ...sides] = holders;
    const [host = '', hub = '', east = '', west = ''] = addresses();
    const wire = new Wire([...holders], east, west);
    run(router, `ip address add ${hub}/32 dev lo`, 'echo 1 > /proc/sys/net/ipv4/ip_forward');
    for (const [index, side] of sides.entries()) {
      const [own, other] = index === 0 ? [east, west] : [west, east];
      const outer = `gw${process.pid}${'ew'[index]}`;
      run(
        undefined,
        `ip link add wire netns ${side.pid} type veth peer name side-${index} netns ${router.pid}`,
        `ip link add ${outer} type veth peer name host netns ${side.pid}`,
        `ip address add ${host}/32 dev ${outer}`,
        `ip link set ${outer} up`,
        `ip route add ${own} dev ${outer} src ${host}`,
      );
      run(router, `ip link set side-${index} up`, `ip route add ${own} dev side-${index}`);
      run(
        side,
        `echo ${CALLING_PORTS} > /proc/sys/net/ipv4/ip_local_port_range`,
        `ip address add ${own}/32 dev lo`,
        'ip link set wire up',
        'ip link set host up',
        `ip route add ${hub} dev wire src ${own}`,
        `ip route add ${other} via ${hub} src ${own}`,
        `ip route add ${host} dev host src ${own}`,
      );
    }
    for (const ports of OPEN_PORTS)
      for (const end of ['sport', 'dport']) run(router, `ip rule add pref 10 ipproto tcp ${end} ${ports} lookup main`);
    // The router itself may say that it lets nothing else pass.
    run(router, 'ip rule add pref 10 iif lo lookup main', 'ip rule add pref 11 prohibit');
    return wire;
  }

  /** Nothing passes any more, and nobody is told. */
  cut(): void {
    run(this.#router, `ip rule add pref ${CUT} blackhole`);
  }

  /** Everything that may pass passes again. */
  mend(): void {
    run(this.#router, `ip rule del pref ${CUT}`);
  }

  /** Takes the namespaces away, and all that led to them, as soon as nobody is in them. */
  remove(): void {
    for (const each of this.#holders) each.kill('SIGKILL');
  }
}

/** Four addresses that no network has, and no other test that runs now: those that are kept for trying things out. */
function addresses(): string[] {
  const first = 4 * (process.pid % 2 ** 15);
  return Array.from({ length: 4 }, (_, index) => {
    const number = first + index;
    return `198.${18 + (number >> 16)}.${(number >> 8) & 255}.${number & 255}`;
  });
}

/** A namespace, for as long as this process holds it. */
async function holder(): Promise<ChildProcess> {
  // It ends when it hears that nobody is there who could tell it anything.
  const own = "exec unshare --net sh -c 'ip link set lo up && echo ready && read -r _'";
  const child = spawn('sh', ['-c', own], { stdio: ['pipe', 'pipe', 'inherit'] });
  const [first] = await Promise.race([once(child.stdout, 'data'), once(child, 'exit')]);
  if (!Buffer.isBuffer(first)) throw new Error('this system gives no network namespaces');
  return child;
}

function inside(place: ChildProcess, command: string, args: readonly string[]): [string, string[]] {
  return ['nsenter', ['--target', String(place.pid), '--net', '--', command, ...args]];
}

function run(place: ChildProcess | undefined, ...lines: readonly string[]): void {
  const script = ['-c', lines.join(' && ')];
  const [command, args] = place ? inside(place, 'sh', script) : (['sh', script] as const);
  const { status, stderr } = spawnSync(command, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${lines.join('; ')}: ${stderr}`);
}
