import type { KubeVirtConfiguration } from '../../api/kubevirt/kube-virt.ts';
import type { Node } from '../fit/objects.ts';

/** The taint by which a node is emptied of guests without anybody evicting them, as KubeVirt had it before there were evictions. */

const DEFAULT_KEY = 'kubevirt.io/drain';

/** The key of the taint. */
export function drainTaintKey({ migrations }: KubeVirtConfiguration): string {
  return migrations?.nodeDrainTaintKey || DEFAULT_KEY;
}

/** Whether the node has the taint that empties it of guests. */
export function hasDrainTaint({ spec }: Node, configuration: KubeVirtConfiguration): boolean {
  const wanted = drainTaintKey(configuration);
  return spec?.taints?.some(({ key, effect }) => key === wanted && effect === 'NoSchedule') === true;
}
