import type { KubeObject } from '../../api/meta.ts';
import { ApiError, badRequest } from '../../api/status.ts';
import type { Logger } from '../../env/ports.ts';
import { type Agents, guestPath } from './agents.ts';

/**
 * What a guest's serial port has said, wherever the guest was: every node keeps what was said there. Nodes that the guest
 * has left come first, the one that it is on comes last, and can be followed.
 */

export interface LogOptions {
  readonly follow: boolean;
  /** Lines from the end, of all nodes together; all of them where undefined. */
  readonly tailLines: number | undefined;
  /** Bytes of the answer at most. */
  readonly limitBytes: number | undefined;
}

export interface LogPlace {
  readonly namespace: string;
  readonly name: string;
  /** The node that the guest is on, if it is on one. */
  readonly current: string | undefined;
  /** All others that may have something. */
  readonly others: readonly string[];
}

/** Of what nodes said before, kept in memory to find the last lines of it. */
const KEPT_BYTES_MAX = 64 * 1024 * 1024;
const LINE_BREAK = 10;

/** Reads the options of a request as `kubectl logs` names them. Throws 400. */
export function logOptions(query: URLSearchParams): LogOptions {
  const count = (name: string): number | undefined => {
    const text = query.get(name);
    if (text === null || text === '') return undefined;
    if (!/^\d{1,15}$/.test(text)) throw badRequest(`${name} must be a whole number that is not negative`);
    return Number(text);
  };
  const follow = query.get('follow');
  return {
    follow: follow !== null && follow !== 'false' && follow !== '0',
    tailLines: count('tailLines'),
    limitBytes: count('limitBytes'),
  };
}

/** Nodes that may have something of a guest's: those with an agent of ours. */
export function nodesWithAgents(nodes: readonly KubeObject[]): string[] {
  return nodes
    .filter(({ metadata }) => metadata.labels && Object.hasOwn(metadata.labels, 'kubevirt.io/schedulable'))
    .map(({ metadata }) => metadata.name ?? '')
    .toSorted();
}

export class SerialLogs {
  readonly #agents: Agents;
  readonly #log: Logger;

  constructor(agents: Agents, log: Logger) {
    this.#agents = agents;
    this.#log = log;
  }

  /** The log in pieces. Nodes that cannot be reached are left out, unless the guest is there now. */
  async *read(place: LogPlace, options: LogOptions, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    let leftBytes = options.limitBytes ?? Number.POSITIVE_INFINITY;
    for await (const piece of this.#pieces(place, options, signal)) {
      yield piece.length > leftBytes ? piece.subarray(0, leftBytes) : piece;
      leftBytes -= piece.length;
      if (leftBytes <= 0) return;
    }
  }

  async *#pieces(place: LogPlace, options: LogOptions, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    const { current, others } = place;
    const { tailLines, follow } = options;
    if (tailLines === undefined) {
      for (const node of others) yield* this.#pastOf(node, place, undefined, signal);
    } else yield* await this.#tailOfOthers(place, tailLines, signal);
    if (current !== undefined) yield* this.#stream(current, place, { follow, tailLines }, signal);
  }

  /** The lines that are wanted of those before the current node's. */
  async #tailOfOthers(place: LogPlace, tailLines: number, signal: AbortSignal): Promise<Uint8Array[]> {
    const { current, others } = place;
    const now = current === undefined ? [] : await this.#collect(current, place, tailLines, signal);
    const wanted = tailLines - countLines(now);
    if (wanted <= 0 || others.length === 0) return [];
    const parts = await Promise.all(others.map((node) => this.#collect(node, place, wanted, signal)));
    return [lastLines(Buffer.concat(parts.flat()), wanted)];
  }

  async #collect(node: string, place: LogPlace, tailLines: number, signal: AbortSignal): Promise<Uint8Array[]> {
    const pieces: Uint8Array[] = [];
    let length = 0;
    for await (const piece of this.#pastOf(node, place, tailLines, signal)) {
      pieces.push(piece);
      length += piece.length;
      if (length > KEPT_BYTES_MAX) break;
    }
    return pieces;
  }

  async *#pastOf(
    node: string,
    place: LogPlace,
    tailLines: number | undefined,
    signal: AbortSignal,
  ): AsyncGenerator<Uint8Array> {
    try {
      yield* this.#stream(node, place, { follow: false, tailLines }, signal);
    } catch (error) {
      if (signal.aborted) throw error;
      // Its machine may be off; what the others have is worth having without it.
      this.#log.debug('no serial log from a node', { node, error: String(error) });
    }
  }

  async *#stream(
    node: string,
    { namespace, name }: LogPlace,
    { follow, tailLines }: Pick<LogOptions, 'follow' | 'tailLines'>,
    signal: AbortSignal,
  ): AsyncGenerator<Uint8Array> {
    const query = new URLSearchParams({
      ...(follow ? { follow: 'true' } : {}),
      ...(tailLines === undefined ? {} : { tailLines: String(tailLines) }),
    }).toString();
    const path = guestPath(namespace, name, 'log') + (query === '' ? '' : `?${query}`);
    const { status, body } = await this.#agents.send(node, { method: 'GET', path, signal });
    if (status === 200) yield* body;
    else {
      const text = await textOf(body);
      if (status !== 404) throw new ApiError(502, 'InternalError', `node ${node} answered ${status}: ${text}`);
    }
  }
}

const ERROR_BYTES_MAX = 4096;

/** What an agent has to say for itself. */
export async function textOf(body: AsyncIterable<Uint8Array>): Promise<string> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of body) {
    length += piece.length;
    if (length > ERROR_BYTES_MAX) break;
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString('utf8');
}

/** Lines that have begun; the last one need not have ended. */
function countLines(pieces: readonly Uint8Array[]): number {
  let count = 0;
  for (const piece of pieces) for (const byte of piece) if (byte === LINE_BREAK) count++;
  const last = pieces.findLast((piece) => piece.length > 0)?.at(-1);
  return last === undefined || last === LINE_BREAK ? count : count + 1;
}

function lastLines(bytes: Uint8Array, count: number): Uint8Array {
  let left = count;
  for (let index = bytes.length - 2; index >= 0; index--) {
    if (bytes[index] === LINE_BREAK && --left === 0) return bytes.subarray(index + 1);
  }
  return bytes;
}
