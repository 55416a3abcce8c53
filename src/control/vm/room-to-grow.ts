import type { KubeVirtConfiguration } from '../../api/kubevirt/kube-virt.ts';
import type { VirtualMachineInstanceSpec } from '../../api/kubevirt/virtual-machine-instance-spec.ts';

/** How many times as many sockets as it starts with a guest may get, where the cluster says nothing; KubeVirt's. */
const GROWTH_RATIO = 4;
/** More processors than that no machine may have, nor may any that it could get. */
const PROCESSORS_MAX = 512;

/** Whether changes of machines reach guests that run, where they can; as in KubeVirt they do unless the cluster says no. */
export function isLiveUpdated({ vmRolloutStrategy = 'LiveUpdate' }: KubeVirtConfiguration): boolean {
  return vmRolloutStrategy === 'LiveUpdate';
}

/** A guest with room for processors that are plugged in later. Machines without PCI have no way to tell it of them. */
export function withRoomToGrow(
  spec: VirtualMachineInstanceSpec,
  configuration: KubeVirtConfiguration,
): VirtualMachineInstanceSpec {
  const { cpu = {}, machine, devices } = spec.domain;
  if (!isLiveUpdated(configuration) || cpu.maxSockets || machine?.type === 'microvm') return spec;
  if (devices.disableHotplug || cpu.dedicatedCpuPlacement) return spec;
  const { maxHotplugRatio, maxCpuSockets } = configuration.liveUpdateConfiguration ?? {};
  const sockets = cpu.sockets || 1;
  const perSocket = (cpu.cores || 1) * (cpu.threads || 1);
  const wanted = maxCpuSockets || sockets * (maxHotplugRatio || GROWTH_RATIO);
  const maxSockets = Math.max(sockets, Math.min(wanted, Math.floor(PROCESSORS_MAX / perSocket)));
  return { ...spec, domain: { ...spec.domain, cpu: { ...cpu, maxSockets } } };
}
