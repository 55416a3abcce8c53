import { describe, expect, it } from 'vitest';
import type { Cpu } from '../../api/kubevirt/processor-and-memory.ts';
import type { VirtualMachine } from '../../api/kubevirt/virtual-machine.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import { TEMPLATE_HASH_ANNOTATION } from '../../api/kubevirt/well-known.ts';
import { type LiveUpdate, liveUpdate } from './live-update.ts';
import { machineOf } from './machines.fixture.ts';
import { makeGuest } from './make-guest.ts';
import { withRoomToGrow } from './room-to-grow.ts';
import { fullTemplateHash } from './template-hash.ts';

const machineWith = (cpu?: Cpu, more: Partial<VirtualMachine['spec']> = {}): VirtualMachine =>
  machineOf({
    template: { spec: { domain: { devices: {}, memory: { guest: '64Mi' }, ...(cpu ? { cpu } : {}) } } },
    ...more,
  });

/** The guest of a machine, once it runs with so many sockets. */
function guestOf(machine: VirtualMachine, sockets?: number): VirtualMachineInstance {
  const { guest } = makeGuest(machine, { sizing: {}, configuration: {}, isReceiver: false });
  if (!guest) throw new Error('no guest could be made');
  const current = sockets ?? guest.spec.domain.cpu?.sockets ?? 1;
  return { ...guest, status: { phase: 'Running', currentCPUTopology: { sockets: current, cores: 1, threads: 1 } } };
}

const NONE: LiveUpdate = { action: 'none' };
const apply = (sockets: number): LiveUpdate => ({ action: 'apply', sockets });
const NOT_LIVE = { action: 'restart', message: 'a non-live-updatable field was changed in the template spec' };

describe('a machine that is changed while its guest runs', () => {
  it.each<readonly [string, Cpu | undefined, Cpu | undefined, object]>([
    ['nothing', { sockets: 2 }, { sockets: 2 }, NONE],
    ['more sockets', { sockets: 2 }, { sockets: 4 }, apply(4)],
    ['sockets where none were named', undefined, { sockets: 2 }, apply(2)],
    ['as many sockets as there may be', { sockets: 2 }, { sockets: 8 }, apply(8)],
    [
      'more sockets than there may be',
      { sockets: 2 },
      { sockets: 9 },
      {
        action: 'restart',
        message: "CPU sockets updated in template spec to a value higher than what's available",
      },
    ],
    [
      'fewer sockets',
      { sockets: 2 },
      { sockets: 1 },
      { action: 'restart', message: 'Reduction of CPU socket count requires a restart' },
    ],
    [
      'sockets that are not named any more',
      { sockets: 2 },
      undefined,
      { action: 'restart', message: 'Reduction of CPU socket count requires a restart' },
    ],
    ['cores', { sockets: 2 }, { sockets: 2, cores: 2 }, NOT_LIVE],
    ['cores with sockets', { sockets: 2 }, { sockets: 4, cores: 2 }, NOT_LIVE],
    ['how many sockets there may be', { sockets: 2 }, { sockets: 2, maxSockets: 16 }, NOT_LIVE],
  ])('%s', (_what, before, after, expected) => {
    expect(liveUpdate(machineWith(after), guestOf(machineWith(before)), {})).toEqual(expected);
  });

  it('takes a change back that has not taken effect', () => {
    const asked = guestOf(machineWith({ sockets: 2 }), 2);
    const cpu = { ...asked.spec.domain.cpu, sockets: 4 };
    const waiting = { ...asked, spec: { ...asked.spec, domain: { ...asked.spec.domain, cpu } } };
    expect(liveUpdate(machineWith({ sockets: 2 }), waiting, {})).toEqual(apply(2));
    expect(liveUpdate(machineWith({ sockets: 3 }), waiting, {})).toEqual(apply(3));
    expect(liveUpdate(machineWith({ sockets: 4 }), waiting, {})).toEqual(NONE);
  });

  it('changes nothing before the guest runs, nor after', () => {
    const [old, changed] = [machineWith({ sockets: 1 }), machineWith({ sockets: 2 })];
    expect(liveUpdate(changed, { ...guestOf(old), status: { phase: 'Scheduling' } }, {})).toEqual(NONE);
    expect(liveUpdate(changed, { ...guestOf(old), status: { phase: 'Succeeded' } }, {})).toEqual(NONE);
    expect(liveUpdate(changed, undefined, {})).toEqual(NONE);
  });

  it('waits for the next start where the cluster says so', () => {
    const staged = { vmRolloutStrategy: 'Stage' } as const;
    const guest = guestOf(machineWith({ sockets: 1 }));
    expect(liveUpdate(machineWith({ sockets: 2 }), guest, staged)).toEqual(NOT_LIVE);
  });

  it('wants a restart for another instance type, and nothing where the instance type says how many', () => {
    const named = (name: string) => machineWith(undefined, { instancetype: { name } });
    expect(liveUpdate(named('large'), guestOf(named('small')), {})).toEqual(NOT_LIVE);
    expect(liveUpdate(named('small'), guestOf(named('small'), 4), {})).toEqual(NONE);
  });

  it('understands guests that a former version made', () => {
    const before = machineWith({ sockets: 2 });
    const guest = guestOf(before);
    const annotations = { ...guest.metadata.annotations, [TEMPLATE_HASH_ANNOTATION]: fullTemplateHash(before) };
    const old = { ...guest, metadata: { ...guest.metadata, annotations } };
    expect(liveUpdate(before, old, {})).toEqual(NONE);
    expect(liveUpdate(machineWith({ sockets: 4 }), old, {})).toEqual(NOT_LIVE);
  });
});

describe('a machine that gets more memory', () => {
  const machineWithMemory = (guest: string, more = {}) =>
    machineOf({ template: { spec: { domain: { devices: {}, memory: { guest, ...more } } } } });
  const running = (machine: VirtualMachine, guestCurrent = '1Gi'): VirtualMachineInstance => {
    const guest = guestOf(machine);
    return { ...guest, status: { ...guest.status, memory: { guestAtBoot: '1Gi', guestCurrent } } };
  };
  const applied = (guest: string) => ({
    action: 'apply',
    memory: { guest, resources: { requests: { memory: guest } } },
  });

  it.each<readonly [string, string, string | undefined, object]>([
    ['as it is', '1Gi', undefined, NONE],
    ['as it is, in other words', '1024Mi', undefined, NONE],
    ['more', '1280Mi', undefined, applied('1280Mi')],
    ['as much as there may be', '4Gi', undefined, applied('4Gi')],
    ['taken back', '1Gi', '1Gi', NONE],
    [
      'more than there may be',
      '5Gi',
      undefined,
      { action: 'restart', message: 'Memory updated in template spec to a value higher than what is available' },
    ],
    ['less', '512Mi', undefined, { action: 'restart', message: 'Reduction of memory requires a restart' }],
    [
      'what does not come in pieces',
      '1100Mi',
      undefined,
      { action: 'restart', message: 'Memory can be added without a restart in multiples of 128Mi' },
    ],
  ])('%s', (_what, memory, current, expected) => {
    expect(liveUpdate(machineWithMemory(memory), running(machineWithMemory('1Gi'), current), {})).toEqual(expected);
  });

  it('wants a restart of a guest without room, and where changes wait', () => {
    expect(liveUpdate(machineWithMemory('256Mi'), running(machineWithMemory('128Mi'), '128Mi'), {})).toEqual(NOT_LIVE);
    const staged = { vmRolloutStrategy: 'Stage' } as const;
    expect(liveUpdate(machineWithMemory('2Gi'), running(machineWithMemory('1Gi')), staged)).toEqual(NOT_LIVE);
  });

  it.each<readonly [string, object, object, unknown]>([
    ['four times as much by default', { guest: '1Gi' }, {}, '4Gi'],
    ['none for small guests', { guest: '512Mi' }, {}, undefined],
    ['none for guests that are large already', { guest: '128Gi' }, {}, undefined],
    ['what small guests ask for', { guest: '512Mi', maxGuest: '1Gi' }, {}, '1Gi'],
    ['what the cluster says', { guest: '1Gi' }, { liveUpdateConfiguration: { maxGuest: '8Gi' } }, '8Gi'],
    ['none on huge pages', { guest: '1Gi', hugepages: { pageSize: '2Mi' } }, {}, undefined],
  ])('has room for %s', (_what, memory, configuration, expected) => {
    const { domain } = withRoomToGrow({ domain: { devices: {}, memory } }, configuration);
    expect(domain.memory?.maxGuest).toBe(expected);
  });
});

describe('a machine whose volumes are put on other claims', () => {
  const volumesOn = (claimName: string) => [
    { name: 'data', persistentVolumeClaim: { claimName } },
    { name: 'os', emptyDisk: { capacity: '8Mi' } },
  ];
  const machineOn = (claimName: string, updateVolumesStrategy?: 'Migration' | 'Replacement', more = {}) => {
    const template = { spec: { domain: { devices: {}, ...more }, volumes: volumesOn(claimName) } };
    return machineOf({ template, ...(updateVolumesStrategy ? { updateVolumesStrategy } : {}) });
  };
  const guest = guestOf(machineOn('old'));
  const underWay = [
    { volumeName: 'data', sourcePVCInfo: { claimName: 'old' }, destinationPVCInfo: { claimName: 'new' } },
  ];
  const waiting: VirtualMachineInstance = {
    ...guest,
    spec: { ...guest.spec, volumes: volumesOn('new') },
    status: { ...guest.status, migratedVolumes: underWay },
  };

  it.each<readonly [string, VirtualMachine, VirtualMachineInstance, object]>([
    ['tells its guest', machineOn('new', 'Migration'), guest, { action: 'apply', volumes: volumesOn('new') }],
    ['wants a restart where it may not', machineOn('new'), guest, NOT_LIVE],
    ['wants a restart where volumes are replaced', machineOn('new', 'Replacement'), guest, NOT_LIVE],
    ['waits until its guest runs', machineOn('new', 'Migration'), { ...guest, status: { phase: 'Scheduled' } }, NONE],
    ['takes it back', machineOn('old', 'Migration'), waiting, { action: 'apply', volumes: volumesOn('old') }],
    [
      'begins nothing else meanwhile',
      machineOn('third', 'Migration'),
      waiting,
      { action: 'restart', message: 'The volume can only be reverted to the previous version during the update' },
    ],
    [
      'tells of processors along with that',
      machineOn('new', 'Migration', { cpu: { sockets: 2 } }),
      guest,
      { action: 'apply', volumes: volumesOn('new'), sockets: 2 },
    ],
  ])('%s', (_what, machine, its, expected) => {
    expect(liveUpdate(machine, its, {})).toEqual(expected);
  });
});

describe('room to grow', () => {
  const maxSockets = (cpu: Cpu, configuration = {}, more = {}) =>
    withRoomToGrow({ domain: { devices: {}, cpu, ...more } }, configuration).domain.cpu?.maxSockets;

  it.each<readonly [string, Cpu, object, object, number | undefined]>([
    ['four times as many by default', { sockets: 2 }, {}, {}, 8],
    ['as many as the guest says', { sockets: 2, maxSockets: 3 }, {}, {}, 3],
    ['as many times as the cluster says', { sockets: 2 }, { liveUpdateConfiguration: { maxHotplugRatio: 2 } }, {}, 4],
    ['as many as the cluster says', { sockets: 2 }, { liveUpdateConfiguration: { maxCpuSockets: 5 } }, {}, 5],
    ['never fewer than there are', { sockets: 6 }, { liveUpdateConfiguration: { maxCpuSockets: 5 } }, {}, 6],
    ['no more processors than a machine may have', { sockets: 20, cores: 8 }, {}, {}, 31],
    ['none where changes wait', { sockets: 2 }, { vmRolloutStrategy: 'Stage' }, {}, undefined],
    ['none without PCI', { sockets: 2 }, {}, { machine: { type: 'microvm' } }, undefined],
    ['none where nothing may be plugged in', { sockets: 2 }, {}, { devices: { disableHotplug: true } }, undefined],
    ['none for processors of its own', { sockets: 2, dedicatedCpuPlacement: true }, {}, {}, undefined],
  ])('is for %s', (_what, cpu, configuration, more, expected) => {
    expect(maxSockets(cpu, configuration, more)).toBe(expected);
  });
});
