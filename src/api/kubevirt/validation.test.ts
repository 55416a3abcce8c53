import { describe, expect, it } from 'vitest';
import { withVirtualMachineDefaults, withVirtualMachineInstanceDefaults } from './defaults.ts';
import {
  CONTAINER_DISK_MACHINE,
  GUESTS,
  INSTANCETYPE_MACHINE,
  objectsOf,
  PLACED_MACHINE,
} from './manifests.fixture.ts';
import { virtualMachineErrors, virtualMachineInstanceErrors } from './validation.ts';
import type { VirtualMachine, VirtualMachineSpec } from './virtual-machine.ts';
import type { VirtualMachineInstance } from './virtual-machine-instance.ts';
import type { VirtualMachineInstanceSpec } from './virtual-machine-instance-spec.ts';

type Spec = VirtualMachineInstanceSpec;
type Domain = Spec['domain'];

const UUID = '5d307ca9-b3ef-428c-8861-06e72d69f223';
const CONTEXT = { configuration: {}, newUuid: () => UUID };

function guest(domain: Partial<Domain>, rest: Partial<Spec> = {}): string[] {
  const spec: Spec = { ...rest, domain: { devices: {}, memory: { guest: '1Gi' }, ...domain } };
  return virtualMachineInstanceErrors(spec).map(({ field, message }) => `${field}: ${message}`);
}

describe('good manifests', () => {
  it('have no errors, with their defaults', () => {
    const machines = [CONTAINER_DISK_MACHINE, PLACED_MACHINE, INSTANCETYPE_MACHINE]
      .flatMap(objectsOf)
      .filter(({ kind }) => kind === 'VirtualMachine');
    for (const machine of machines) {
      const { spec } = machine as VirtualMachine;
      const { template } = withVirtualMachineDefaults(spec, CONTEXT);
      const made = template.spec && withVirtualMachineInstanceDefaults(template.spec, CONTEXT);
      expect(virtualMachineErrors({ ...spec, template: made ? { spec: made } : {} }, {})).toEqual([]);
    }
    for (const object of objectsOf(GUESTS)) {
      const spec = withVirtualMachineInstanceDefaults((object as VirtualMachineInstance).spec, CONTEXT);
      expect(virtualMachineInstanceErrors(spec)).toEqual([]);
    }
  });
});

const volumes = (...names: string[]): Spec['volumes'] =>
  names.map((name) => ({ name, emptyDisk: { capacity: '1Gi' } }));
const disks = (...given: NonNullable<Domain['devices']['disks']>): Partial<Domain> => ({ devices: { disks: given } });
const interfaces = (...given: NonNullable<Domain['devices']['interfaces']>): Partial<Domain> => ({
  devices: { interfaces: given },
});
const pod = { name: 'a', pod: {} };

describe('disks and volumes', () => {
  it.each<[what: string, Partial<Domain>, Partial<Spec>, errors: string[]]>([
    ['a volume without a disk', {}, { volumes: volumes('v') }, ['spec.volumes[0].name: Not found: "v"']],
    ['a disk without a volume', disks({ name: 'd' }), {}, ['spec.domain.devices.disks[0].name: Not found: "d"']],
    ['an empty drive', disks({ name: 'd', cdrom: {} }), {}, []],
    ['a dump without a disk', {}, { volumes: [{ name: 'v', memoryDump: { claimName: 'c' } }] }, []],
    [
      'a volume as a filesystem',
      { devices: { filesystems: [{ name: 'v', virtiofs: {} }] } },
      { volumes: volumes('v') },
      [],
    ],
    [
      'a filesystem without a volume',
      { devices: { filesystems: [{ name: 'v', virtiofs: {} }] } },
      {},
      ['spec.domain.devices.filesystems[0].name: Not found: "v"'],
    ],
    [
      'two volumes of one name',
      disks({ name: 'v' }),
      { volumes: volumes('v', 'v') },
      ['spec.volumes[1].name: Duplicate value: "v"'],
    ],
    [
      'two disks of one name',
      disks({ name: 'v' }, { name: 'v' }),
      { volumes: volumes('v') },
      ['spec.domain.devices.disks[1].name: Duplicate value: "v"'],
    ],
    [
      'a disk that is two things',
      disks({ name: 'v', disk: {}, cdrom: {} }),
      { volumes: volumes('v') },
      ['spec.domain.devices.disks[0]: Invalid value: ["disk","cdrom"]: must be one of disk, cdrom and lun'],
    ],
    [
      'an unknown bus',
      disks({ name: 'v', disk: { bus: 'ide' } }),
      { volumes: volumes('v') },
      [
        'spec.domain.devices.disks[0].disk.bus: Unsupported value: "ide": supported values: "virtio", "sata", "scsi", "usb"',
      ],
    ],
    [
      'a CD-ROM on virtio',
      disks({ name: 'v', cdrom: { bus: 'virtio' } }),
      { volumes: volumes('v') },
      ['spec.domain.devices.disks[0].cdrom.bus: Invalid value: "virtio": is no bus of a CD-ROM'],
    ],
    [
      'a read-only disk on sata',
      disks({ name: 'v', disk: { bus: 'sata', readonly: true } }),
      { volumes: volumes('v') },
      ['spec.domain.devices.disks[0].disk.bus: Invalid value: "sata": has no hard disks that are read-only'],
    ],
    [
      'a thread on sata',
      disks({ name: 'v', disk: { bus: 'sata' }, dedicatedIOThread: true }),
      { volumes: volumes('v') },
      ['spec.domain.devices.disks[0].dedicatedIOThread: Invalid value: true: needs the bus virtio'],
    ],
    [
      'an odd serial number',
      disks({ name: 'v', serial: 'a b' }),
      { volumes: volumes('v') },
      [
        'spec.domain.devices.disks[0].serial: Invalid value: "a b": must consist of letters, digits, "_", ".", "+" and "-"',
      ],
    ],
    [
      'an unknown cache',
      disks({ name: 'v', cache: 'much' }),
      { volumes: volumes('v') },
      [
        'spec.domain.devices.disks[0].cache: Unsupported value: "much": supported values: "none", "writethrough", "writeback"',
      ],
    ],
    [
      'a boot order of zero',
      disks({ name: 'v', bootOrder: 0 }),
      { volumes: volumes('v') },
      ['spec.domain.devices.disks[0].bootOrder: Invalid value: 0: must be greater than 0'],
    ],
    [
      'the same boot order twice',
      disks({ name: 'v', bootOrder: 1 }, { name: 'w', bootOrder: 1 }),
      { volumes: volumes('v', 'w') },
      ['spec.domain.devices.disks[1].bootOrder: Duplicate value: 1'],
    ],
  ])('%s', (_, domain, rest, errors) => {
    expect(guest(domain, rest)).toEqual(errors);
  });

  type Source = Omit<NonNullable<Spec['volumes']>[number], 'name'>;
  it.each<[what: string, Source, error: string | undefined]>([
    ['no source', {}, 'spec.volumes[0]: Invalid value: []: must have exactly one source'],
    [
      'two sources',
      { emptyDisk: { capacity: 1 }, secret: { secretName: 's' } },
      'spec.volumes[0]: Invalid value: ["emptyDisk","secret"]: must have exactly one source',
    ],
    [
      'cloud-init without data',
      { cloudInitNoCloud: {} },
      'spec.volumes[0].cloudInitNoCloud: Required value: user data or network data must be given',
    ],
    [
      'cloud-init with two data',
      { cloudInitNoCloud: { userData: 'a', secretRef: { name: 'b' } } },
      'spec.volumes[0].cloudInitNoCloud: Invalid value: 2: user data must be given in one way only',
    ],
    [
      'cloud-init with two networks',
      { cloudInitConfigDrive: { networkData: 'a', networkDataBase64: 'YQ==' } },
      'spec.volumes[0].cloudInitConfigDrive: Invalid value: 2: network data must be given in one way only',
    ],
    ['cloud-init with network data alone', { cloudInitNoCloud: { networkData: 'a' } }, undefined],
    ['cloud-init at its limit', { cloudInitNoCloud: { userData: 'x'.repeat(2048) } }, undefined],
    [
      'cloud-init beyond it',
      { cloudInitNoCloud: { userData: 'x'.repeat(2049) } },
      'spec.volumes[0].cloudInitNoCloud.userData: Invalid value: 2049: must not be longer than 2048 bytes: use a Secret',
    ],
    [
      'cloud-init in no base64',
      { cloudInitNoCloud: { userDataBase64: '%' } },
      'spec.volumes[0].cloudInitNoCloud.userDataBase64: Invalid value: "%": must be base64 of UTF-8',
    ],
    [
      'a host disk beside its directory',
      { hostDisk: { path: '/a/../b', type: 'Disk' } },
      'spec.volumes[0].hostDisk.path: Invalid value: "/a/../b": must be an absolute path without ".."',
    ],
    [
      'a host disk nowhere',
      { hostDisk: { path: 'disk.img', type: 'Disk' } },
      'spec.volumes[0].hostDisk.path: Invalid value: "disk.img": must be an absolute path without ".."',
    ],
    [
      'a size of what is there',
      { hostDisk: { path: '/a', type: 'Disk', capacity: '1Gi' } },
      'spec.volumes[0].hostDisk.capacity: Invalid value: "1Gi": may be set only where the type is DiskOrCreate',
    ],
    [
      'an empty disk of no size',
      { emptyDisk: { capacity: 0 } },
      'spec.volumes[0].emptyDisk.capacity: Invalid value: 0: must be positive',
    ],
    [
      'an empty disk of less than that',
      { emptyDisk: { capacity: '-1Gi' } },
      'spec.volumes[0].emptyDisk.capacity: Invalid value: "-1Gi": must be positive',
    ],
    [
      'a host disk of no size',
      { hostDisk: { path: '/a', type: 'DiskOrCreate', capacity: '0' } },
      'spec.volumes[0].hostDisk.capacity: Invalid value: "0": must be positive',
    ],
    [
      'a host disk whose path ends early',
      { hostDisk: { path: '/a\0b', type: 'Disk' } },
      'spec.volumes[0].hostDisk.path: Invalid value: "/a\\u0000b": must not contain the character NUL',
    ],
    ['a ConfigMap without a name', { configMap: {} }, 'spec.volumes[0].configMap.name: Required value'],
    ['a Secret without a name', { secret: {} }, 'spec.volumes[0].secret.secretName: Required value'],
    [
      'an account without a name',
      { serviceAccount: {} },
      'spec.volumes[0].serviceAccount.serviceAccountName: Required value',
    ],
  ])('a volume with %s', (_, source, error) => {
    const found = guest(disks({ name: 'v' }), { volumes: [{ name: 'v', ...source }] });
    expect(found).toEqual(error === undefined ? [] : [error]);
  });
  it('a volume with an odd name', () => {
    expect(guest(disks({ name: 'V_' }), { volumes: volumes('V_') })[0]).toContain(
      'spec.volumes[0].name: Invalid value: "V_"',
    );
  });
});

describe('networks and interfaces', () => {
  it.each<[what: string, Partial<Domain>, Partial<Spec>, errors: string[]]>([
    [
      'an interface without a network',
      interfaces({ name: 'a', bridge: {} }),
      {},
      ['spec.domain.devices.interfaces[0].name: Not found: "a"'],
    ],
    ['a network without an interface', {}, { networks: [pod] }, ['spec.networks[0].name: Not found: "a"']],
    [
      'one network twice',
      interfaces({ name: 'a' }),
      { networks: [pod, { name: 'a', multus: { networkName: 'n' } }] },
      ['spec.networks[1].name: Duplicate value: "a"'],
    ],
    [
      'one interface twice',
      interfaces({ name: 'a' }, { name: 'a' }),
      { networks: [pod] },
      ['spec.domain.devices.interfaces[1].name: Duplicate value: "a"'],
    ],
    [
      'two networks of the pod',
      interfaces({ name: 'a' }, { name: 'b' }),
      { networks: [pod, { name: 'b', pod: {} }] },
      [`spec.networks: Invalid value: ["a","b"]: only one may be the pod's`],
    ],
    [
      'a network of no kind',
      interfaces({ name: 'a' }),
      { networks: [{ name: 'a' }] },
      ['spec.networks[0]: Invalid value: "a": must be on exactly one of pod and multus'],
    ],
    [
      'two bindings',
      interfaces({ name: 'a', bridge: {}, masquerade: {} }),
      { networks: [pod] },
      ['spec.domain.devices.interfaces[0]: Invalid value: ["masquerade","bridge"]: must be bound in one way only'],
    ],
    [
      'masquerade elsewhere',
      interfaces({ name: 'a', masquerade: {} }),
      { networks: [{ name: 'a', multus: { networkName: 'n' } }] },
      [`spec.domain.devices.interfaces[0].masquerade: Invalid value: "a": is possible on the pod's network only`],
    ],
    [
      'a wrong hardware address',
      interfaces({ name: 'a', macAddress: 'de:ad' }),
      { networks: [pod] },
      [
        'spec.domain.devices.interfaces[0].macAddress: Invalid value: "de:ad": must be six bytes such as de:ad:00:00:be:af',
      ],
    ],
    [
      'a port of zero',
      interfaces({ name: 'a', ports: [{ port: 0 }] }),
      { networks: [pod] },
      ['spec.domain.devices.interfaces[0].ports[0].port: Invalid value: 0: must be between 1 and 65535'],
    ],
    [
      'an unknown protocol',
      interfaces({ name: 'a', ports: [{ port: 1, protocol: 'ICMP' }] }),
      { networks: [pod] },
      [
        'spec.domain.devices.interfaces[0].ports[0].protocol: Unsupported value: "ICMP": supported values: "TCP", "UDP"',
      ],
    ],
    [
      'two ports of one name',
      interfaces({
        name: 'a',
        ports: [
          { name: 'x', port: 1 },
          { name: 'x', port: 2 },
        ],
      }),
      { networks: [pod] },
      ['spec.domain.devices.interfaces[0].ports[1].name: Duplicate value: "x"'],
    ],
    ['two ports without names', interfaces({ name: 'a', ports: [{ port: 1 }, { port: 2 }] }), { networks: [pod] }, []],
    [
      'a disk and an interface that boot at once',
      { devices: { disks: [{ name: 'v', bootOrder: 1 }], interfaces: [{ name: 'a', bootOrder: 1 }] } },
      { networks: [pod], volumes: volumes('v') },
      ['spec.domain.devices.interfaces[0].bootOrder: Duplicate value: 1'],
    ],
  ])('%s', (_, domain, rest, errors) => {
    expect(guest(domain, rest)).toEqual(errors);
  });
});

describe('the rest of a guest', () => {
  it.each<[what: string, Partial<Domain>, Partial<Spec>, errors: string[]]>([
    [
      'no memory',
      { memory: {} },
      {},
      ['spec.domain.memory.guest: Required value: or resources.requests.memory, or resources.limits.memory'],
    ],
    [
      'a negative memory',
      { memory: { guest: '-1' } },
      {},
      ['spec.domain.memory.guest: Invalid value: "-1": must be positive'],
    ],
    [
      'no memory at all',
      { memory: { guest: 0 } },
      {},
      ['spec.domain.memory.guest: Invalid value: 0: must be positive'],
    ],
    [
      'a single byte',
      { memory: { guest: 1 } },
      {},
      ['spec.domain.memory.guest: Invalid value: 1: must be at least 1M'],
    ],
    ['the least memory', { memory: { guest: '1M' } }, {}, []],
    [
      'a launcher that asks for next to nothing',
      { resources: { requests: { memory: '100k' }, limits: { memory: '100k' } }, memory: {} },
      {},
      [
        'spec.domain.resources.requests.memory: Invalid value: "100k": must be at least 1M',
        'spec.domain.resources.limits.memory: Invalid value: "100k": must be at least 1M',
      ],
    ],
    ['a launcher that asks for nothing', { resources: { requests: { memory: 0 } } }, {}, []],
    [
      'an unknown machine',
      { machine: { type: 'toaster' } },
      {},
      [
        'spec.domain.machine.type: Unsupported value: "toaster": supported values: "q35", "pc", "microvm", "pc-q35-<version>", "pc-i440fx-<version>"',
      ],
    ],
    ["a distribution's machine", { machine: { type: 'pc-q35-rhel9.4.0' } }, {}, []],
    ['a machine of another architecture', { machine: { type: 'virt' } }, {}, []],
    [
      'a processor that cannot have that name',
      { cpu: { model: 'Haswell,+everything' } },
      {},
      [
        'spec.domain.cpu.model: Invalid value: "Haswell,+everything": must be host-model, host-passthrough, or a model such as Haswell',
      ],
    ],
    ['a processor that may come one day', { cpu: { model: 'Gooselake-v2' } }, {}, []],
    [
      'an unknown policy',
      { cpu: { features: [{ name: 'vmx', policy: 'maybe' }, { name: 'svm' }] } },
      {},
      [
        'spec.domain.cpu.features[0].policy: Unsupported value: "maybe": supported values: "force", "require", "optional", "disable", "forbid"',
      ],
    ],
    [
      'arguments that end early',
      { firmware: { kernelBoot: { kernelArgs: 'a\0b', container: { image: 'i', kernelPath: '/k' } } } },
      {},
      ['spec.domain.firmware.kernelBoot.kernelArgs: Invalid value: "a\\u0000b": must not contain the character NUL'],
    ],
    [
      'a request beyond its limit',
      { resources: { requests: { cpu: 2 }, limits: { cpu: '1500m' } } },
      {},
      ['spec.domain.resources.requests.cpu: Invalid value: 2: must not be more than the limit, 1500m'],
    ],
    [
      'a guest beyond its limit',
      { resources: { limits: { memory: '512Mi' } } },
      {},
      ['spec.domain.memory.guest: Invalid value: "1Gi": must not be more than the limit, 512Mi'],
    ],
    [
      'a negative request',
      { resources: { requests: { memory: '-1' } } },
      {},
      ['spec.domain.resources.requests.memory: Invalid value: "-1": must not be negative'],
    ],
    [
      'more sockets than there may be',
      { cpu: { sockets: 4, maxSockets: 2 } },
      {},
      ['spec.domain.cpu.sockets: Invalid value: 4: must not be more than maxSockets, 2'],
    ],
    [
      'two bootloaders',
      { firmware: { bootloader: { bios: {}, efi: {} } } },
      {},
      ['spec.domain.firmware.bootloader: Invalid value: ["bios","efi"]: must be one of bios and efi'],
    ],
    ['no UUID', { firmware: { uuid: 'x' } }, {}, ['spec.domain.firmware.uuid: Invalid value: "x": must be a UUID']],
    [
      'arguments for no kernel',
      { firmware: { kernelBoot: { kernelArgs: 'a' } } },
      {},
      ['spec.domain.firmware.kernelBoot.container: Required value: arguments are for a kernel'],
    ],
    [
      'an image without a kernel',
      { firmware: { kernelBoot: { container: { image: 'i' } } } },
      {},
      ['spec.domain.firmware.kernelBoot.container.kernelPath: Required value: or initrdPath'],
    ],
    [
      'a negative grace period',
      {},
      { terminationGracePeriodSeconds: -1 },
      ['spec.terminationGracePeriodSeconds: Invalid value: -1: must not be negative'],
    ],
  ])('%s', (_, domain, rest, errors) => {
    expect(guest(domain, rest)).toEqual(errors);
  });
  it('an odd host name', () => {
    expect(guest({}, { hostname: 'a.b' })[0]).toContain('spec.hostname: Invalid value: "a.b"');
  });
});

describe('a machine', () => {
  const errorsOf = (spec: Partial<VirtualMachineSpec>, featureGates: string[] = []): string[] =>
    virtualMachineErrors(
      { template: { spec: { domain: { devices: {} } } }, ...spec },
      { developerConfiguration: { featureGates } },
    ).map(({ field }) => field);
  it.each<[Partial<VirtualMachineSpec>, fields: string[]]>([
    [{ runStrategy: 'Always' }, []],
    [{ running: true }, []],
    [{ running: true, runStrategy: 'Always' }, ['spec.running']],
    [{}, ['spec.runStrategy']],
    [{ runStrategy: 'WaitAsReceiver' }, ['spec.runStrategy']],
    [{ runStrategy: 'Halted', template: {} }, ['spec.template.spec']],
    [{ runStrategy: 'Halted', instancetype: {} }, ['spec.instancetype.name']],
    [{ runStrategy: 'Halted', instancetype: { name: 'a', kind: 'VirtualMachineInstancetype' } }, []],
    [{ runStrategy: 'Halted', instancetype: { name: 'a', kind: 'virtualmachineclusterinstancetypes' } }, []],
    [{ runStrategy: 'Halted', instancetype: { name: 'a', kind: 'pod' } }, ['spec.instancetype.kind']],
    [{ runStrategy: 'Halted', preference: { name: 'a', inferFromVolume: 'v' } }, ['spec.preference.inferFromVolume']],
    [{ runStrategy: 'Halted', preference: { inferFromVolume: 'v' } }, []],
  ])('%j is at fault at %j', (spec, fields) => {
    expect(errorsOf(spec)).toEqual(fields);
  });
  it('may wait for a guest from elsewhere where that is switched on', () => {
    expect(errorsOf({ runStrategy: 'WaitAsReceiver' }, ['DecentralizedLiveMigration'])).toEqual([]);
  });
  it('is held to what its template says, by the path there', () => {
    const template = { spec: { domain: { devices: { disks: [{ name: 'd' }] } } } };
    expect(errorsOf({ runStrategy: 'Halted', template })).toEqual(['spec.template.spec.domain.devices.disks[0].name']);
  });
});
