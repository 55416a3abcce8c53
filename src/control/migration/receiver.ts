import type { HalfVolume } from '../../api/kubevirt/migration-halves.ts';
import type { MigrationState } from '../../api/kubevirt/migration-state.ts';
import type {
  VirtualMachineInstance,
  VirtualMachineInstanceStatus,
} from '../../api/kubevirt/virtual-machine-instance.ts';
import type { VirtualMachineInstanceSpec } from '../../api/kubevirt/virtual-machine-instance-spec.ts';
import { parseQuantity, quantityToNumber } from '../../api/quantity.ts';
import { deepEqual } from '../../machinery/equal.ts';
import type { PersistentVolumeClaim } from '../../migration/fit/objects.ts';
import { claimNameOf } from '../volume-claims.ts';
import { guestMemory, processorCount } from '../vmi/launcher-resources.ts';

/** Whether a guest that waits can become the one that comes, and how it does. */

type SourceState = NonNullable<MigrationState['sourceState']>;

/** The claims of the guest's namespace. */
type ClaimOf = (name: string) => PersistentVolumeClaim | undefined;

/** The disks that a guest has on claims, with the sizes that those have, or will have at least. */
export function claimedVolumes({ spec }: VirtualMachineInstance, claimOf: ClaimOf): HalfVolume[] {
  return (spec.volumes ?? []).flatMap((volume) => {
    const name = claimNameOf(volume);
    const claim = name === undefined ? undefined : claimOf(name);
    const size = parseQuantity(claim?.status?.capacity?.['storage'] ?? claim?.spec?.resources?.requests?.['storage']);
    if (!claim || !size) return [];
    const isBlock = claim.spec?.volumeMode === 'Block';
    return [{ name: volume.name, sizeBytes: quantityToNumber(size), isBlock }];
  });
}

/** What the guest that waits lacks to be the one that comes; undefined where it lacks nothing that can be seen here. */
export function receiverObjection(
  { spec }: VirtualMachineInstance,
  source: SourceState | undefined,
  volumes: readonly HalfVolume[],
): string | undefined {
  if (!source) return undefined;
  const memory = guestMemory(spec);
  const memoryBytes = memory && quantityToNumber(memory);
  if (source.memoryBytes !== undefined && memoryBytes !== source.memoryBytes)
    return `it has ${memoryBytes ?? 0} bytes of memory, and the guest ${source.memoryBytes}`;
  const vcpus = processorCount(spec);
  if (source.vcpus !== undefined && vcpus !== source.vcpus)
    return `it has ${vcpus} processors, and the guest ${source.vcpus}`;
  const names = new Set((spec.volumes ?? []).map(({ name }) => name));
  for (const { name, sizeBytes } of source.volumes ?? []) {
    if (!names.has(name)) return `it has no volume ${name}`;
    const own = volumes.find((each) => each.name === name);
    if (own && own.sizeBytes < sizeBytes)
      return `its volume ${name} has ${own.sizeBytes} bytes, and the guest's ${sizeBytes}`;
  }
  return undefined;
}

/** What has to change of a guest that waits. */
export interface Adoption {
  /** The spec as it should be; undefined where it is. */
  readonly spec: VirtualMachineInstanceSpec | undefined;
  /** Fields of the status as they should be; undefined where they are. */
  readonly status: VirtualMachineInstanceStatus | undefined;
}

/** Makes the guest that waits what the other one is: to the world by its identity, to QEMU by its machine. */
export function adoption({ spec, status = {} }: VirtualMachineInstance, source: SourceState): Adoption | undefined {
  const next = adoptedSpec(spec, source);
  const { machineType, cpuTopology, memory } = source;
  const told: VirtualMachineInstanceStatus = {
    ...(machineType === undefined ? {} : { machine: { ...status.machine, type: machineType } }),
    ...(cpuTopology === undefined ? {} : { currentCPUTopology: cpuTopology }),
    ...(memory === undefined ? {} : { memory }),
  };
  const isSpecRight = deepEqual(next, spec);
  const { machine, currentCPUTopology, memory: known } = status;
  const isStatusRight = deepEqual(
    { machine, currentCPUTopology, memory: known, ...told },
    { machine, currentCPUTopology, memory: known },
  );
  if (isSpecRight && isStatusRight) return undefined;
  return { spec: isSpecRight ? undefined : next, status: isStatusRight ? undefined : told };
}

function adoptedSpec(spec: VirtualMachineInstanceSpec, { identity }: SourceState): VirtualMachineInstanceSpec {
  const { firmwareUUID, firmwareSerial, macAddresses = {} } = identity ?? {};
  const { domain } = spec;
  const firmware = {
    ...domain.firmware,
    ...(firmwareUUID === undefined ? {} : { uuid: firmwareUUID }),
    ...(firmwareSerial === undefined ? {} : { serial: firmwareSerial }),
  };
  const interfaces = domain.devices.interfaces?.map((each) =>
    Object.hasOwn(macAddresses, each.name) ? { ...each, macAddress: macAddresses[each.name] ?? '' } : each,
  );
  return {
    ...spec,
    domain: {
      ...domain,
      ...(Object.keys(firmware).length > 0 ? { firmware } : {}),
      devices: { ...domain.devices, ...(interfaces ? { interfaces } : {}) },
    },
  };
}
