import { SCHEDULABLE_LABEL } from '../../api/kubevirt/well-known.ts';
import { ApiError, badRequest } from '../../api/status.ts';
import type { Logger } from '../../env/ports.ts';
import { findCondition } from '../../kube/conditions.ts';
import { type Agents, guestPath } from './agents.ts';
import type { Node } from './https-agents.ts';

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

/** Nodes that may have something of a guest's, and can say so: those with an agent of ours that is heard of. */
export function nodesWithAgents(nodes: readonly Node[]): string[] {
  return nodes
    .filter(({ metadata }) => metadata.labels && Object.hasOwn(metadata.labels, SCHEDULABLE_LABEL))
    .filter(({ status }) => (findCondition(status?.conditions, 'Ready')?.status ?? 'True') === 'True')
    .map(({ metadata }) => metadata.name ?? '')
    .toSorted();
}

/** What a node has of a log, not read yet. */
interface Part {
  /** When something was last said there, as the agent says; empty where it does not. */
  readonly modified: string;
  readonly body: AsyncIterable<Uint8Array>;
}

type Reading = Pick<LogOptions, 'follow' | 'tailLines'>;

export class SerialLogs {
  readonly #agents: Agents;
  readonly #log: Logger;

  constructor(agents: Agents, log: Logger) {
    this.#agents = agents;
    this.#log = log;
  }

  /**
   * The log in pieces, once it is known where they come from. Nodes that cannot be reached are left out, unless the guest
   * is there now.
   */
  async open(place: LogPlace, options: LogOptions, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
    const { current } = place;
    const { tailLines, follow } = options;
    const wanted = tailLines === undefined ? undefined : tailLines - (await this.#countLines(place, tailLines, signal));
    const past = wanted === undefined || wanted > 0 ? await this.#past(place, wanted, signal) : [];
    const present =
      current === undefined ? undefined : await this.#partOf(current, place, { follow, tailLines }, signal);
    return limited(join(past, wanted, present), options.limitBytes);
  }

  /** How many of the last lines the node has that the guest is on. */
  async #countLines(place: LogPlace, tailLines: number, signal: AbortSignal): Promise<number> {
    if (place.current === undefined) return 0;
    const part = await this.#partOf(place.current, place, { follow: false, tailLines }, signal);
    return part ? countLines(await collected(part.body)) : 0;
  }

  /** What nodes have that the guest has left, in the order in which it was said. */
  async #past(place: LogPlace, tailLines: number | undefined, signal: AbortSignal): Promise<readonly Part[]> {
    const left = place.others.entries();
    const parts: (Part | undefined)[] = [];
    const askOn = async (): Promise<void> => {
      for (const [index, node] of left) parts[index] = await this.#pastOf(node, place, tailLines, signal);
    };
    await Promise.all(Array.from({ length: NODES_AT_ONCE_MAX }, askOn));
    const found = parts.filter((part) => part !== undefined);
    return found.toSorted((a, b) => (Date.parse(a.modified) || 0) - (Date.parse(b.modified) || 0));
  }

  async #pastOf(
    node: string,
    place: LogPlace,
    tailLines: number | undefined,
    signal: AbortSignal,
  ): Promise<Part | undefined> {
    try {
      return await this.#partOf(node, place, { follow: false, tailLines }, signal);
    } catch (error) {
      if (signal.aborted) throw error;
      // Its machine may be off; what the others have is worth having without it.
      this.#log.debug('no serial log from a node', { node, error: String(error) });
      return undefined;
    }
  }

  async #partOf(
    node: string,
    { namespace, name }: LogPlace,
    { follow, tailLines }: Reading,
    signal: AbortSignal,
  ): Promise<Part | undefined> {
    const query = new URLSearchParams({
      ...(follow ? { follow: 'true' } : {}),
      ...(tailLines === undefined ? {} : { tailLines: String(tailLines) }),
    }).toString();
    const path = guestPath(namespace, name, 'log') + (query === '' ? '' : `?${query}`);
    const { status, headers, body } = await this.#agents.send(node, { method: 'GET', path, signal });
    if (status === 200) return { modified: headers['last-modified'] ?? '', body };
    const text = await textOf(body);
    if (status === 404) return undefined;
    throw new ApiError(502, 'InternalError', `node ${node} answered ${status}: ${text}`);
  }
}

/** Nodes that are asked at once for what they have of the past. */
const NODES_AT_ONCE_MAX = 16;

async function* join(
  past: readonly Part[],
  lines: number | undefined,
  present: Part | undefined,
): AsyncGenerator<Uint8Array> {
  if (lines === undefined) for (const { body } of past) yield* body;
  else {
    const pieces: Uint8Array[] = [];
    for (const { body } of past) pieces.push(...(await collected(body)));
    if (pieces.length > 0) yield lastLines(Buffer.concat(pieces), lines);
  }
  if (present) yield* present.body;
}

async function* limited(pieces: AsyncIterable<Uint8Array>, limitBytes: number | undefined): AsyncGenerator<Uint8Array> {
  let leftBytes = limitBytes ?? Number.POSITIVE_INFINITY;
  for await (const piece of pieces) {
    yield piece.length > leftBytes ? piece.subarray(0, leftBytes) : piece;
    leftBytes -= piece.length;
    if (leftBytes <= 0) return;
  }
}

async function collected(body: AsyncIterable<Uint8Array>): Promise<Uint8Array[]> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of body) {
    pieces.push(piece);
    length += piece.length;
    if (length > KEPT_BYTES_MAX) break;
  }
  return pieces;
}

const ERROR_BYTES_MAX = 16 * 1024;

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
