import type { UpgradeAnswer } from '../server/message.ts';

/** The agents on nodes, as the subresources see them. */

export interface AgentRequest {
  readonly method: 'GET' | 'PUT';
  /** With its query, percent-encoded. */
  readonly path: string;
  readonly signal: AbortSignal;
}

export interface AgentResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: AsyncIterable<Uint8Array>;
}

export interface Agents {
  /** Asks the agent of a node. Rejects with 503 where it cannot be reached. */
  send(node: string, request: AgentRequest): Promise<AgentResponse>;
  /** Asks it for a WebSocket, with these headers of the client's. */
  upgrade(node: string, request: AgentRequest, headers: Readonly<Record<string, string>>): Promise<UpgradeAnswer>;
}

/** The path of a guest on its agent. */
export function guestPath(namespace: string, name: string, subresource: string): string {
  return `/v1/namespaces/${encodeURIComponent(namespace)}/virtualmachineinstances/${encodeURIComponent(name)}/${subresource}`;
}

const TEXT_BYTES_MAX = 1024 * 1024;

/** What an agent has to say, where that is not much. */
export async function textOf(body: AsyncIterable<Uint8Array>): Promise<string> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of body) {
    length += piece.length;
    if (length > TEXT_BYTES_MAX) break;
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString('utf8');
}
