import type { KubeVirtConfiguration } from '../../api/kubevirt/kube-virt.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import { hasDrainTaint } from '../../migration/eviction/drain-taint.ts';
import type { Node } from '../../migration/fit/objects.ts';
import { sourceNodeOf } from '../../migration/phase/facts.ts';

/** Which nodes are being emptied, and who is on them. */

/** Whether somebody empties the node, or is about to: it takes no more pods, or has the taint. */
export function isDraining(node: Node, configuration: KubeVirtConfiguration): boolean {
  return node.spec?.unschedulable === true || hasDrainTaint(node, configuration);
}

/** The node that a guest is on, for an index. */
export function nodesOfGuest(guest: VirtualMachineInstance): readonly string[] {
  const node = sourceNodeOf(guest);
  return node ? [node] : [];
}
