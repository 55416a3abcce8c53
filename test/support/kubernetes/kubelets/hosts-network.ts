import { NetworkNamespace, runHere } from '../../network-namespace.ts';
import { KeptProcess } from '../kept-process.ts';
import { addressOf } from '../stand-in/pod-network.ts';

/** By which pods know the API server, whatever its address is. */
const SERVICE = { address: '10.96.0.1', port: 443 };
/** Of the addresses of a cluster, its hosts have the first half, and each host's pods a part of the other. */
const HOSTS = { first: 11, max: 2, mask: 25 };
const PODS = { first: 128, size: 64, mask: 26 };

/** Passes on whatever comes to a port, as kube-proxy would have the kernel do it. */
const RELAY = `
  const { connect, createServer } = require('node:net');
  const [host, port, toHost, toPort] = process.argv.slice(1);
  createServer({ allowHalfOpen: true }, (from) => {
    const to = connect({ host: toHost, port: Number(toPort), allowHalfOpen: true });
    from.pipe(to).pipe(from);
    for (const [one, other] of [[from, to], [to, from]]) one.on('error', () => other.destroy());
  }).listen(Number(port), host);`;

/** Where a host is in the network of its cluster. */
export interface HostPlace {
  readonly namespace: NetworkNamespace;
  readonly address: string;
  /** The network of its pods. */
  readonly podRange: string;
}

/**
 * The network of a cluster with hosts of its own: each is a network namespace, all are on one bridge, which is in a namespace, too,
 * and this machine has an address there. Hosts pass on what is for their pods. Needs root, and changes nothing for others.
 */
export class HostsNetwork {
  /** The address of this machine that hosts and their pods reach. */
  readonly here: string;
  readonly #fabric: NetworkNamespace;
  #relay: KeptProcess | undefined;
  #hosts = 0;

  private constructor(here: string, fabric: NetworkNamespace) {
    this.here = here;
    this.#fabric = fabric;
  }

  static async lay(): Promise<HostsNetwork> {
    const [here, link, fabric] = [addressOf(1), `gk${process.pid}`, await NetworkNamespace.hold()];
    runHere(
      `ip link add ${link} type veth peer name here netns ${fabric.pid}`,
      `ip address add ${here}/32 dev ${link}`,
      `ip link set ${link} up`,
      `ip route add ${addressOf(0)}/${HOSTS.mask} dev ${link} src ${here}`,
      ...[...podsOfAll()].map(([index, range]) => `ip route add ${range} via ${hostAddress(index)} src ${here}`),
    );
    fabric.run(
      'ip link add hosts type bridge',
      'ip link set hosts up',
      'ip link set here master hosts up',
      `ip address add ${addressOf(2)}/${HOSTS.mask} dev hosts`,
      `ip address add ${SERVICE.address}/32 dev lo`,
      ...[...podsOfAll()].map(([index, range]) => `ip route add ${range} via ${hostAddress(index)}`),
    );
    return new HostsNetwork(here, fabric);
  }

  /** A place for one more host, which is called so. */
  async place(name: string): Promise<HostPlace> {
    const index = this.#hosts++;
    if (index >= HOSTS.max) throw new Error('there are no addresses for more hosts');
    const [namespace, address] = [await NetworkNamespace.hold(), hostAddress(index)];
    this.#fabric.run(
      `ip link add host${index} type veth peer name eth0 netns ${namespace.pid}`,
      `ip link set host${index} master hosts up`,
    );
    const others = [...podsOfAll()].filter(([other]) => other !== index);
    namespace.run(
      `echo ${name} > /proc/sys/kernel/hostname`,
      'echo 1 > /proc/sys/net/ipv4/ip_forward',
      `ip address add ${address}/${HOSTS.mask} dev eth0`,
      'ip link set eth0 up',
      ...others.map(([other, range]) => `ip route add ${range} via ${hostAddress(other)}`),
      // Kubelets look for the way out when they start, and Services are somewhere out there.
      `ip route add default via ${addressOf(2)}`,
    );
    return { namespace, address, podRange: podRange(index) };
  }

  /** Leads the Service of the API server to where that is; the log is for what goes wrong. */
  leadTo(server: URL, outputPath: string): void {
    const args = ['-e', RELAY, SERVICE.address, String(SERVICE.port), server.hostname, server.port];
    const { wrap } = this.#fabric;
    this.#relay = new KeptProcess({ command: process.execPath, args, outputPath, wrap });
    this.#relay.start();
  }

  async remove(): Promise<void> {
    await this.#relay?.kill();
    this.#fabric.release();
  }
}

const hostAddress = (index: number): string => addressOf(HOSTS.first + index);
const podRange = (index: number): string => `${addressOf(PODS.first + index * PODS.size)}/${PODS.mask}`;

function* podsOfAll(): Generator<readonly [index: number, range: string]> {
  for (let index = 0; index < HOSTS.max; index++) yield [index, podRange(index)];
}
