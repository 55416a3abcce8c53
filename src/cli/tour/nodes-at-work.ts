import { connect } from 'node:net';
import { agentPortOf } from '../../api/kubevirt/agent-port.ts';
import { SCHEDULABLE_LABEL } from '../../api/kubevirt/well-known.ts';
import { nodes } from '../../cluster/resources.ts';
import type { Client } from '../../kube/client.ts';
import type { Node as NodeOfAgent } from '../../extension/subresources/https-agents.ts';
import type { Node } from '../../migration/fit/objects.ts';

/** How long an agent may take to answer: it is on this machine. */
const ANSWER_MS = 1000;

/** How many nodes there are, and how many of them take guests. */
export async function lookAtNodes(client: Client, signal: AbortSignal): Promise<{ all: number; atWork: number }> {
  const { items } = await client.list(nodes, {}, signal);
  const answers = await Promise.all(items.map(async (node) => takesGuests(node) && (await isReached(node))));
  return { all: items.length, atWork: answers.filter(Boolean).length };
}

function takesGuests({ metadata, spec, status }: Node): boolean {
  const isReady = status?.conditions?.some((each) => each.type === 'Ready' && each.status === 'True') ?? false;
  return isReady && metadata.labels?.[SCHEDULABLE_LABEL] === 'true' && !spec?.unschedulable;
}

/** Whether the node's agent can be reached: right after a start, what is said of nodes is from before. */
function isReached(node: Node): Promise<boolean> {
  const { addresses } = (node.status ?? {}) as NonNullable<NodeOfAgent['status']>;
  const port = agentPortOf(node as NodeOfAgent);
  const host = addresses?.find(({ type }) => type === 'InternalIP')?.address;
  if (port === undefined || host === undefined) return Promise.resolve(false);
  return new Promise((resolve) => {
    const socket = connect({ port, host, timeout: ANSWER_MS });
    const end = (isThere: boolean) => (): void => {
      socket.destroy();
      resolve(isThere);
    };
    socket.once('connect', end(true)).once('error', end(false)).once('timeout', end(false));
  });
}
