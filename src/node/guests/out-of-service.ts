import type { Resource } from '../../kube/resource.ts';
import type { Node } from '../../migration/fit/objects.ts';

export const nodes: Resource<Node> = { group: '', version: 'v1', plural: 'nodes', kind: 'Node', namespaced: false };

const OUT_OF_SERVICE = 'node.kubernetes.io/out-of-service';

/** Whether an admin says that nothing of a node runs any more. */
export function isOutOfService(node: Node | undefined): boolean {
  return node?.spec?.taints?.some(({ key }) => key === OUT_OF_SERVICE) === true;
}
