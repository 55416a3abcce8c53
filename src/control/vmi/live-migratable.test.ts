import { describe, expect, it } from 'vitest';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { Devices, Domain } from '../../api/kubevirt/domain.ts';
import type { Volume } from '../../api/kubevirt/volumes.ts';
import type { PersistentVolumeClaim } from '../../migration/fit/objects.ts';
import { guestOf } from './guests.fixture.ts';
import { migratability } from './live-migratable.ts';

function claimOf(name: string): PersistentVolumeClaim | undefined {
  if (name === 'missing') return undefined;
  const accessModes = [name === 'shared' ? 'ReadWriteMany' : 'ReadWriteOnce'];
  return { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name }, spec: { accessModes } };
}

const ground = (nodeLabels: Readonly<Record<string, string>> = {}) => ({ claimOf, nodeLabels });

const POD_NETWORK = [{ name: 'default', pod: {} }];
const withDevices = (devices: Devices, more: Partial<Domain> = {}): VirtualMachineInstance =>
  guestOf({ domain: { devices, ...more }, networks: POD_NETWORK });
const withVolumes = (...volumes: Volume[]): VirtualMachineInstance => guestOf({ volumes });
const bridged = withDevices({ interfaces: [{ name: 'default', bridge: {} }] });
const allowed = withDevices({ interfaces: [{ name: 'default', bridge: {} }] });
allowed.metadata.annotations = { 'kubevirt.io/allow-pod-bridge-network-live-migration': '' };
const moving = withVolumes({ name: 'root', persistentVolumeClaim: { claimName: 'local' } });
moving.status = { migratedVolumes: [{ volumeName: 'root' }] };
const everything = guestOf({
  networks: POD_NETWORK,
  volumes: [{ name: 'root', persistentVolumeClaim: { claimName: 'local' } }],
  domain: {
    launchSecurity: { sev: {} },
    devices: { interfaces: [{ name: 'default', bridge: {} }], gpus: [{ name: 'one' }] },
  },
});

const clocked = withDevices({}, { features: { hyperv: { reenlightenment: {} } } });

describe('what keeps a guest from moving', () => {
  it.each<[string, VirtualMachineInstance, string | undefined]>([
    ['nothing', guestOf(), undefined],
    ['masquerade', withDevices({ interfaces: [{ name: 'default', masquerade: {} }] }), undefined],
    ["a bridge to the pod's network", bridged, 'InterfaceNotLiveMigratable'],
    ['the same, allowed', allowed, undefined],
    ['a bridge to another network', withDevices({ interfaces: [{ name: 'storage', bridge: {} }] }), undefined],
    [
      'a file of the node',
      withVolumes({ name: 'a', hostDisk: { path: '/a', type: 'Disk' } }),
      'DisksNotLiveMigratable',
    ],
    [
      'a file of all nodes',
      withVolumes({ name: 'a', hostDisk: { path: '/a', type: 'Disk', shared: true } }),
      undefined,
    ],
    ['a graphics processor', withDevices({ gpus: [{ name: 'one' }] }), 'HostDeviceNotLiveMigratable'],
    [
      'secrets of another architecture',
      guestOf({ architecture: 's390x', domain: { devices: {}, launchSecurity: {} } }),
      'SecureExecutionNotLiveMigratable',
    ],
    ['a device of the node', withDevices({ hostDevices: [{ name: 'card' }] }), 'HostDeviceNotLiveMigratable'],
    ['encrypted memory', withDevices({}, { launchSecurity: { sev: {} } }), 'SEVNotLiveMigratable'],
    ['the same of another make', withDevices({}, { launchSecurity: { tdx: {} } }), 'TDXNotLiveMigratable'],
    ['all of Hyper-V', withDevices({}, { features: { hypervPassthrough: {} } }), 'HypervPassthroughNotLiveMigratable'],
    ['a shared directory', withDevices({ filesystems: [{ name: 'a', virtiofs: {} }] }), 'VirtIOFSNotLiveMigratable'],
    ['a shared claim', withVolumes({ name: 'a', persistentVolumeClaim: { claimName: 'shared' } }), undefined],
    ['a claim of one node', withVolumes({ name: 'a', dataVolume: { name: 'local' } }), 'DisksNotLiveMigratable'],
    ['no claim', withVolumes({ name: 'a', dataVolume: { name: 'missing' } }), 'DisksNotLiveMigratable'],
    ['a claim that changes', moving, undefined],
    ['the first of all', everything, 'InterfaceNotLiveMigratable'],
    ['a clock of the node', clocked, 'NoTSCFrequencyNotLiveMigratable'],
    ['the same, known', { ...clocked, status: { topologyHints: { tscFrequency: 1 } } }, undefined],
    [
      'a reserved disk',
      withDevices({ disks: [{ name: 'a', lun: { reservation: true } }] }),
      'PersistentReservationNotLiveMigratable',
    ],
  ])('%s', (_, guest, reason) => {
    const [condition] = migratability(guest, ground()).conditions;
    expect(condition.status).toBe(reason === undefined ? 'True' : 'False');
    expect(condition.reason).toBe(reason);
  });
  it.each<[model: string | undefined, labels: Record<string, string>, isStuck: boolean]>([
    [undefined, { 'godwit.dev/accelerator': 'kvm' }, true],
    ['host-model', { 'godwit.dev/accelerator': 'kvm' }, true],
    ['host-passthrough', { 'godwit.dev/accelerator': 'kvm' }, true],
    ['Haswell', { 'godwit.dev/accelerator': 'kvm' }, false],
    ['host-model', { 'godwit.dev/accelerator': 'kvm', 'host-model-cpu.node.kubevirt.io/Haswell': 'true' }, false],
    ['host-model', { 'godwit.dev/accelerator': 'tcg' }, false],
    ['host-model', {}, false],
  ])('the processor %s on a node with %j: %s', (model, labels, isStuck) => {
    const guest = withDevices({}, { cpu: model === undefined ? {} : { model } });
    guest.status = { nodeName: 'node-a' };
    const [condition] = migratability(guest, ground(labels)).conditions;
    expect(condition.reason).toBe(isStuck ? 'CPUModeLiveMigratable' : undefined);
    if (isStuck) expect(condition.message).toMatch(/^the node "node-a" does not allow migration with host-/);
  });
  it('names the claim', () => {
    const [condition] = migratability(withVolumes({ name: 'a', dataVolume: { name: 'local' } }), ground()).conditions;
    expect(condition.message).toContain('PVC local is not shared');
  });
  it('is told in full beside the disks, which can be copied', () => {
    const [, ofDisks] = migratability(withVolumes({ name: 'a', dataVolume: { name: 'local' } }), ground()).conditions;
    expect(ofDisks).toEqual({ type: 'StorageLiveMigratable', status: 'True' });
    const [, ofAll] = migratability(everything, ground()).conditions;
    expect(ofAll.reason).toBe('NotMigratable');
    expect(ofAll.message).toMatch(
      /^InterfaceNotLiveMigratable: .*, HostDeviceNotLiveMigratable: .*, SEVNotLiveMigratable: VMI uses SEV$/,
    );
  });
});

describe('how a guest moves', () => {
  const cdrom = guestOf({
    volumes: [{ name: 'tools', containerDisk: { image: 'tools' } }],
    domain: { devices: { disks: [{ name: 'tools', cdrom: { bus: 'sata' } }] } },
  });
  it.each<[string, VirtualMachineInstance, string]>([
    ['without disks', guestOf(), 'LiveMigration'],
    ['with shared claims', withVolumes({ name: 'a', dataVolume: { name: 'shared' } }), 'LiveMigration'],
    [
      'with what it wrote over an image',
      withVolumes({ name: 'a', containerDisk: { image: 'linux' } }),
      'BlockMigration',
    ],
    ['with an empty disk', withVolumes({ name: 'a', emptyDisk: { capacity: '1Gi' } }), 'BlockMigration'],
    ['with a file of the node', withVolumes({ name: 'a', hostDisk: { path: '/a', type: 'Disk' } }), 'BlockMigration'],
    [
      'with a file of all nodes',
      withVolumes({ name: 'a', hostDisk: { path: '/a', type: 'Disk', shared: true } }),
      'LiveMigration',
    ],
    ['with what it cannot write to', cdrom, 'LiveMigration'],
    ['with a claim that changes', moving, 'BlockMigration'],
  ])('%s', (_, guest, method) => expect(migratability(guest, ground()).method).toBe(method));
});
