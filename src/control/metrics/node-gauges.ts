import { ACCELERATOR_LABEL } from '../../api/kubevirt/node-labels.ts';
import { virtualMachineInstances } from '../../kube/kubevirt-resources.ts';
import type { Sample } from '../../kube/sampled-gauge.ts';
import type { Node } from '../../migration/fit/objects.ts';
import { configurationOf, type ControlContext } from '../context.ts';
import { isDraining, nodesOfGuest } from '../evacuation/draining.ts';
import { DRAIN_BLOCKED } from '../evacuation/hindrances.ts';
import { nodes } from '../resources.ts';
import type { DefineGauge } from './define-gauge.ts';

/** The nodes that run guests: others' agents are none of ours. */

export function nodeGauges({ informers }: Pick<ControlContext, 'informers'>, define: DefineGauge): void {
  const all = informers.of(nodes);
  const guests = informers.of(virtualMachineInstances, { onNode: nodesOfGuest });
  const configuration = configurationOf(informers);
  const defineOfNodes = (name: string, help: string, valueOf: (node: Node) => number | boolean): void =>
    define({ name, help, labels: ['node'] }, () =>
      [...all.list()]
        .filter(isOurs)
        .map((node): Sample<'node'> => [{ node: node.metadata.name ?? '' }, Number(valueOf(node))]),
    );
  defineOfNodes('godwit_node_ready', 'Whether the agent of a node is heard of, and says that it works.', ({ status }) =>
    isTrue(status, 'Ready'),
  );
  defineOfNodes('godwit_node_guests', 'Guests that are on a node.', ({ metadata }) =>
    guests.countByIndex('onNode', metadata.name ?? ''),
  );
  defineOfNodes(
    'godwit_node_draining',
    'Whether somebody empties a node, or is about to: it is cordoned, or has the drain taint.',
    (node) => isDraining(node, configuration()),
  );
  defineOfNodes(
    'godwit_node_drain_blocked',
    'Whether guests cannot leave a node that somebody empties; its condition DrainBlocked says which, and why.',
    ({ status }) => isTrue(status, DRAIN_BLOCKED),
  );
}

function isTrue(status: Node['status'], condition: string): boolean {
  return status?.conditions?.find(({ type }) => type === condition)?.status === 'True';
}

/** An agent's, alone or beside a kubelet. */
function isOurs({ metadata }: Node): boolean {
  return metadata.labels?.[ACCELERATOR_LABEL] !== undefined;
}
