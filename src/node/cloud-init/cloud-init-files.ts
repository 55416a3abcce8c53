import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';

/** What cloud-init finds on its disk, for each of the two sources that it knows how to read. */

export interface CloudInitData {
  readonly userData: Uint8Array | undefined;
  readonly networkData: Uint8Array | undefined;
}

export interface CloudInitDisk {
  /** By which cloud-init finds the disk. */
  readonly label: string;
  readonly files: ReadonlyMap<string, Uint8Array>;
}

const HOSTNAME_LENGTH_MAX = 63;
/** Without any user data cloud-init takes the disk for broken. */
const NO_USER_DATA = '#cloud-config\n';

/** As its NoCloud source reads it. */
export function noCloudDisk(guest: VirtualMachineInstance, { userData, networkData }: CloudInitData): CloudInitDisk {
  const metadata = { 'instance-id': instanceOf(guest), 'local-hostname': hostnameOf(guest) };
  return {
    label: 'cidata',
    files: filesOf([
      ['meta-data', json(metadata)],
      ['user-data', userData ?? bytes(NO_USER_DATA)],
      ['network-config', networkData],
    ]),
  };
}

/** As its ConfigDrive source reads it. */
export function configDriveDisk(
  guest: VirtualMachineInstance,
  { userData, networkData }: CloudInitData,
): CloudInitDisk {
  const { firmware } = guest.spec.domain;
  const hostname = hostnameOf(guest);
  const metadata = { instance_id: instanceOf(guest), hostname, local_hostname: hostname, uuid: firmware?.uuid };
  return {
    label: 'config-2',
    files: filesOf([
      ['openstack/latest/meta_data.json', json(metadata)],
      ['openstack/latest/user_data', userData ?? bytes(NO_USER_DATA)],
      ['openstack/latest/network_data.json', networkData],
    ]),
  };
}

/** Stays the same for as long as the machine is: cloud-init does again what it did once when this changes. */
function instanceOf({ metadata }: VirtualMachineInstance): string {
  return `${metadata.name ?? ''}.${metadata.namespace ?? ''}`;
}

/** The guest's name for itself: a label of DNS, of whatever the object is called. */
function hostnameOf({ metadata, spec }: VirtualMachineInstance): string {
  const [label = ''] = (spec.hostname || metadata.name || '').split('.');
  return label.slice(0, HOSTNAME_LENGTH_MAX).replace(/-+$/, '');
}

function filesOf(files: readonly (readonly [string, Uint8Array | undefined])[]): Map<string, Uint8Array> {
  return new Map(files.flatMap(([path, contents]) => (contents === undefined ? [] : [[path, contents]])));
}

function json(value: object): Uint8Array {
  return bytes(`${JSON.stringify(value)}\n`);
}

function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}
