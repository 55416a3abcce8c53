import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { FileDescription, HostPorts } from '../../env/ports.ts';
import { ManualClock } from '../../env/test.ts';
import { GuestMachines } from './guest-machines.ts';
import { interfaceStatuses } from './interface-statuses.ts';
import { PortForwards } from './port-forwards.ts';
import { Taps } from './taps.ts';

function guestOf(name: string, interfaces: string, networks: string): VirtualMachineInstance {
  return parse(`
metadata: {name: ${name}, namespace: shop, uid: 0d7e7a0c-3a55-4c0f-9a0a-000000000001}
spec:
  domain:
    memory: {guest: 64Mi}
    devices: {interfaces: ${interfaces}}
  networks: ${networks}
`) as VirtualMachineInstance;
}

const WEB = '[{name: default, masquerade: {}, ports: [{name: http, port: 80}, {port: 53, protocol: UDP}]}]';
const POD = '[{name: default, pod: {}}]';
const VOLUMES = { disks: new Map(), kernel: undefined };

const TUNNEL: FileDescription = { kind: 'other', sizeBytes: 0, modifiedMs: 0, owner: { uid: 0, gid: 0 }, mode: 0o666 };

/** A host on which some ports are taken, and `ip` does what it is told. */
class Scene {
  readonly clock = new ManualClock();
  readonly taken = new Set<number>();
  readonly commands: string[] = [];
  readonly links = new Map<string, string>();
  tunnel: FileDescription | undefined = TUNNEL;
  isBroken = false;
  readonly machines: GuestMachines;

  constructor() {
    const ports: HostPorts = { isFree: async (_, __, port) => !this.taken.has(port) };
    this.machines = new GuestMachines({
      host: { version: { major: 7, minor: 2, micro: 22 }, accelerator: 'tcg' },
      forwards: new PortForwards({ clock: this.clock, ports, address: '192.0.2.1' }),
      taps: new Taps({
        clock: this.clock,
        processes: { isRoot: true, run: async (_, args) => this.#ip(args) },
        files: { describe: async () => this.tunnel },
        nodeName: 'one',
        bridges: ['br0'],
        user: { uid: 12, gid: 34 },
      }),
    });
  }

  async forwards(guest: VirtualMachineInstance): Promise<readonly number[]> {
    const { networks = [] } = await this.machines.specOf(guest, VOLUMES);
    return networks.flatMap(({ backend }) =>
      backend.kind === 'user' ? backend.forwards.map(({ hostPort }) => hostPort) : [],
    );
  }

  #ip(args: readonly string[]): string {
    if (this.isBroken) throw new Error('RTNETLINK answers: Operation not permitted');
    if (args[0] === '-json')
      return JSON.stringify([...this.links].map(([ifname, operstate]) => ({ ifname, operstate })));
    this.commands.push(args.join(' '));
    const name = args[args.indexOf('dev') + 1] ?? '';
    if (args[1] === 'add') this.links.set(name, 'DOWN');
    if (args[1] === 'del') this.links.delete(name);
    return '';
  }
}

describe('ports of guests', () => {
  it('are reached at ports of the node, the same each time', async () => {
    const guest = guestOf('web', WEB, POD);
    const [http = 0, dns = 0] = await new Scene().forwards(guest);
    expect(await new Scene().forwards(guest)).toEqual([http, dns]);
    for (const port of [http, dns]) expect(port >= 30_000 && port < 32_768).toBe(true);
    expect(interfaceStatuses(guest, await new Scene().machines.specOf(guest, VOLUMES))).toEqual([
      {
        name: 'default',
        mac: expect.stringMatching(/^02:/) as string,
        infoSource: 'domain',
        queueCount: 1,
        linkState: 'up',
        ipAddress: '192.0.2.1',
        ipAddresses: ['192.0.2.1'],
        forwardedPorts: [
          { name: 'http', port: 80, protocol: 'TCP', hostAddress: '192.0.2.1', hostPort: http },
          { port: 53, protocol: 'UDP', hostAddress: '192.0.2.1', hostPort: dns },
        ],
      },
    ]);
  });

  it('are others where those are taken, or about to be', async () => {
    const scene = new Scene();
    const guest = guestOf('web', WEB, POD);
    const [first = 0] = await scene.forwards(guest);
    const [second] = await scene.forwards(guest);
    expect(second).not.toBe(first);
    scene.clock.advance(120_000);
    expect((await scene.forwards(guest))[0]).toBe(first);
    scene.clock.advance(120_000);
    scene.taken.add(first);
    expect((await scene.forwards(guest))[0]).not.toBe(first);
  });

  it('run out', async () => {
    const scene = new Scene();
    for (let port = 30_000; port < 32_768; port++) scene.taken.add(port);
    await expect(scene.forwards(guestOf('web', WEB, POD))).rejects.toThrow('no port of the node is left');
  });
});

describe('bridges', () => {
  const BRIDGED = guestOf('web', '[{name: lan, bridge: {}}]', '[{name: lan, multus: {networkName: br0}}]');

  it('are reached by a device of the user that QEMU runs as', async () => {
    const scene = new Scene();
    const { networks } = await scene.machines.specOf(BRIDGED, VOLUMES);
    const [{ backend } = { backend: undefined }] = networks ?? [];
    if (backend?.kind !== 'tap') throw new Error('there is no tap');
    expect(backend.interfaceName).toMatch(/^gw[0-9a-f]{4}-[0-9a-f]{8}$/);
    expect(scene.commands).toEqual([
      `tuntap add dev ${backend.interfaceName} mode tap user 12 group 34`,
      `link set dev ${backend.interfaceName} master br0 up`,
    ]);
    expect(interfaceStatuses(BRIDGED, await scene.machines.specOf(BRIDGED, VOLUMES))).toMatchObject([
      { name: 'lan', podInterfaceName: backend.interfaceName },
    ]);
    // A second time it is there already.
    expect(scene.commands).toHaveLength(3);
  });

  it('lose the devices that nobody uses any more, and no others', async () => {
    const scene = new Scene();
    await scene.machines.specOf(BRIDGED, VOLUMES);
    const [mine = ''] = scene.links.keys();
    const prefix = mine.slice(0, 7);
    for (const [name, state] of [
      [`${prefix}00000000`, 'DOWN'],
      [`${prefix}11111111`, 'UP'],
      ['gwffff-22222222', 'DOWN'],
      ['eth0', 'DOWN'],
    ] as const)
      scene.links.set(name, state);
    await scene.machines.specOf(BRIDGED, VOLUMES);
    expect([...scene.links.keys()]).toEqual([mine, `${prefix}11111111`, 'gwffff-22222222', 'eth0']);
  });

  it.each<[string, (scene: Scene) => void, string, string]>([
    ['of which nobody said that guests may be on them', () => undefined, 'docker0', 'may not be on a bridge docker0'],
    ['on a host without tap devices', (scene) => void (scene.tunnel = undefined), 'br0', 'needs an agent that is root'],
    [
      'on a host that keeps them to itself',
      (scene) => void (scene.tunnel = { ...TUNNEL, mode: 0o600 }),
      'br0',
      'may open /dev/net/tun',
    ],
    ['that do not take them', (scene) => void (scene.isBroken = true), 'br0', 'cannot be connected to br0: RTNETLINK'],
  ])('are refused: those %s', async (_, arrange, bridge, complaint) => {
    const scene = new Scene();
    arrange(scene);
    const guest = guestOf('web', '[{name: lan, bridge: {}}]', `[{name: lan, multus: {networkName: ${bridge}}}]`);
    await expect(scene.machines.specOf(guest, VOLUMES)).rejects.toMatchObject({
      name: 'MachineSpecError',
      message: expect.stringContaining(`spec.domain.devices.interfaces[0]: `) as string,
    });
    await expect(scene.machines.specOf(guest, VOLUMES)).rejects.toThrow(complaint);
  });
});
