/** The longest message of an event, as upstream. */
const EVENT_MESSAGE_LENGTH_MAX = 1024;
const ELLIPSIS = ' ...';

/** `0/3 nodes are available: 1 Insufficient cpu, 2 Too many pods.`: each reason with the number of nodes it holds for. */
export function fitErrorMessage(nodeCount: number, reasons: Iterable<string>): string {
  const counts = new Map<string, number>();
  for (const reason of reasons) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  const parts = [...counts].map(([reason, count]) => `${count} ${reason}`).sort();
  const head = `0/${nodeCount} nodes are available:`;
  return parts.length === 0 ? head : `${head} ${parts.join(', ')}.`;
}

/** The same for what keeps a pod from every node. */
export function refusalMessage(nodeCount: number, reason: string): string {
  return `0/${nodeCount} nodes are available: ${reason}.`;
}

/** Cuts a message to what an event may carry. */
export function eventMessage(message: string): string {
  if (message.length <= EVENT_MESSAGE_LENGTH_MAX) return message;
  return message.slice(0, EVENT_MESSAGE_LENGTH_MAX - ELLIPSIS.length) + ELLIPSIS;
}
