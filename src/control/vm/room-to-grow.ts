import type { KubeVirtConfiguration } from '../../api/kubevirt/kube-virt.ts';
import type { Cpu } from '../../api/kubevirt/processor-and-memory.ts';
import type { Domain } from '../../api/kubevirt/domain.ts';
import { formatQuantity, parseQuantity, quantityToNumber } from '../../api/quantity.ts';
import type { QuantityValue } from '../../api/typed-schema.ts';
import type { VirtualMachineInstanceSpec } from '../../api/kubevirt/virtual-machine-instance-spec.ts';

/** How many times as much as it starts with a guest may get, where the cluster says nothing; KubeVirt's. */
const GROWTH_RATIO = 4;
/** Guests that are smaller get no room for memory unless they ask for it; KubeVirt's. */
const MEMORY_BYTES_MIN = 2 ** 30;
/** Nor do those that could get more than this: not every processor could address it. */
const MEMORY_BYTES_MAX = 2 ** 38;
/** A machine with room for more needs what QEMU does not give it by itself. */
const PROCESSORS_MAX = 255;

/** Whether changes of machines reach guests that run, where they can; as in KubeVirt they do unless the cluster says no. */
export function isLiveUpdated({ vmRolloutStrategy = 'LiveUpdate' }: KubeVirtConfiguration): boolean {
  return vmRolloutStrategy === 'LiveUpdate';
}

/** A guest with room for what is plugged in later. Machines without PCI have no way to tell it of that. */
export function withRoomToGrow(
  spec: VirtualMachineInstanceSpec,
  configuration: KubeVirtConfiguration,
): VirtualMachineInstanceSpec {
  const { domain } = spec;
  if (!isLiveUpdated(configuration) || domain.machine?.type === 'microvm' || domain.devices.disableHotplug) return spec;
  const { cpu = {}, memory } = domain;
  const maxSockets = cpu.maxSockets || socketsMax(cpu, configuration);
  const maxGuest = memory?.maxGuest ?? memoryMax(memory, configuration);
  return {
    ...spec,
    domain: {
      ...domain,
      cpu: { ...cpu, ...(maxSockets ? { maxSockets } : {}) },
      ...(memory ? { memory: { ...memory, ...(maxGuest === undefined ? {} : { maxGuest }) } } : {}),
    },
  };
}

function socketsMax(cpu: Cpu, { liveUpdateConfiguration }: KubeVirtConfiguration): number | undefined {
  if (cpu.dedicatedCpuPlacement) return undefined;
  const { maxHotplugRatio, maxCpuSockets } = liveUpdateConfiguration ?? {};
  const sockets = cpu.sockets || 1;
  const perSocket = (cpu.cores || 1) * (cpu.threads || 1);
  const wanted = maxCpuSockets || sockets * (maxHotplugRatio || GROWTH_RATIO);
  return Math.max(sockets, Math.min(wanted, Math.floor(PROCESSORS_MAX / perSocket)));
}

/** Small guests would lose much of what they have to the tables for what they could have. */
function memoryMax(
  memory: Domain['memory'],
  { liveUpdateConfiguration }: KubeVirtConfiguration,
): QuantityValue | undefined {
  const guest = parseQuantity(memory?.guest);
  if (!guest || memory?.hugepages || quantityToNumber(guest) < MEMORY_BYTES_MIN) return undefined;
  const { maxHotplugRatio = GROWTH_RATIO, maxGuest } = liveUpdateConfiguration ?? {};
  if (maxGuest === undefined && quantityToNumber(guest) * maxHotplugRatio > MEMORY_BYTES_MAX) return undefined;
  return maxGuest ?? formatQuantity({ ...guest, amount: guest.amount * BigInt(maxHotplugRatio || GROWTH_RATIO) });
}
