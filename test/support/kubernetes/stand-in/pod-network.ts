import { NetworkNamespace, runHere } from '../../network-namespace.ts';

const PODS_MAX = 250;

/** A pod's namespace, and its address there. */
export interface PodPlace {
  readonly address: string;
  readonly namespace: NetworkNamespace;
}

/**
 * The network of a cluster whose hosts are all this machine: each pod has an address of its own, in a network namespace of its own,
 * and this machine has one at which pods reach it, and it them. Needs root.
 */
export class PodNetwork {
  /** The address of this machine that pods reach. */
  readonly host: string;
  /** Holds that address: what leads to a namespace goes with it, whatever becomes of the test. */
  readonly #anchor: NetworkNamespace;
  #pods = 0;

  private constructor(host: string, anchor: NetworkNamespace) {
    this.host = host;
    this.#anchor = anchor;
  }

  static async lay(): Promise<PodNetwork> {
    const [host, link, anchor] = [addressOf(1), linkOf('a'), await NetworkNamespace.hold()];
    runHere(
      `ip link add ${link} type veth peer name host netns ${anchor.pid}`,
      `ip address add ${host}/32 dev ${link}`,
      `ip link set ${link} up`,
    );
    anchor.run('ip link set host up');
    return new PodNetwork(host, anchor);
  }

  /** A place for one more pod, which is its host name. */
  async place(pod: string): Promise<PodPlace> {
    this.#pods++;
    if (this.#pods > PODS_MAX) throw new Error('there are no addresses for more pods');
    const [address, link, namespace] = [addressOf(this.#pods + 1), linkOf(this.#pods), await NetworkNamespace.hold()];
    runHere(
      `ip link add ${link} type veth peer name eth0 netns ${namespace.pid}`,
      `ip link set ${link} up`,
      `ip route add ${address} dev ${link} src ${this.host}`,
    );
    namespace.run(
      `echo ${pod} > /proc/sys/kernel/hostname`,
      `ip address add ${address}/32 dev eth0`,
      'ip link set eth0 up',
      `ip route add ${this.host} dev eth0 src ${address}`,
    );
    return { address, namespace };
  }

  remove(): void {
    this.#anchor.release();
  }
}

/** One that no network has, and no other test that runs now: of those that are shared by networks of carriers. */
export function addressOf(index: number): string {
  const network = process.pid % 2 ** 14;
  return `100.${64 + (network >> 8)}.${network & 255}.${index}`;
}

function linkOf(name: string | number): string {
  return `gp${process.pid}-${name}`;
}
