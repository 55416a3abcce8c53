import { createHash } from 'node:crypto';
import { errorMessage } from '../../api/error-message.ts';
import { type Peer, type PeerAnswer, PeerError, type PeerRequest, type Peers, type PeerService } from './peer.ts';
import { parseAnswer, parseRequest } from './peer-language.ts';

/** Agents in one process that speak with each other as they would from afar, over a link that can be cut. */
export class NearPeers {
  readonly services = new Map<string, PeerService>();
  /** Nodes that nobody reaches. */
  readonly unreachable = new Set<string>();
  /** Nodes whose answers are lost. */
  readonly unheard = new Set<string>();
  /** Whether messages of the protocol get lost, and nothing else. */
  losesLetters = false;
  /** How often anybody was answered. */
  exchanges = 0;

  /** What the agent of this node speaks with. */
  of(caller: string): Peers {
    return { exchange: (peer, request, signal) => this.#exchange(caller, peer, request, signal) };
  }

  async #exchange(
    caller: string,
    { node, keys }: Peer,
    request: PeerRequest,
    signal: AbortSignal,
  ): Promise<PeerAnswer> {
    const service = this.services.get(node);
    const isLost = this.losesLetters && request.kind === 'letter';
    if (!service || isLost || this.unreachable.has(node))
      throw new PeerError('Unreachable', `nobody answers at ${node}`);
    if (keys && !keys.includes(nearKey(node))) throw new PeerError('Unreachable', `${node} shows another key`);
    let answer: PeerAnswer;
    try {
      answer = await service.answer({ node: caller, key: nearKey(caller) }, parseRequest(overWire(request)), signal);
    } catch (error) {
      throw new PeerError('Refused', errorMessage(error), error);
    }
    this.exchanges++;
    if (this.unheard.has(node)) throw new PeerError('Unreachable', `the answer of ${node} was lost`);
    return parseAnswer(overWire(answer));
  }
}

/** By what the key of a node's agent is known, where nobody has real ones. */
export function nearKey(node: string): string {
  return createHash('sha256').update(node).digest('base64');
}

function overWire(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}
