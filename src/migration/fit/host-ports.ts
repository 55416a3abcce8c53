import type { Pod } from './objects.ts';

/** A port of the node itself that a pod wants for a container. */
export interface HostPort {
  /** `0.0.0.0` for every address of the node. */
  readonly address: string;
  readonly protocol: string;
  readonly port: number;
}

const ANY_ADDRESS = '0.0.0.0';

/** The ports of the node that a pod wants: its containers' and its sidecars'. */
export function hostPortsOf(pod: Pod): readonly HostPort[] {
  const { containers = [], initContainers = [] } = pod.spec ?? {};
  const sidecars = initContainers.filter(({ restartPolicy }) => restartPolicy === 'Always');
  return [...containers, ...sidecars].flatMap(({ ports = [] }) =>
    ports.flatMap(({ hostPort = 0, hostIP = '', protocol = 'TCP' }) =>
      hostPort > 0 ? [{ address: hostIP === '' ? ANY_ADDRESS : hostIP, protocol, port: hostPort }] : [],
    ),
  );
}

/** The ports of one node that are taken, each as often as it was taken. */
export class HostPortUse {
  /** Uses of addresses, by protocol and port. */
  readonly #uses = new Map<string, Map<string, number>>();

  add(ports: readonly HostPort[]): void {
    for (const { address, protocol, port } of ports) {
      const key = `${protocol}/${port}`;
      let addresses = this.#uses.get(key);
      if (!addresses) this.#uses.set(key, (addresses = new Map()));
      addresses.set(address, (addresses.get(address) ?? 0) + 1);
    }
  }

  remove(ports: readonly HostPort[]): void {
    for (const { address, protocol, port } of ports) {
      const key = `${protocol}/${port}`;
      const addresses = this.#uses.get(key);
      const count = (addresses?.get(address) ?? 0) - 1;
      if (count > 0) addresses?.set(address, count);
      else addresses?.delete(address);
      if (addresses?.size === 0) this.#uses.delete(key);
    }
  }

  /** Whether the port is taken on its address, or on one that includes it. */
  isTaken({ address, protocol, port }: HostPort): boolean {
    const addresses = this.#uses.get(`${protocol}/${port}`);
    if (!addresses) return false;
    return address === ANY_ADDRESS || addresses.has(address) || addresses.has(ANY_ADDRESS);
  }
}
