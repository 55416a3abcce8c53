import type { Node } from '../fit/objects.ts';

const OUT_OF_SERVICE = 'node.kubernetes.io/out-of-service';

/** Whether an admin says that nothing of a node runs any more. */
export function isOutOfService(node: Pick<Node, 'spec'> | undefined): boolean {
  return node?.spec?.taints?.some(({ key }) => key === OUT_OF_SERVICE) === true;
}
