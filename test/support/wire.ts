import { MIGRATION_PORTS } from '../../src/api/kubevirt/migration-configuration.ts';
import { AGENT_PORTS } from '../../src/cli/node-services.ts';
import { SYNCHRONIZATION_PORT } from '../../src/sync/wire/address.ts';
import type { Place } from './godwit.ts';
import { NetworkNamespace, runHere } from './network-namespace.ts';

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
/** Those by which this process reaches the two places: it has one such wire at a time. */
const LINKS = [`gw${process.pid}e`, `gw${process.pid}w`];
/** Above all that lets pass. */
const CUT = '1';

export class Wire {
  readonly east: Place;
  readonly west: Place;
  /** Where the test is reached by both. */
  readonly host: string;
  readonly #all: readonly NetworkNamespace[];
  readonly #router: NetworkNamespace;

  private constructor(
    all: readonly [NetworkNamespace, NetworkNamespace, NetworkNamespace],
    host: string,
    east: string,
    west: string,
  ) {
    this.#all = all;
    this.#router = all[0];
    this.host = host;
    this.east = { host: east, wrap: all[1].wrap };
    this.west = { host: west, wrap: all[2].wrap };
  }

  /** Needs root. */
  static async lay(): Promise<Wire> {
    const all = [await NetworkNamespace.hold(), await NetworkNamespace.hold(), await NetworkNamespace.hold()] as const;
    const [router, ...sides] = all;
    const [host = '', hub = '', east = '', west = ''] = addresses();
    const wire = new Wire(all, host, east, west);
    router.run(`ip address add ${hub}/32 dev lo`, 'echo 1 > /proc/sys/net/ipv4/ip_forward');
    for (const [index, side] of sides.entries()) {
      const [own, other] = index === 0 ? [east, west] : [west, east];
      const outer = LINKS[index];
      runHere(
        `ip link add wire netns ${side.pid} type veth peer name side-${index} netns ${router.pid}`,
        `ip link add ${outer} type veth peer name host netns ${side.pid}`,
        `ip address add ${host}/32 dev ${outer}`,
        `ip link set ${outer} up`,
        `ip route add ${own} dev ${outer} src ${host}`,
      );
      router.run(`ip link set side-${index} up`, `ip route add ${own} dev side-${index}`);
      side.run(
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
      for (const end of ['sport', 'dport']) router.run(`ip rule add pref 10 ipproto tcp ${end} ${ports} lookup main`);
    // The router itself may say that it lets nothing else pass.
    router.run('ip rule add pref 10 iif lo lookup main', 'ip rule add pref 11 prohibit');
    return wire;
  }

  /** Nothing passes any more, and nobody is told. */
  cut(): void {
    this.#router.run(`ip rule add pref ${CUT} blackhole`);
  }

  /** Everything that may pass passes again. */
  mend(): void {
    this.#router.run(`ip rule del pref ${CUT}`);
  }

  /** Whoever dials the synchronization controller of a place is lost on the way, until the answer is called. */
  closeSynchronization(place: Place): () => void {
    const rule = `pref ${CUT} ipproto tcp to ${place.host} dport ${SYNCHRONIZATION_PORT} blackhole`;
    this.#router.run(`ip rule add ${rule}`);
    return () => this.#router.run(`ip rule del ${rule}`);
  }

  /** Takes away what leads to the namespaces, at once, since another one may be laid next; and them as soon as nobody is in them. */
  remove(): void {
    runHere(...LINKS.map((link) => `ip link del ${link}`));
    for (const each of this.#all) each.release();
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
