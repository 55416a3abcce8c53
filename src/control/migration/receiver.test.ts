import { describe, expect, it } from 'vitest';
import type { MigrationState } from '../../api/kubevirt/migration-state.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { PersistentVolumeClaim } from '../../migration/fit/objects.ts';
import { adoption, claimedVolumes, receiverObjection } from './receiver.ts';

const MEBIBYTE = 2 ** 20;

const guest: VirtualMachineInstance = {
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachineInstance',
  metadata: { name: 'new', namespace: 'shop' },
  spec: {
    domain: {
      devices: { interfaces: [{ name: 'net', masquerade: {}, macAddress: '02:00:00:00:00:0b' }, { name: 'own' }] },
      cpu: { sockets: 2 },
      memory: { guest: '64Mi' },
      firmware: { uuid: 'b', bootloader: { bios: {} } },
    },
    volumes: [
      { name: 'root', persistentVolumeClaim: { claimName: 'bound' } },
      { name: 'data', dataVolume: { name: 'asked-for' } },
      { name: 'init', cloudInitNoCloud: { userData: 'x' } },
      { name: 'late', persistentVolumeClaim: { claimName: 'nobody-made-it' } },
    ],
  },
  status: { phase: 'WaitingForSync', machine: { type: 'q35' } },
};

const claim = (more: Partial<PersistentVolumeClaim>): PersistentVolumeClaim => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: {},
  ...more,
});
const claims = new Map([
  ['bound', claim({ spec: { volumeMode: 'Block' }, status: { capacity: { storage: '2Mi' } } })],
  ['asked-for', claim({ spec: { resources: { requests: { storage: '1Mi' } } } })],
]);
const volumes = claimedVolumes(guest, (name) => claims.get(name));

type SourceState = NonNullable<MigrationState['sourceState']>;
const SAME: SourceState = { memoryBytes: 64 * MEBIBYTE, vcpus: 2 };
const disk = (name: string, sizeBytes: number) => ({ name, sizeBytes, isBlock: false });

describe('a guest that waits', () => {
  it('has disks on claims, as large as those are, or will be', () => {
    expect(volumes).toEqual([
      { name: 'root', sizeBytes: 2 * MEBIBYTE, isBlock: true },
      { name: 'data', sizeBytes: MEBIBYTE, isBlock: false },
    ]);
  });

  it.each<[string, SourceState | undefined, RegExp | undefined]>([
    ['nothing is known of the other', undefined, undefined],
    ['the other has told nothing yet', {}, undefined],
    ['both are the same', SAME, undefined],
    ['the memory is another', { ...SAME, memoryBytes: 1 }, /67108864 bytes of memory, and the guest 1/],
    ['the processors are others', { ...SAME, vcpus: 4 }, /2 processors, and the guest 4/],
    ['a disk is not there', { ...SAME, volumes: [disk('extra', 1)] }, /no volume extra/],
    ['a disk is just large enough, whatever it is on', { ...SAME, volumes: [disk('root', 2 * MEBIBYTE)] }, undefined],
    ['a disk is too small', { ...SAME, volumes: [disk('data', MEBIBYTE + 1)] }, /data has 1048576 bytes/],
    ['a disk is made by its agent', { ...SAME, volumes: [disk('init', 9e9)] }, undefined],
    ['a claim is yet to be made', { ...SAME, volumes: [disk('late', 9e9)] }, undefined],
  ])('can receive, or not, where %s', (_what, source, objection) => {
    const said = receiverObjection(guest, source, volumes);
    if (objection) expect(said).toMatch(objection);
    else expect(said).toBeUndefined();
  });

  it('becomes who comes, in what the other one is known by, and stays what it is otherwise', () => {
    const source: SourceState = {
      identity: { firmwareUUID: 'a', firmwareSerial: 's', macAddresses: { net: '02:00:00:00:00:0a', gone: 'x' } },
      machineType: 'pc-q35-7.2',
      cpuTopology: { sockets: 2, cores: 1, threads: 1 },
      memory: { guestCurrent: '64Mi' },
    };
    const { spec, status } = adoption(guest, source) ?? {};
    expect(spec?.domain.firmware).toEqual({ uuid: 'a', serial: 's', bootloader: { bios: {} } });
    expect(spec?.domain.devices.interfaces).toEqual([
      { name: 'net', masquerade: {}, macAddress: '02:00:00:00:00:0a' },
      { name: 'own' },
    ]);
    expect(spec?.volumes).toEqual(guest.spec.volumes);
    expect(status).toEqual({
      machine: { type: 'pc-q35-7.2' },
      currentCPUTopology: { sockets: 2, cores: 1, threads: 1 },
      memory: { guestCurrent: '64Mi' },
    });
    const adopted = { ...guest, ...(spec ? { spec } : {}), status: { ...guest.status, ...status } };
    expect(adoption(adopted, source)).toBeUndefined();
  });

  it('has nothing to become where the other one tells nothing', () => {
    expect(adoption(guest, {})).toBeUndefined();
  });
});
