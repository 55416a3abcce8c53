import { choice, flag, type Infer, integer, kept, listOf, needed, object, text } from '../typed-schema.ts';

/** Networks, and the interfaces through which a guest is on them; they are told apart by name. */

const port = object('A port that is forwarded to the guest.', {
  name: text('Its name.'),
  port: needed(integer('Its number.')),
  protocol: text('TCP or UDP; TCP by default.'),
});

/** An interface; at most one of its bindings is set. */
export const networkInterface = object('An interface of the guest.', {
  name: needed(text('Name of the network that it is on.')),
  masquerade: kept('The guest has an address of its own behind that of its pod.'),
  bridge: kept("The guest has its pod's place on the network."),
  passt: kept("The guest's connections are those of its pod."),
  passtBinding: kept("The guest's connections are those of its pod."),
  sriov: kept('The guest has a device of the node.'),
  macvtap: kept('The guest is on a network of the node.'),
  slirp: kept('No longer supported by KubeVirt.'),
  binding: object('A plug-in connects it.', { name: needed(text('Name of the plug-in.')) }),
  model: text('The device that the guest sees; virtio by default.'),
  macAddress: text('Its hardware address, such as de:ad:00:00:be:af.'),
  ports: listOf('Ports that are forwarded to the guest; with none, all are.', port),
  bootOrder: integer('When it is tried at boot: the lowest number first, from 1.'),
  pciAddress: text('Where the guest finds it, such as 0000:81:01.0.'),
  acpiIndex: integer("A number for the guest's name of it."),
  dhcpOptions: kept('What the guest is told by DHCP.'),
  state: choice('absent takes it out; up and down are the state of its link.', ['absent', 'up', 'down', '']),
  tag: text('A name that the guest can find it by.'),
});

export type NetworkInterface = Infer<typeof networkInterface>;

/** A network; exactly one of pod and multus is set. */
export const network = object('A network that the guest can be on.', {
  name: needed(text('Its name; the interface of this name is on it.')),
  pod: object("The pod's own network.", {
    vmNetworkCIDR: text('Addresses for the guest behind the pod.'),
    vmIPv6NetworkCIDR: text('The same for IPv6.'),
  }),
  multus: object('A network that Multus knows.', {
    networkName: needed(text('Its name, with its namespace before a slash where that is another.')),
    default: flag("Whether it takes the place of the pod's own network."),
  }),
});

export type Network = Infer<typeof network>;

const forwardedPort = object('Where a port of the guest can be reached.', {
  name: text('Its name.'),
  port: integer('Its number in the guest.'),
  protocol: text('TCP or UDP.'),
  hostAddress: text('Address of the node.'),
  hostPort: integer('Port of the node.'),
});

/** An interface as the running guest has it. */
export const interfaceStatus = object('An interface as the guest has it.', {
  name: text('Name of its network.'),
  ipAddress: text('Its first address.'),
  ipAddresses: listOf('Its addresses.', text('An address.')),
  mac: text('Its hardware address.'),
  interfaceName: text("The guest's own name of it."),
  podInterfaceName: text("The pod's name of it."),
  infoSource: text('Who says so: domain, guest-agent or multus-status, or several.'),
  queueCount: integer('How many queues it has.'),
  linkState: text('up or down.'),
  // KubeVirt forwards the ports of pods, and has no need to say where.
  forwardedPorts: listOf('Where ports of the guest can be reached, on the node.', forwardedPort),
});
