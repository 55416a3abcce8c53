import { describe, expect, it } from 'vitest';
import { type DefaultsContext, withVirtualMachineDefaults, withVirtualMachineInstanceDefaults } from './defaults.ts';
import type { KubeVirtConfiguration } from './kube-virt.ts';
import { CONTAINER_DISK_MACHINE, GUESTS, objectsOf } from './manifests.fixture.ts';
import type { VirtualMachine, VirtualMachineSpec } from './virtual-machine.ts';
import type { VirtualMachineInstanceSpec } from './virtual-machine-instance-spec.ts';

type Spec = VirtualMachineInstanceSpec;

function context(configuration: KubeVirtConfiguration = {}): DefaultsContext {
  return { configuration, newUuid: () => 'made-up' };
}

function guest(spec: Partial<Spec>, configuration?: KubeVirtConfiguration): Spec {
  return withVirtualMachineInstanceDefaults({ domain: { devices: {} }, ...spec }, context(configuration));
}

function domain(fields: Partial<Spec['domain']>, configuration?: KubeVirtConfiguration): Spec['domain'] {
  return guest({ domain: { devices: {}, ...fields } }, configuration).domain;
}

describe('a guest of which nothing is said', () => {
  it('is this one', () => {
    expect(guest({})).toEqual({
      architecture: 'amd64',
      terminationGracePeriodSeconds: 30,
      networks: [{ name: 'default', pod: {} }],
      domain: {
        machine: { type: 'q35' },
        firmware: { uuid: 'made-up' },
        cpu: { sockets: 1, cores: 1, threads: 1, model: 'host-model' },
        memory: {},
        resources: {},
        devices: { interfaces: [{ name: 'default', bridge: {} }] },
      },
    });
  });
  it('is what the cluster says', () => {
    const configuration: KubeVirtConfiguration = {
      machineType: 'pc-q35-7.2',
      cpuModel: 'Haswell',
      evictionStrategy: 'LiveMigrate',
      network: { defaultNetworkInterface: 'masquerade' },
    };
    expect(guest({}, configuration)).toMatchObject({
      evictionStrategy: 'LiveMigrate',
      domain: {
        machine: { type: 'pc-q35-7.2' },
        cpu: { model: 'Haswell' },
        devices: { interfaces: [{ name: 'default', masquerade: {} }] },
      },
    });
  });
});

describe('what is said', () => {
  it('stays, and nothing that was given changes', () => {
    for (const { spec } of objectsOf(GUESTS)) {
      const before = JSON.stringify(spec);
      expect(withVirtualMachineInstanceDefaults(spec as Spec, context())).toMatchObject({
        ...(spec as object),
        domain: expect.anything(),
      });
      expect(JSON.stringify(spec)).toBe(before);
    }
  });
  it('is the same when it is said twice', () => {
    const [spec] = objectsOf(CONTAINER_DISK_MACHINE).map((each) => (each as VirtualMachine).spec.template.spec);
    if (!spec) throw new Error('no template');
    const once = withVirtualMachineInstanceDefaults(spec, context());
    expect(withVirtualMachineInstanceDefaults(once, { ...context(), newUuid: () => 'another' })).toEqual(once);
  });
  it.each<[what: string, given: Partial<Spec>, expected: object]>([
    ['an eviction strategy', { evictionStrategy: 'None' }, { evictionStrategy: 'None' }],
    ['a grace period of none', { terminationGracePeriodSeconds: 0 }, { terminationGracePeriodSeconds: 0 }],
    ['a UUID', { domain: { devices: {}, firmware: { uuid: 'u' } } }, { domain: { firmware: { uuid: 'u' } } }],
  ])('%s', (_, given, expected) => {
    expect(guest(given, { evictionStrategy: 'LiveMigrate' })).toMatchObject(expected);
  });
});

describe('processors', () => {
  it.each<[Partial<Spec['domain']>, sockets: number | undefined, cores: number | undefined]>([
    [{}, 1, 1],
    [{ resources: { requests: { cpu: '3' } } }, 3, 1],
    [{ resources: { requests: { cpu: '1500m' } } }, 2, 1],
    [{ resources: { requests: { cpu: 0 } } }, 1, 1],
    [{ resources: { requests: { cpu: 1 }, limits: { cpu: 4 } } }, 4, 1],
    [{ cpu: { cores: 2 }, resources: { limits: { cpu: 4 } } }, undefined, 2],
    [{ cpu: { model: 'Haswell' } }, 1, 1],
  ])('%j: %s sockets, %s cores', (fields, sockets, cores) => {
    const { cpu } = domain(fields);
    expect(cpu?.sockets).toBe(sockets);
    expect(cpu?.cores).toBe(cores);
  });
});

describe('memory', () => {
  it.each<[what: string, Partial<Spec['domain']>, overcommit: number, guest: unknown, requests: object | undefined]>([
    ['of the guest', { memory: { guest: '1Gi' } }, 100, '1Gi', { memory: '1Gi' }],
    ['that is overcommitted', { memory: { guest: '3Gi' } }, 150, '3Gi', { memory: '2Gi' }],
    ['that is overcommitted to uneven bytes', { memory: { guest: '1000' } }, 300, '1000', { memory: '333' }],
    ['of the pod', { resources: { requests: { memory: '512M' } } }, 100, '512M', { memory: '512M' }],
    ['of the limits', { resources: { limits: { memory: '1Gi', cpu: 1 } } }, 100, '1Gi', { memory: '1Gi', cpu: 1 }],
    ['of huge pages', { memory: { hugepages: { pageSize: '2Mi' } } }, 100, '2Mi', { memory: '2Mi' }],
    [
      'of both',
      { memory: { guest: '2Gi' }, resources: { requests: { memory: '1Gi' } } },
      100,
      '2Gi',
      { memory: '1Gi' },
    ],
    ['of nobody', {}, 100, undefined, undefined],
  ])('%s', (_, fields, memoryOvercommit, guestMemory, requests) => {
    const { memory, resources } = domain(fields, { developerConfiguration: { memoryOvercommit } });
    expect(memory?.guest).toBe(guestMemory);
    expect(resources?.requests).toEqual(requests);
  });
});

describe('devices', () => {
  it('shows volumes that no device shows', () => {
    const { devices } = guest({
      volumes: [
        { name: 'a', emptyDisk: { capacity: '1Gi' } },
        { name: 'b', emptyDisk: { capacity: '1Gi' } },
        { name: 'c', emptyDisk: { capacity: '1Gi' } },
      ],
      domain: { devices: { disks: [{ name: 'b', lun: {} }], filesystems: [{ name: 'c', virtiofs: {} }] } },
    }).domain;
    expect(devices.disks).toEqual([
      { name: 'b', lun: { bus: 'sata' } },
      { name: 'a', disk: { bus: 'sata' } },
    ]);
  });
  it('gives disks a bus, and closes trays', () => {
    const disks = [
      { name: 'a', disk: { bus: 'virtio' } },
      { name: 'b', cdrom: { readonly: false } },
      { name: 'c', cdrom: {} },
    ];
    expect(domain({ devices: { disks } }).devices.disks).toEqual([
      { name: 'a', disk: { bus: 'virtio' } },
      { name: 'b', cdrom: { bus: 'sata', readonly: false, tray: 'closed' } },
      { name: 'c', cdrom: { bus: 'sata', readonly: true, tray: 'closed' } },
    ]);
  });
  it.each<[what: string, Partial<Spec>]>([
    ['it is declined', { domain: { devices: { autoattachPodInterface: false } } }],
    ['there is a network', { networks: [{ name: 'n', multus: { networkName: 'n' } }] }],
    ['there is an interface', { domain: { devices: { interfaces: [{ name: 'n', bridge: {} }] } } }],
  ])('adds no network where %s', (_, spec) => {
    const { networks, domain: made } = guest(spec);
    expect(networks).toEqual(spec.networks);
    expect(made.devices.interfaces).toEqual(spec.domain?.devices.interfaces);
  });
  it.each([
    ['fedora', 'Always'],
    ['fedora:latest', 'Always'],
    ['fedora:41', 'IfNotPresent'],
    ['fedora@sha256:0', 'IfNotPresent'],
  ])('looks the image %s up: %s', (image, imagePullPolicy) => {
    const { volumes } = guest({ volumes: [{ name: 'a', containerDisk: { image } }] });
    expect(volumes?.[0]?.containerDisk).toEqual({ image, imagePullPolicy });
  });
});

describe('a machine', () => {
  const spec = (fields: Partial<VirtualMachineSpec> = {}): VirtualMachineSpec => ({
    runStrategy: 'Always',
    template: { spec: { domain: { devices: {} } } },
    ...fields,
  });
  it('gets an identity, and no size', () => {
    expect(withVirtualMachineDefaults(spec(), context())).toEqual({
      runStrategy: 'Always',
      template: {
        spec: {
          architecture: 'amd64',
          domain: { devices: {}, machine: { type: 'q35' }, firmware: { uuid: 'made-up' } },
        },
      },
    });
  });
  it('is the machine that is preferred', () => {
    const preference = { machine: { preferredMachineType: 'pc-q35-8.2' } };
    const { template } = withVirtualMachineDefaults(spec(), context({ machineType: 'pc-q35-7.2' }), preference);
    expect(template.spec?.domain.machine?.type).toBe('pc-q35-8.2');
  });
  it('refers to the cluster by default', () => {
    const given = spec({
      instancetype: { name: 'small' },
      preference: { name: 'linux', kind: 'virtualmachinepreference' },
    });
    expect(withVirtualMachineDefaults(given, context())).toMatchObject({
      instancetype: { name: 'small', kind: 'virtualmachineclusterinstancetype' },
      preference: { name: 'linux', kind: 'virtualmachinepreference' },
    });
  });
  it('without a template stays as it is: validation refuses it', () => {
    const given = spec({ template: {} });
    expect(withVirtualMachineDefaults(given, context())).toBe(given);
  });
});
