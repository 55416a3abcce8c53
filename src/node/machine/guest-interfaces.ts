import { createHash } from 'node:crypto';
import type { Network, NetworkInterface } from '../../api/kubevirt/networks.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import { MachineSpecError } from '../../hypervisor/machine.ts';

/** Names the bridge that a guest is put on whose interface to the pod's network is bound by `bridge`. */
export const BRIDGE_ANNOTATION = 'godwit.dev/bridge';

/** A port of the guest that is to be reached from outside. */
export interface WantedPort {
  readonly name: string | undefined;
  readonly protocol: 'tcp' | 'udp';
  readonly port: number;
}

/** An interface, and how it wants to be connected. */
export interface WantedInterface {
  readonly name: string;
  /** Where to look when something is wrong with it. */
  readonly field: string;
  readonly mac: string;
  readonly connection:
    | { readonly kind: 'user'; readonly ports: readonly WantedPort[] }
    | { readonly kind: 'bridge'; readonly bridge: string };
}

/**
 * The interfaces of a guest. The network of a pod is here one of the guest's own, behind its node: it gets out, and
 * the ports that it lists can be reached at the node. A network of Multus is the bridge of that name. Throws a
 * MachineSpecError that names the field for what cannot be.
 */
export function wantedInterfaces(guest: VirtualMachineInstance): readonly WantedInterface[] {
  const networks = new Map((guest.spec.networks ?? []).map((network) => [network.name, network]));
  return (guest.spec.domain.devices.interfaces ?? []).flatMap((each, index) => {
    const field = `spec.domain.devices.interfaces[${index}]`;
    if (each.state === 'absent') return [];
    const network = networks.get(each.name);
    if (!network) throw new MachineSpecError(`${field}.name: there is no network ${each.name}`);
    checkInterface(each, field);
    const { name } = each;
    return [{ name, field, mac: macOf(guest, each), connection: connectionOf(guest, each, network, field) }];
  });
}

function checkInterface({ model, state, sriov, macvtap, binding }: NetworkInterface, field: string): void {
  if (model && model !== 'virtio') throw new MachineSpecError(`${field}.model: ${model} is not supported; use virtio`);
  if (state === 'down') throw new MachineSpecError(`${field}.state: an interface cannot start down here`);
  const unsupported = sriov ? 'sriov' : macvtap ? 'macvtap' : binding ? 'binding' : undefined;
  if (unsupported) throw new MachineSpecError(`${field}.${unsupported}: is not supported; use masquerade or bridge`);
}

function connectionOf(
  guest: VirtualMachineInstance,
  { bridge, ports = [] }: NetworkInterface,
  { pod, multus }: Network,
  field: string,
): WantedInterface['connection'] {
  if (multus) {
    // The name of a network may have its namespace before it; a bridge of the node has none.
    const name = multus.networkName.slice(multus.networkName.lastIndexOf('/') + 1);
    if (!bridge) throw new MachineSpecError(`${field}: an interface to ${multus.networkName} must be bound by bridge`);
    return { kind: 'bridge', bridge: bridgeName(name, field) };
  }
  if (!pod) throw new MachineSpecError(`${field}.name: its network is neither the pod's nor one of Multus`);
  const named = guest.metadata.annotations?.[BRIDGE_ANNOTATION];
  if (bridge && named)
    return { kind: 'bridge', bridge: bridgeName(named, `metadata.annotations[${BRIDGE_ANNOTATION}]`) };
  return {
    kind: 'user',
    ports: ports.map(({ name, port, protocol }) => ({
      name,
      port,
      protocol: protocol?.toUpperCase() === 'UDP' ? 'udp' : 'tcp',
    })),
  };
}

function bridgeName(name: string, field: string): string {
  // As Linux has it, and nothing that could be taken for an option.
  if (!/^[A-Za-z0-9_.][A-Za-z0-9_.-]{0,14}$/.test(name) || name === '.' || name === '..')
    throw new MachineSpecError(`${field}: ${name} is no name of a bridge`);
  return name;
}

/** As given, else one that follows from what stays the same for as long as the machine is the same. */
function macOf(guest: VirtualMachineInstance, { name, macAddress }: NetworkInterface): string {
  if (macAddress) return macAddress.replaceAll('-', ':').toLowerCase();
  const { namespace = '', name: guestName = '' } = guest.metadata;
  const uuid = guest.spec.domain.firmware?.uuid ?? '';
  const hash = createHash('sha256').update([namespace, guestName, uuid, name].join('\0')).digest();
  // Locally administered, for one device.
  return ['02', ...(hash.toString('hex', 0, 5).match(/../g) ?? [])].join(':');
}
