import type { Cpu } from '../../api/kubevirt/processor-and-memory.ts';
import type { KubeVirtConfiguration } from '../../api/kubevirt/kube-virt.ts';
import type { VirtualMachineInstanceSpec } from '../../api/kubevirt/virtual-machine-instance-spec.ts';
import { addQuantities, formatQuantity, parseQuantity, type Quantity, quantityToNumber } from '../../api/quantity.ts';
import type { QuantityValue } from '../../api/typed-schema.ts';

/**
 * What a launcher pod asks of its node: what the guest asks for, and what QEMU needs beside the guest's memory. No
 * libvirt runs in the pod, so that this is less than KubeVirt's figure for the same guest.
 */

export interface ContainerResources {
  readonly requests: Readonly<Record<string, string>>;
  readonly limits?: Readonly<Record<string, string>>;
}

/** Processors of guests that share one of a node, where the cluster says nothing. */
const CPU_ALLOCATION_RATIO = 10;
/** QEMU itself, with the launcher beside it: 45 MiB were measured for the smallest guest, 70 for a Linux of 128 MiB. */
const QEMU_MEBIBYTES = 96;
/** The launcher that starts QEMU in a container: a Node of its own. */
const LAUNCHER_MEBIBYTES = 80;
/** Stack and tables of each processor. */
const PROCESSOR_MEBIBYTES = 8;
/** The thread that serves disks. */
const DISK_THREAD_MEBIBYTES = 8;
/** What emulates a trusted platform module is a process of its own. */
const TPM_MEBIBYTES = 53;
/** One byte of page tables for so many of memory. */
const PAGE_TABLE_RATIO = 512n;
const UNIT = 1_000_000_000n;
const MEBIBYTE = 1024n * 1024n * UNIT;

/** How many processors the guest sees. */
export function processorCount({ domain }: VirtualMachineInstanceSpec): number {
  const { sockets = 0, cores = 0, threads = 0 }: Cpu = domain.cpu ?? {};
  if (sockets || cores || threads) return (sockets || 1) * (cores || 1) * (threads || 1);
  const given = parseQuantity(domain.resources?.limits?.['cpu'] ?? domain.resources?.requests?.['cpu']);
  return given ? Math.max(1, Math.ceil(quantityToNumber(given))) : 1;
}

/** What QEMU needs beside the memory of the guest. */
export function memoryOverhead(spec: VirtualMachineInstanceSpec): Quantity {
  const { devices } = spec.domain;
  const tpm = devices.tpm && devices.tpm.enabled !== false ? TPM_MEBIBYTES : 0;
  const fixed = QEMU_MEBIBYTES + processorCount(spec) * PROCESSOR_MEBIBYTES + DISK_THREAD_MEBIBYTES + tpm;
  const tables = (guestMemory(spec)?.amount ?? 0n) / PAGE_TABLE_RATIO;
  // In whole mebibytes, for those who read it.
  const pages = (tables + MEBIBYTE - 1n) / MEBIBYTE;
  return { amount: (BigInt(fixed) + pages) * MEBIBYTE, format: 'BinarySI' };
}

/** How much memory the guest sees. */
export function guestMemory({ domain }: VirtualMachineInstanceSpec): Quantity | undefined {
  const { memory, resources } = domain;
  return parseQuantity(
    memory?.guest ?? resources?.requests?.['memory'] ?? resources?.limits?.['memory'] ?? memory?.hugepages?.pageSize,
  );
}

/** Requests and limits of the container that QEMU runs in; a launcher of our own is beside it where that is really one. */
export function launcherResources(
  spec: VirtualMachineInstanceSpec,
  configuration: KubeVirtConfiguration,
  isContainer = false,
): ContainerResources {
  const { resources = {}, cpu, memory } = spec.domain;
  const { requests = {}, limits = {} } = resources;
  const launcher: Quantity = { amount: BigInt(isContainer ? LAUNCHER_MEBIBYTES : 0) * MEBIBYTE, format: 'BinarySI' };
  const overhead = addQuantities(memoryOverhead(spec), launcher);
  const asked = parseQuantity(requests['memory'] ?? limits['memory']) ?? guestMemory(spec) ?? ZERO;
  const isHuge = memory?.hugepages?.pageSize !== undefined;
  const own = isHuge ? ZERO : asked;
  const request = resources.overcommitGuestOverhead ? own : addQuantities(overhead, own);
  const limit = parseQuantity(limits['memory']);
  const memoryLimit = limit ? addQuantities(overhead, isHuge ? ZERO : limit) : undefined;
  const huge = isHuge
    ? { [`hugepages-${memory?.hugepages?.pageSize}`]: formatQuantity(guestMemory(spec) ?? asked) }
    : {};
  const all = {
    requests: {
      ...formatted(requests),
      cpu: cpuRequest(spec, configuration),
      memory: formatQuantity(request),
      ...huge,
    },
    limits: { ...formatted(limits), ...(memoryLimit ? { memory: formatQuantity(memoryLimit) } : {}), ...huge },
  };
  if (cpu?.dedicatedCpuPlacement) {
    // Only pods whose requests are their limits get processors of their own.
    const whole = { cpu: String(processorCount(spec)), memory: formatQuantity(memoryLimit ?? request) };
    return { requests: { ...all.requests, ...whole }, limits: { ...all.limits, ...whole } };
  }
  return Object.keys(all.limits).length > 0 ? all : { requests: all.requests };
}

const ZERO: Quantity = { amount: 0n, format: 'BinarySI' };

function cpuRequest(
  spec: VirtualMachineInstanceSpec,
  { developerConfiguration, cpuRequest: each }: KubeVirtConfiguration,
): string {
  const { requests = {}, limits = {} } = spec.domain.resources ?? {};
  const given = parseQuantity(requests['cpu'] ?? limits['cpu']);
  if (given) return formatQuantity(given);
  const ratio = Math.max(1, developerConfiguration?.cpuAllocationRatio ?? CPU_ALLOCATION_RATIO);
  const one = parseQuantity(each) ?? { amount: UNIT / BigInt(ratio), format: 'DecimalSI' };
  const milli = UNIT / 1000n;
  const amount = one.amount * BigInt(processorCount(spec));
  return formatQuantity({ amount: ((amount + milli - 1n) / milli) * milli, format: 'DecimalSI' });
}

function formatted(amounts: Readonly<Record<string, QuantityValue>>): Record<string, string> {
  return Object.fromEntries(Object.entries(amounts).map(([name, value]) => [name, String(value)]));
}
