import { describe, expect, it } from 'vitest';
import { withInstancetypeAndPreference } from './apply-instancetype.ts';
import type { GuestDraft, Sizing } from './guest-draft.ts';
import type { InstancetypeSpec } from './instancetype.ts';
import type { PreferenceSpec } from './preference.ts';
import type { VirtualMachineInstanceSpec } from './virtual-machine-instance-spec.ts';

type Spec = VirtualMachineInstanceSpec;
type Domain = Spec['domain'];

const PATH = 'spec.template.spec';
const SMALL: InstancetypeSpec = { cpu: { guest: 4 }, memory: { guest: '2Gi' } };

function apply(domain: Partial<Domain>, sizing: Sizing, rest: Partial<Spec> = {}): GuestDraft {
  const draft: GuestDraft = { spec: { ...rest, domain: { devices: {}, ...domain } }, annotations: {} };
  const before = JSON.stringify([draft, sizing]);
  const sized = withInstancetypeAndPreference(draft, sizing, PATH);
  expect(JSON.stringify([draft, sizing])).toBe(before);
  if (!sized.draft) throw new Error(JSON.stringify(sized.conflicts));
  return sized.draft;
}

function preferred(domain: Partial<Domain>, preference: PreferenceSpec, rest: Partial<Spec> = {}): Domain {
  return apply(domain, { preference }, rest).spec.domain;
}

describe('an instance type', () => {
  it('says how large the guest is', () => {
    expect(apply({}, { instancetype: SMALL }).spec.domain).toEqual({
      devices: {},
      cpu: { sockets: 4, cores: 1, threads: 1 },
      memory: { guest: '2Gi' },
    });
  });
  it('says all it can say', () => {
    const instancetype: InstancetypeSpec = {
      cpu: { guest: 2, model: 'Haswell', dedicatedCPUPlacement: true, maxSockets: 8, numa: { a: {} }, realtime: {} },
      memory: { guest: '4Gi', maxGuest: '8Gi', hugepages: { pageSize: '2Mi' }, overcommitPercent: 25 },
      nodeSelector: { disk: 'ssd' },
      schedulerName: 'other',
      ioThreadsPolicy: 'auto',
      ioThreads: { supplementalPoolThreadCount: 2 },
      launchSecurity: { sev: {} },
      gpus: [{ name: 'gpu' }],
      hostDevices: [{ name: 'card' }],
      annotations: { size: 'small' },
    };
    expect(apply({}, { instancetype })).toEqual({
      annotations: { size: 'small' },
      spec: {
        nodeSelector: { disk: 'ssd' },
        schedulerName: 'other',
        domain: {
          cpu: {
            sockets: 2,
            cores: 1,
            threads: 1,
            model: 'Haswell',
            dedicatedCpuPlacement: true,
            maxSockets: 8,
            numa: { a: {} },
            realtime: {},
          },
          memory: { guest: '4Gi', maxGuest: '8Gi', hugepages: { pageSize: '2Mi' } },
          resources: { requests: { memory: '3Gi' } },
          ioThreadsPolicy: 'auto',
          ioThreads: { supplementalPoolThreadCount: 2 },
          launchSecurity: { sev: {} },
          devices: { gpus: [{ name: 'gpu' }], hostDevices: [{ name: 'card' }] },
        },
      },
    });
  });
  it('leaves alone what it says nothing of', () => {
    const { spec } = apply(
      { cpu: { model: 'host-passthrough' }, resources: { requests: { 'example.com/card': 1 } } },
      { instancetype: SMALL },
      { nodeSelector: { a: 'b' } },
    );
    expect(spec.nodeSelector).toEqual({ a: 'b' });
    expect(spec.domain.cpu?.model).toBe('host-passthrough');
    expect(spec.domain.resources).toEqual({ requests: { 'example.com/card': 1 } });
  });

  const FULL: InstancetypeSpec = {
    ...SMALL,
    cpu: { guest: 1, model: 'm', dedicatedCPUPlacement: false, isolateEmulatorThread: false, numa: {}, realtime: {} },
    nodeSelector: { a: 'b' },
    schedulerName: 's',
    ioThreadsPolicy: 'auto',
    launchSecurity: {},
    gpus: [{ name: 'g' }],
    hostDevices: [{ name: 'h' }],
  };
  it.each<[field: string, Partial<Domain>, Partial<Spec>?]>([
    ['domain.memory', { memory: {} }],
    ['domain.resources.requests.memory', { resources: { requests: { memory: '2Gi' } } }],
    ['domain.resources.limits.memory', { resources: { limits: { memory: '2Gi' } } }],
    ['domain.resources.requests.cpu', { resources: { requests: { cpu: 1 } } }],
    ['domain.resources.limits.cpu', { resources: { limits: { cpu: 1 } } }],
    ['domain.cpu.sockets', { cpu: { sockets: 1 } }],
    ['domain.cpu.cores', { cpu: { cores: 1 } }],
    ['domain.cpu.threads', { cpu: { threads: 1 } }],
    ['domain.cpu.model', { cpu: { model: 'm' } }],
    ['domain.cpu.dedicatedCpuPlacement', { cpu: { dedicatedCpuPlacement: true } }],
    ['domain.cpu.isolateEmulatorThread', { cpu: { isolateEmulatorThread: true } }],
    ['domain.cpu.numa', { cpu: { numa: {} } }],
    ['domain.cpu.realtime', { cpu: { realtime: {} } }],
    ['domain.ioThreadsPolicy', { ioThreadsPolicy: 'auto' }],
    ['domain.launchSecurity', { launchSecurity: {} }],
    ['domain.devices.gpus', { devices: { gpus: [{}] } }],
    ['domain.devices.hostDevices', { devices: { hostDevices: [{}] } }],
    ['nodeSelector', {}, { nodeSelector: {} }],
    ['schedulerName', {}, { schedulerName: 's' }],
  ])('conflicts with %s', (field, domain, rest) => {
    const spec = { ...rest, domain: { devices: {}, ...domain } };
    const { conflicts } = withInstancetypeAndPreference({ spec, annotations: {} }, { instancetype: FULL }, PATH);
    expect(conflicts).toEqual([
      {
        type: 'FieldValueInvalid',
        field: `${PATH}.${field}`,
        message: `VM field(s) ${PATH}.${field} conflicts with selected instance type`,
      },
    ]);
  });
  it('names all conflicts at once', () => {
    const draft = { spec: { domain: { devices: {}, memory: {}, cpu: { cores: 2 } } }, annotations: { size: 'large' } };
    const instancetype = { ...SMALL, annotations: { size: 'small' } };
    const { conflicts } = withInstancetypeAndPreference(draft, { instancetype }, PATH);
    expect(conflicts.map(({ field }) => field)).toEqual([
      `${PATH}.domain.cpu.cores`,
      `${PATH}.domain.memory`,
      'annotations.size',
    ]);
  });
  it('takes a zero for nothing, and the same annotation for no conflict', () => {
    const draft = { spec: { domain: { devices: {}, cpu: { cores: 0 } } }, annotations: { size: 'small' } };
    const sized = withInstancetypeAndPreference(
      draft,
      { instancetype: { ...SMALL, annotations: { size: 'small' } } },
      PATH,
    );
    expect(sized.conflicts).toEqual([]);
  });
  it.each<[guest: string | number, percent: number, request: string]>([
    ['1Gi', 50, '512Mi'],
    ['10Gi', 10, '9Gi'],
    ['100', 33, '67'],
    [1_000, 100, '0'],
  ])('of %s, overcommitted by %s percent, asks for %s', (guest, overcommitPercent, request) => {
    const instancetype = { cpu: { guest: 1 }, memory: { guest, overcommitPercent } };
    expect(apply({}, { instancetype }).spec.domain.resources?.requests?.['memory']).toBe(request);
  });
});

describe('the layout of processors', () => {
  type Layout = [sockets: number, cores: number, threads: number];
  it.each<[count: number, PreferenceSpec | undefined, Layout]>([
    [8, undefined, [8, 1, 1]],
    [8, {}, [8, 1, 1]],
    [8, { cpu: { preferredCPUTopology: 'sockets' } }, [8, 1, 1]],
    [8, { cpu: { preferredCPUTopology: 'preferSockets' } }, [8, 1, 1]],
    [8, { cpu: { preferredCPUTopology: 'any' } }, [8, 1, 1]],
    [8, { cpu: { preferredCPUTopology: 'preferAny' } }, [8, 1, 1]],
    [8, { cpu: { preferredCPUTopology: 'cores' } }, [1, 8, 1]],
    [8, { cpu: { preferredCPUTopology: 'preferCores' } }, [1, 8, 1]],
    [8, { cpu: { preferredCPUTopology: 'threads' } }, [1, 1, 8]],
    [8, { cpu: { preferredCPUTopology: 'preferThreads' } }, [1, 1, 8]],
    [8, { cpu: { preferredCPUTopology: 'spread' } }, [4, 2, 1]],
    [8, { cpu: { preferredCPUTopology: 'preferSpread' }, preferSpreadSocketToCoreRatio: 4 }, [2, 4, 1]],
    [8, { cpu: { preferredCPUTopology: 'spread', spreadOptions: { ratio: 8 } } }, [1, 8, 1]],
    [8, { cpu: { preferredCPUTopology: 'spread', spreadOptions: { across: 'CoresThreads' } } }, [1, 4, 2]],
    [8, { cpu: { preferredCPUTopology: 'spread', spreadOptions: { across: 'SocketsCoresThreads' } } }, [2, 2, 2]],
    [1, { cpu: { preferredCPUTopology: 'spread' } }, [1, 1, 1]],
  ])('of %s with %j is %j', (guest, preference, [sockets, cores, threads]) => {
    const sizing = {
      instancetype: { cpu: { guest }, memory: { guest: '1Gi' } },
      ...(preference ? { preference } : {}),
    };
    expect(apply({}, sizing).spec.domain.cpu).toMatchObject({ sockets, cores, threads });
  });
});

describe('a preference', () => {
  it('changes nothing where it says nothing', () => {
    const domain: Domain = { devices: { disks: [{ name: 'a' }], interfaces: [{ name: 'n' }] } };
    expect(preferred(domain, {})).toEqual(domain);
  });
  it('fills in disks', () => {
    const devices = {
      disks: [
        { name: 'a' },
        { name: 'b', disk: { bus: 'sata' }, cache: 'none' },
        { name: 'c', cdrom: {} },
        { name: 'd', lun: {} },
      ],
    };
    const preference: PreferenceSpec = {
      devices: {
        preferredDiskBus: 'virtio',
        preferredCdromBus: 'sata',
        preferredLunBus: 'scsi',
        preferredDiskCache: 'writeback',
        preferredDiskIO: 'native',
        preferredDiskDedicatedIoThread: true,
        preferredDiskBlockSize: { matchVolume: { enabled: true } },
      },
    };
    const blockSize = { matchVolume: { enabled: true } };
    expect(preferred({ devices }, preference).devices.disks).toEqual([
      { name: 'a', disk: { bus: 'virtio' }, cache: 'writeback', io: 'native', dedicatedIOThread: true, blockSize },
      { name: 'b', disk: { bus: 'sata' }, cache: 'none', io: 'native', blockSize },
      { name: 'c', cdrom: { bus: 'sata' } },
      { name: 'd', lun: { bus: 'scsi' } },
    ]);
  });
  it('fills in interfaces, and binds those on the network of the pod', () => {
    const interfaces = [{ name: 'pod' }, { name: 'other' }, { name: 'bound', bridge: {}, model: 'e1000' }];
    const networks = [
      { name: 'pod', pod: {} },
      { name: 'other', multus: { networkName: 'x' } },
      { name: 'bound', pod: {} },
    ];
    const preference = { devices: { preferredInterfaceModel: 'virtio', preferredInterfaceMasquerade: {} } };
    expect(preferred({ devices: { interfaces } }, preference, { networks }).devices.interfaces).toEqual([
      { name: 'pod', model: 'virtio', masquerade: {} },
      { name: 'other', model: 'virtio' },
      { name: 'bound', bridge: {}, model: 'e1000' },
    ]);
  });
  it('fills in other devices', () => {
    const devices: Domain['devices'] = {
      autoattachGraphicsDevice: true,
      disableHotplug: false,
      inputs: [{ name: 'i', type: 'tablet' }],
      sound: { name: 's' },
      panicDevices: [{}, { model: 'isa' }],
    };
    const preference: PreferenceSpec = {
      devices: {
        preferredAutoattachGraphicsDevice: false,
        preferredAutoattachSerialConsole: false,
        preferredNetworkInterfaceMultiQueue: true,
        preferredDisableHotplug: true,
        preferredInputBus: 'usb',
        preferredInputType: 'mouse',
        preferredSoundModel: 'ich9',
        preferredPanicDeviceModel: 'hyperv',
        preferredRng: {},
        preferredTPM: { persistent: true },
      },
    };
    expect(preferred({ devices }, preference).devices).toEqual({
      autoattachGraphicsDevice: true,
      autoattachSerialConsole: false,
      networkInterfaceMultiqueue: true,
      disableHotplug: true,
      inputs: [{ name: 'i', type: 'tablet', bus: 'usb' }],
      sound: { name: 's', model: 'ich9' },
      panicDevices: [{ model: 'hyperv' }, { model: 'isa' }],
      rng: {},
      tpm: { persistent: true },
    });
  });
  it.each<[what: string, PreferenceSpec['firmware'], own: object | undefined, expected: object | undefined]>([
    ['BIOS', { preferredUseBios: true, preferredUseBiosSerial: true }, undefined, { bios: { useSerial: true } }],
    ['EFI', { preferredEfi: { secureBoot: false } }, undefined, { efi: { secureBoot: false } }],
    [
      'the older EFI',
      { preferredUseEfi: true, preferredUseSecureBoot: true },
      undefined,
      { efi: { secureBoot: true } },
    ],
    ['EFI, against BIOS', { preferredEfi: {} }, { bios: {} }, { bios: {} }],
    ['BIOS, against EFI', { preferredUseBios: true }, { efi: {} }, { efi: {} }],
    [
      'secure boot of its own',
      { preferredUseSecureBoot: true },
      { efi: { secureBoot: false } },
      { efi: { secureBoot: false } },
    ],
    ['not BIOS', { preferredUseBios: false }, undefined, {}],
  ])('fills in firmware: %s', (_, firmware, own, expected) => {
    const domain = own ? { firmware: { bootloader: own } } : {};
    expect(preferred(domain, firmware ? { firmware } : {}).firmware?.bootloader).toEqual(expected);
  });
  it('fills in the rest', () => {
    const preference: PreferenceSpec = {
      annotations: { a: 'preferred', b: 'preferred' },
      preferredSubdomain: 'sub',
      preferredTerminationGracePeriodSeconds: 5,
      machine: { preferredMachineType: 'pc-q35-7.2' },
      clock: { preferredClockOffset: { utc: {} }, preferredTimer: { hpet: {} } },
      features: { preferredAcpi: { enabled: true }, preferredHyperv: { vapic: {}, relaxed: {} }, preferredSmm: {} },
      cpu: { preferredCPUFeatures: [{ name: 'x' }, { name: 'y' }] },
    };
    const own: Domain = {
      devices: {},
      cpu: { features: [{ name: 'x', policy: 'disable' }] },
      clock: { timezone: 'UTC' },
      features: { acpi: { enabled: false }, hyperv: { relaxed: { enabled: false } } },
    };
    const draft = { spec: { domain: own }, annotations: { a: 'own' } };
    expect(withInstancetypeAndPreference(draft, { preference }, PATH).draft).toEqual({
      annotations: { a: 'own', b: 'preferred' },
      spec: {
        subdomain: 'sub',
        terminationGracePeriodSeconds: 5,
        domain: {
          devices: {},
          machine: { type: 'pc-q35-7.2' },
          cpu: { features: [{ name: 'x', policy: 'disable' }, { name: 'y' }] },
          clock: { timezone: 'UTC', timer: { hpet: {} } },
          features: { acpi: { enabled: true }, hyperv: { vapic: {}, relaxed: { enabled: false } }, smm: {} },
        },
      },
    });
  });
  it('keeps what the template says', () => {
    const preference: PreferenceSpec = {
      preferredSubdomain: 'sub',
      preferredTerminationGracePeriodSeconds: 5,
      machine: { preferredMachineType: 'q35' },
    };
    const { spec } = apply(
      { machine: { type: 'pc' } },
      { preference },
      { subdomain: 'own', terminationGracePeriodSeconds: 0 },
    );
    expect(spec).toMatchObject({
      subdomain: 'own',
      terminationGracePeriodSeconds: 0,
      domain: { machine: { type: 'pc' } },
    });
  });
});

describe('nothing', () => {
  it('changes nothing', () => {
    const draft = { spec: { domain: { devices: {} } }, annotations: {} };
    expect(withInstancetypeAndPreference(draft, {}, PATH)).toEqual({ draft, conflicts: [] });
  });
});
