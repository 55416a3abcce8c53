import { LINUX_ARGUMENTS } from './guests.ts';

/** Manifests of machines and guests for tests, as KubeVirt has them. */

/** The images that tests find in the store. */
export const IMAGES = {
  /** The bare-metal guest, as a kernel. */
  probe: 'godwit/probe-kernel:latest',
  /** The same, as a disk that boots. */
  probeDisk: 'godwit/probe:latest',
  linux: 'godwit/linux-guest:latest',
} as const;

export interface GuestOptions {
  /** What is added to the kernel's command line. */
  readonly arguments?: string;
  /** How often it speaks. */
  readonly tickMs?: number;
  readonly memory?: string;
  readonly graceSeconds?: number;
  /** Volumes, each with a disk of the same name. */
  readonly volumes?: readonly VolumeOptions[];
  /** Ports that are reached from outside; without any there is no network. */
  readonly ports?: readonly number[];
  readonly evictionStrategy?: string;
  readonly nodeSelector?: Readonly<Record<string, string>>;
  readonly kernelImage?: string;
  readonly machineType?: string;
}

export interface VolumeOptions {
  readonly name: string;
  /** Where its contents come from, such as `{ emptyDisk: { capacity: '8Mi' } }`. */
  readonly source: object;
  /** How the guest sees it, where that is not a disk on virtio. */
  readonly disk?: object;
}

function guestSpec(kernelBoot: object | undefined, memory: string, options: GuestOptions): object {
  const { graceSeconds = 20, volumes = [], ports = [], evictionStrategy, nodeSelector, machineType } = options;
  const hasNetwork = ports.length > 0;
  return {
    terminationGracePeriodSeconds: graceSeconds,
    ...(evictionStrategy === undefined ? {} : { evictionStrategy }),
    ...(nodeSelector === undefined ? {} : { nodeSelector }),
    domain: {
      memory: { guest: options.memory ?? memory },
      ...(machineType === undefined ? {} : { machine: { type: machineType } }),
      ...(kernelBoot ? { firmware: { kernelBoot } } : {}),
      devices: {
        disks: volumes.map(({ name, disk = { disk: { bus: 'virtio' } } }) => ({ name, ...disk })),
        ...(hasNetwork
          ? { interfaces: [{ name: 'default', masquerade: {}, ports: ports.map((port) => ({ port })) }] }
          : { autoattachPodInterface: false }),
      },
    },
    ...(hasNetwork ? { networks: [{ name: 'default', pod: {} }] } : {}),
    volumes: volumes.map(({ name, source }) => ({ name, ...source })),
  };
}

function kernelBoot(image: string, kernelArgs: string): object {
  return { kernelArgs, container: { image, kernelPath: '/boot/vmlinuz', initrdPath: '/boot/initrd' } };
}

/** The bare-metal guest: it runs within a tenth of a second, and speaks fifty times a second. */
export function probe(options: GuestOptions = {}): object {
  const { kernelImage = IMAGES.probe, tickMs = 20 } = options;
  return guestSpec(kernelBoot(kernelImage, `tick=${tickMs} ${options.arguments ?? ''}`.trim()), '32Mi', options);
}

/** The Linux guest: it runs within a few seconds, and can be asked more. */
export function linux(options: GuestOptions = {}): object {
  return guestSpec(
    kernelBoot(IMAGES.linux, `${LINUX_ARGUMENTS} tick=${options.tickMs ?? 50} ${options.arguments ?? ''}`.trim()),
    '96Mi',
    options,
  );
}

/** A guest that starts from the first of its volumes. */
export function fromDisk(options: GuestOptions): object {
  return guestSpec(undefined, '32Mi', options);
}

export function virtualMachine(name: string, spec: object, more: object = { runStrategy: 'Always' }): object {
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name },
    spec: { ...more, template: { metadata: { labels: { app: name } }, spec } },
  };
}

export function virtualMachineInstance(name: string, spec: object): object {
  return { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstance', metadata: { name }, spec };
}

export function claim(name: string, storageClassName: 'shared' | 'local', storage = '8Mi'): object {
  const accessModes = storageClassName === 'shared' ? ['ReadWriteMany'] : ['ReadWriteOnce'];
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name },
    spec: { storageClassName, accessModes, resources: { requests: { storage } } },
  };
}

/** A device of the node `node-1`, for the claim of this name. */
export function blockVolume(name: string, path: string, storage: string): object {
  const node = { key: 'kubernetes.io/hostname', operator: 'In', values: ['node-1'] };
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name },
    spec: {
      volumeMode: 'Block',
      accessModes: ['ReadWriteOnce'],
      capacity: { storage },
      local: { path },
      claimRef: { namespace: 'default', name },
      nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions: [node] }] } },
    },
  };
}

/** A claim of such a device. */
export function blockClaim(name: string, storage: string): object {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name },
    spec: {
      storageClassName: '',
      volumeMode: 'Block',
      volumeName: name,
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage } },
    },
  };
}
