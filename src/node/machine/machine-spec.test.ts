import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import { commandLine } from '../../hypervisor/qemu/command-line.ts';
import type { PreparedDisk, PreparedVolumes } from '../volumes/guest-volumes.ts';
import { wantedInterfaces } from './guest-interfaces.ts';
import { type MachineHost, machineSpec, type PreparedNetworks } from './machine-spec.ts';

const OLD = { major: 7, minor: 2, micro: 22 };
const HOST: MachineHost = { version: OLD, accelerator: 'tcg' };

function guestOf(yaml: string): VirtualMachineInstance {
  return parse(`
apiVersion: kubevirt.io/v1
kind: VirtualMachineInstance
metadata: {name: web, namespace: shop, uid: 0d7e7a0c-3a55-4c0f-9a0a-000000000001}
${yaml}`) as VirtualMachineInstance;
}

/** Every volume as an image of its own, and every interface connected as it wants. */
function preparedFor(guest: VirtualMachineInstance): [PreparedVolumes, PreparedNetworks] {
  const { volumes = [], domain } = guest.spec;
  const disks = volumes.map(({ name, containerDisk, persistentVolumeClaim }): [string, PreparedDisk] => {
    const format = containerDisk ? 'qcow2' : 'raw';
    const isReadOnly = persistentVolumeClaim?.readOnly ? { isReadOnly: true } : {};
    return [
      name,
      { path: `/pods/1/${name}.${format}`, format, cache: persistentVolumeClaim ? 'none' : 'writeback', ...isReadOnly },
    ];
  });
  const commandLine = domain.firmware?.kernelBoot?.kernelArgs;
  const kernel = domain.firmware?.kernelBoot && {
    path: '/pods/1/kernel',
    initrdPath: '/pods/1/initrd',
    ...(commandLine === undefined ? {} : { commandLine }),
  };
  const networks = wantedInterfaces(guest).map(
    ({ name, connection }, index): [string, NonNullable<ReturnType<PreparedNetworks['get']>>] => [
      name,
      connection.kind === 'user'
        ? {
            kind: 'user',
            forwards: connection.ports.map(({ protocol, port }) => ({
              protocol,
              hostAddress: '192.0.2.1',
              hostPort: 30_000 + port,
              guestPort: port,
            })),
          }
        : { kind: 'tap', interfaceName: `gw-${index}` },
    ],
  );
  return [{ disks: new Map(disks), kernel }, new Map(networks)];
}

const specOf = (yaml: string, host = HOST) => {
  const guest = guestOf(yaml);
  return machineSpec(guest, ...preparedFor(guest), host);
};

/** One option per line, as a person would write it. */
function text(yaml: string, host: MachineHost): string {
  const line = commandLine(specOf(yaml, host), {
    version: host.version,
    instance: 'a1-b2',
  });
  return `# The guest${yaml.replaceAll('\n', '\n# ').trimEnd()}\n${line.arguments.join('\n').replaceAll(/\n(?!-)/g, ' ')}\n`;
}

const SMALLEST = `
spec:
  domain:
    memory: {guest: 64Mi}
    devices: {}
`;

const TYPICAL = `
spec:
  domain:
    cpu: {cores: 2, sockets: 1, threads: 1, model: host-model}
    memory: {guest: 1Gi}
    machine: {type: q35}
    firmware: {uuid: 5D307CA9-B3EF-428C-8861-06E72D69F223, serial: 'A,1'}
    devices:
      rng: {}
      disks:
      - {name: root, bootOrder: 1, disk: {bus: virtio}}
      - {name: data, serial: D0001, cache: writethrough, disk: {bus: virtio}}
      - {name: seed, disk: {bus: sata}}
      - {name: tools, cdrom: {bus: sata, readonly: true}}
      - {name: drive, cdrom: {bus: sata}}
      interfaces:
      - name: default
        masquerade: {}
        ports:
        - {name: http, port: 80, protocol: TCP}
        - {port: 53, protocol: UDP}
      - {name: storage, bridge: {}, macAddress: DE-AD-00-00-BE-AF, bootOrder: 2}
  networks:
  - {name: default, pod: {}}
  - {name: storage, multus: {networkName: shop/br-storage}}
  volumes:
  - {name: root, containerDisk: {image: fedora}}
  - {name: data, persistentVolumeClaim: {claimName: data}}
  - {name: seed, cloudInitNoCloud: {userData: "#cloud-config"}}
  - {name: tools, containerDisk: {image: tools}}
`;

const KERNEL = `
spec:
  domain:
    cpu: {sockets: 1, model: Skylake-Server, features: [{name: vmx, policy: disable}, {name: pcid}, {name: avx, policy: optional}]}
    resources: {requests: {memory: 128M}}
    machine: {type: pc}
    firmware: {kernelBoot: {kernelArgs: console=ttyS0, container: {image: linux, kernelPath: /vmlinuz}}}
    devices:
      disks: [{name: root, disk: {bus: virtio, readonly: true}}, {name: golden, disk: {bus: virtio}}]
  volumes:
  - {name: root, emptyDisk: {capacity: 1Gi}}
  - {name: golden, persistentVolumeClaim: {claimName: golden, readOnly: true}}
`;

const MICROVM = `
spec:
  domain:
    memory: {guest: 32Mi}
    machine: {type: microvm}
    firmware: {kernelBoot: {kernelArgs: console=ttyS0, container: {image: probe, kernelPath: /probe}}}
    devices:
      disks: [{name: root, disk: {bus: virtio}}, {name: seed, cdrom: {bus: sata}}]
      interfaces: [{name: default, bridge: {}}]
  networks: [{name: default, pod: {}}]
  volumes:
  - {name: root, emptyDisk: {capacity: 1Gi}}
  - {name: seed, cloudInitNoCloud: {userData: x}}
`;

describe('the machine of a guest', () => {
  it.each<[string, string, MachineHost]>([
    ['smallest', SMALLEST, HOST],
    ['typical', TYPICAL, HOST],
    ['typical-kvm', TYPICAL, { version: { major: 10, minor: 0, micro: 2 }, accelerator: 'kvm' }],
    ['kernel-on-pc', KERNEL, HOST],
    ['microvm', MICROVM, HOST],
  ])('is as agreed: %s', async (name, yaml, host) => {
    await expect(text(yaml, host)).toMatchFileSnapshot(`golden/${name}.txt`);
  });

  it('keeps the type that is on record, whatever QEMU is here now', () => {
    const guest = { ...guestOf(SMALLEST), status: { machine: { type: 'pc-q35-7.2' } } };
    const host: MachineHost = { version: { major: 10, minor: 0, micro: 2 }, accelerator: 'tcg' };
    expect(machineSpec(guest, ...preparedFor(guest), host).machineType).toBe('pc-q35-7.2');
    expect(specOf(SMALLEST, host).machineType).toBe('pc-q35-10.0');
  });

  it('gives an interface the same address each time, and each another one', () => {
    const two = `
spec:
  domain: {memory: {guest: 64Mi}, devices: {interfaces: [{name: a, masquerade: {}}, {name: b, bridge: {}}]}}
  networks: [{name: a, pod: {}}, {name: b, multus: {networkName: br0}}]
`;
    const macs = specOf(two).networks?.map(({ mac }) => mac);
    expect(specOf(two).networks?.map(({ mac }) => mac)).toEqual(macs);
    expect(new Set(macs).size).toBe(2);
    for (const mac of macs ?? []) expect(mac).toMatch(/^02(:[0-9a-f]{2}){5}$/);
  });

  it('moves no device when one is added at the end', () => {
    const disks = (count: number): string => {
      const names = Array.from({ length: count }, (_, index) => `d${index}`);
      const list = (each: (name: string) => string): string => names.map(each).join(', ');
      return `
spec:
  domain: {memory: {guest: 64Mi}, devices: {disks: [${list((name) => `{name: ${name}, disk: {bus: virtio}}`)}], interfaces: [{name: a, masquerade: {}}]}}
  networks: [{name: a, pod: {}}]
  volumes: [${list((name) => `{name: ${name}, emptyDisk: {capacity: 1Mi}}`)}]
`;
    };
    const three = specOf(disks(3));
    const four = specOf(disks(4));
    expect(four.disks?.slice(0, 3)).toEqual(three.disks);
    expect(four.networks).toEqual(three.networks);
    expect(() => specOf(disks(20))).toThrow(
      'spec.domain.devices.disks[19].disk.bus: this machine has room for no more',
    );
  });

  it('puts a guest on the bridge that it names', () => {
    const guest = guestOf(MICROVM);
    guest.metadata.annotations = { 'godwit.dev/bridge': 'br0' };
    expect(wantedInterfaces(guest)[0]?.connection).toEqual({ kind: 'bridge', bridge: 'br0' });
    guest.metadata.annotations = { 'godwit.dev/bridge': '-br0' };
    expect(() => wantedInterfaces(guest)).toThrow('metadata.annotations[godwit.dev/bridge]: -br0 is no name');
  });

  const disk = (text: string, volume = 'emptyDisk: {capacity: 1Gi}') => `
spec:
  domain: {memory: {guest: 64Mi}, devices: {disks: [${text}]}}
  volumes: [{name: a, ${volume}}]
`;
  const network = (text: string) => `
spec:
  domain: {memory: {guest: 64Mi}, devices: {interfaces: [${text}]}}
  networks: [{name: a, pod: {}}, {name: m, multus: {networkName: "no/such name"}}]
`;
  it.each([
    ['no memory', 'spec: {domain: {devices: {}}}', 'spec.domain.memory.guest'],
    [
      'a machine of another distribution',
      'spec: {domain: {memory: {guest: 1Gi}, machine: {type: pc-q35-rhel9.2.0}, devices: {}}}',
      'spec.domain.machine.type',
    ],
    [
      'EFI',
      'spec: {domain: {memory: {guest: 1Gi}, firmware: {bootloader: {efi: {}}}, devices: {}}}',
      'spec.domain.firmware.bootloader.efi',
    ],
    [
      'a UUID that is none',
      'spec: {domain: {memory: {guest: 1Gi}, firmware: {uuid: "1,x=y"}, devices: {}}}',
      'spec.domain.firmware.uuid',
    ],
    [
      'a bad policy',
      'spec: {domain: {memory: {guest: 1Gi}, cpu: {features: [{name: a, policy: b}]}, devices: {}}}',
      'spec.domain.cpu.features[0].policy',
    ],
    ['scsi', disk('{name: a, disk: {bus: scsi}}'), 'spec.domain.devices.disks[0].disk.bus'],
    ['a drive on usb', disk('{name: a, cdrom: {bus: usb}}'), 'spec.domain.devices.disks[0].cdrom.bus'],
    ['a writable drive', disk('{name: a, cdrom: {readonly: false}}'), 'spec.domain.devices.disks[0].cdrom.readonly'],
    ['a lun', disk('{name: a, lun: {bus: sata}}'), 'spec.domain.devices.disks[0].lun'],
    [
      'a read-only disk on sata',
      disk('{name: a, disk: {bus: sata, readonly: true}}'),
      'spec.domain.devices.disks[0].disk.bus',
    ],
    [
      'a read-only claim on sata',
      disk('{name: a, disk: {bus: sata}}', 'persistentVolumeClaim: {claimName: a, readOnly: true}'),
      'spec.domain.devices.disks[0].disk.bus',
    ],
    ['a disk without a volume', disk('{name: b, disk: {bus: virtio}}'), 'spec.domain.devices.disks[0].name'],
    ['another card', network('{name: a, masquerade: {}, model: e1000}'), 'spec.domain.devices.interfaces[0].model'],
    ['passing a device through', network('{name: a, sriov: {}}'), 'spec.domain.devices.interfaces[0].sriov'],
    [
      'an interface that is down',
      network('{name: a, bridge: {}, state: down}'),
      'spec.domain.devices.interfaces[0].state',
    ],
    ['an interface without a network', network('{name: b, bridge: {}}'), 'spec.domain.devices.interfaces[0].name'],
    ['what is no bridge', network('{name: m, bridge: {}}'), 'spec.domain.devices.interfaces[0]: such name is no name'],
    [
      'booting from the network',
      network('{name: a, bridge: {}, bootOrder: 1}'),
      'spec.domain.devices.interfaces[0].bootOrder',
    ],
  ])('names the field that asks for %s', (_, yaml, field) => {
    expect(() => specOf(yaml)).toThrow(field);
  });
});

describe('processors', () => {
  const cpuWith = (more: string, type = 'q35') => {
    const { sockets, socketsMax } = specOf(`
spec:
  domain:
    machine: {type: ${type}}
    memory: {guest: 64Mi}
    cpu: {sockets: 4, cores: 2, maxSockets: 8}
    devices: {}
${more}`).cpu;
    return { sockets, socketsMax };
  };

  it('are those that the guest has now, with room for more', () => {
    expect(cpuWith('')).toEqual({ sockets: 4, socketsMax: 8 });
    expect(cpuWith('status: {currentCPUTopology: {sockets: 2, cores: 2, threads: 1}}')).toEqual({
      sockets: 2,
      socketsMax: 8,
    });
    expect(cpuWith('status: {currentCPUTopology: {sockets: 8, cores: 2, threads: 1}}')).toEqual({
      sockets: 8,
      socketsMax: 8,
    });
  });

  it('cannot be plugged into a machine without PCI', () => {
    expect(cpuWith('', 'microvm')).toEqual({ sockets: 4, socketsMax: undefined });
  });
});

describe('memory', () => {
  const memoryWith = (memory: string, status = '', type = 'q35') => {
    const { memoryBytes, memoryRoom } = specOf(`
spec:
  domain:
    machine: {type: ${type}}
    memory: ${memory}
    devices: {}
${status}`);
    return [
      memoryBytes / 2 ** 20,
      memoryRoom && [memoryRoom.unitBytes / 2 ** 20, memoryRoom.slots, memoryRoom.plugged],
    ];
  };
  const GROWING = '{guest: 1280Mi, maxGuest: 2Gi}';

  it('is what the guest started with, and what was plugged in since', () => {
    expect(memoryWith('{guest: 1Gi, maxGuest: 2Gi}')).toEqual([1024, [128, 8, 0]]);
    expect(memoryWith(GROWING, 'status: {memory: {guestAtBoot: 1Gi, guestCurrent: 1Gi}}')).toEqual([1024, [128, 8, 0]]);
    expect(memoryWith(GROWING, 'status: {memory: {guestAtBoot: 1Gi, guestCurrent: 1280Mi}}')).toEqual([
      1024,
      [128, 8, 2],
    ]);
  });

  it('cannot be plugged into a machine without PCI, nor without a limit', () => {
    expect(memoryWith('{guest: 1Gi, maxGuest: 2Gi}', '', 'microvm')).toEqual([1024, undefined]);
    expect(memoryWith('{guest: 1Gi}')).toEqual([1024, undefined]);
  });
});
