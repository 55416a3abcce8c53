import type { MachineSpec } from './machine.ts';

/** The least that a machine needs. */
export const SMALL_MACHINE: MachineSpec = {
  name: 'default/small',
  uuid: '6f1c2d3e-0000-4000-8000-000000000001',
  machineType: 'microvm',
  accelerator: 'tcg',
  cpu: { model: 'qemu64', features: [{ name: 'rdrand', isEnabled: true }], sockets: 1, cores: 1, threads: 1 },
  memoryBytes: 32 * 1024 * 1024,
};

/** One of everything that a PCI machine can have. */
export const FULL_MACHINE: MachineSpec = {
  ...SMALL_MACHINE,
  name: 'shop/database, the first',
  machineType: 'pc-q35-7.2',
  accelerator: 'kvm',
  cpu: { model: 'host', features: [{ name: 'vmx', isEnabled: false }], sockets: 1, cores: 2, threads: 2 },
  memoryBytes: 1024 * 1024 * 1024,
  disks: [
    {
      place: { bus: 'virtio', at: 4 },
      path: '/disks/root,1.qcow2',
      format: 'qcow2',
      cache: 'none',
      serial: 'D1',
      bootOrder: 1,
    },
    { place: { bus: 'virtio', at: 5 }, path: '/disks/base.raw', format: 'raw', cache: 'writeback', isReadOnly: true },
    { place: { bus: 'sata', at: 0 }, path: '/disks/old.raw', format: 'raw', cache: 'writethrough' },
  ],
  cdroms: [{ port: 1, path: '/images/install.iso', bootOrder: 2 }],
  kernel: { path: '/images/vmlinuz', initrdPath: '/images/initrd', commandLine: 'console=ttyS0 a=b,c' },
  agentPlace: { bus: 'virtio', at: 6 },
  networks: [
    {
      place: { bus: 'virtio', at: 8 },
      mac: '02:00:00:00:00:01',
      backend: {
        kind: 'user',
        forwards: [{ protocol: 'tcp', hostAddress: '127.0.0.1', hostPort: 8022, guestPort: 22 }],
      },
    },
    {
      place: { bus: 'virtio', at: 9 },
      mac: '02:00:00:00:00:02',
      backend: { kind: 'tap', interfaceName: 'tap0' },
    },
  ],
};
