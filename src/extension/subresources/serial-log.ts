import { LOG_OFFSET_HEADER } from '../../api/guest-run.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import { SCHEDULABLE_LABEL } from '../../api/kubevirt/well-known.ts';
import { ApiError, badRequest } from '../../api/status.ts';
import { type Clock, type Logger, sleep } from '../../env/ports.ts';
import { findCondition } from '../../kube/conditions.ts';
import { type Agents, guestPath, textOf } from './agents.ts';
import { findRuns, type FoundRun, type GuestName, goesOn } from './guest-runs.ts';
import type { Node } from './https-agents.ts';
import { collected, countLines, endsLine, limited, NEW_LINE, startOfLastLines } from './log-lines.ts';

/**
 * What a guest's serial port has said, wherever the guest was: every node keeps what was said there, run by run. Runs are
 * told one after the other, and whoever follows goes with the guest, from node to node, until it ends.
 */

export interface LogOptions {
  readonly follow: boolean;
  /** Lines from the end, of all runs together; all of them where undefined. */
  readonly tailLines: number | undefined;
  /** Bytes of the answer at most. */
  readonly limitBytes: number | undefined;
}

export interface SerialLogsOptions {
  readonly agents: Agents;
  readonly clock: Clock;
  readonly log: Logger;
  /** The guest that has a name now. */
  readonly guestOf: (of: GuestName, signal: AbortSignal) => Promise<VirtualMachineInstance | undefined>;
  /** Nodes that may have something of a guest's. */
  readonly nodes: (signal: AbortSignal) => Promise<readonly string[]>;
}

/** How soon it is looked again where a guest is that has left a node, and how late. */
const LOOK_MS_MIN = 250;
const LOOK_MS_MAX = 2_000;
/** How long a guest that is followed may be where it cannot be asked for. */
const PATIENCE_MS = 60_000;
/** The agent was there, and did not say what it was asked. */
const REFUSED = 502;

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

/** What is told first, and what is then passed on as it comes. */
interface Beginning {
  readonly past: Uint8Array;
  readonly runs: readonly FoundRun[];
  /** Lines from the end, of these runs; all of them where undefined. */
  readonly tailLines: number | undefined;
}

/** A run to be told, after another. */
interface Next {
  readonly run: FoundRun;
  readonly before: FoundRun | undefined;
  readonly follow: boolean;
  readonly tailLines: number | undefined;
}

const NOTHING = new Uint8Array();

export class SerialLogs {
  readonly #options: SerialLogsOptions;

  constructor(options: SerialLogsOptions) {
    this.#options = options;
  }

  /** The log in pieces, once it is known where they come from. Rejects where the node cannot be asked that the guest is on. */
  async open(of: GuestName, options: LogOptions, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
    const guest = await this.#options.guestOf(of, signal);
    const runs = await this.#runs(of, guest, signal);
    const { tailLines, follow } = options;
    const beginning: Beginning =
      tailLines === undefined
        ? { past: NOTHING, runs, tailLines }
        : await this.#lastLines(of, runs, { tailLines, follow }, signal);
    const next = this.#next(of, follow ? guest : undefined, runs, beginning, follow, signal);
    return limited(this.#tell(of, beginning, next, signal), options.limitBytes);
  }

  async *#tell(
    of: GuestName,
    { past }: Beginning,
    runs: AsyncIterable<Next>,
    signal: AbortSignal,
  ): AsyncGenerator<Uint8Array> {
    let isLineBegun = !endsLine(past);
    if (past.length > 0) yield past;
    for await (const { run, before, follow, tailLines } of runs) {
      if (isLineBegun && before && !goesOn(before, run)) {
        yield NEW_LINE;
        isLineBegun = false;
      }
      const said = follow ? this.#followed(of, run, tailLines, signal) : await this.#logOf(of, run, tailLines, signal);
      for await (const piece of said) {
        if (piece.length === 0) continue;
        yield piece;
        isLineBegun = !endsLine(piece);
      }
    }
    if (isLineBegun) yield NEW_LINE;
  }

  /** The runs to begin with; then, where a guest is followed, each that it goes on in. */
  async *#next(
    of: GuestName,
    guest: VirtualMachineInstance | undefined,
    known: readonly FoundRun[],
    { runs, tailLines }: Beginning,
    follow: boolean,
    signal: AbortSignal,
  ): AsyncGenerator<Next> {
    for (const [index, run] of runs.entries())
      yield { run, before: runs[index - 1], follow: follow && run.isLive && run === known.at(-1), tailLines };
    if (guest) yield* this.#moves(of, guest, new Set(known.map(({ podUID }) => podUID)), signal);
  }

  /** The runs that a guest goes on in, after those that were told, until it ends. */
  async *#moves(
    of: GuestName,
    { metadata }: VirtualMachineInstance,
    told: Set<string>,
    signal: AbortSignal,
  ): AsyncGenerator<Next> {
    const { clock, log } = this.#options;
    let heardMs = clock.now();
    let waitMs = LOOK_MS_MIN;
    while (!signal.aborted) {
      try {
        const { isOver, before, runs } = await this.#look(of, metadata.uid ?? '', told, signal);
        waitMs = runs.length > 0 ? LOOK_MS_MIN : Math.min(LOOK_MS_MAX, 2 * waitMs);
        for (const [index, run] of runs.entries()) {
          told.add(run.podUID);
          const follow = run.isLive && index === runs.length - 1;
          yield { run, before: runs[index - 1] ?? before, follow, tailLines: undefined };
        }
        if (isOver && runs.length === 0) return;
        heardMs = clock.now();
      } catch (error) {
        if (signal.aborted || clock.now() - heardMs > PATIENCE_MS) throw error;
        log.debug('cannot tell where a guest is', { ...of, error: String(error) });
      }
      await sleep(clock, waitMs, signal);
    }
  }

  /** Whether a guest has ended, and where it has been since. */
  async #look(
    of: GuestName,
    guestUID: string,
    told: ReadonlySet<string>,
    signal: AbortSignal,
  ): Promise<{ isOver: boolean; before: FoundRun | undefined; runs: FoundRun[] }> {
    const guest = await this.#options.guestOf(of, signal);
    const { phase, rightToRun } = (guest?.metadata.uid === guestUID ? guest.status : undefined) ?? {};
    const holder = phase === 'Succeeded' || phase === 'Failed' ? undefined : rightToRun?.holder;
    const isOver = holder === undefined;
    // As long as nobody else holds it, nobody else has executed it.
    if (holder && told.has(holder.podUID)) return { isOver, before: undefined, runs: [] };
    const all = await this.#runs(of, guest, signal);
    const last = all.findLastIndex(({ podUID }) => told.has(podUID));
    const runs = all.slice(last + 1).filter((run) => run.guestUID === guestUID);
    return { isOver, before: all[last], runs };
  }

  async #runs(of: GuestName, guest: VirtualMachineInstance | undefined, signal: AbortSignal): Promise<FoundRun[]> {
    const { agents, log } = this.#options;
    const { rightToRun, nodeName } = guest?.status ?? {};
    // The record is ahead of what is told of it.
    const current = rightToRun?.holder?.node ?? (nodeName || undefined);
    return findRuns(agents, of, { current, nodes: await this.#options.nodes(signal) }, log, signal);
  }

  /** What to begin with for no more than the last lines. */
  async #lastLines(
    of: GuestName,
    runs: readonly FoundRun[],
    { tailLines, follow }: { readonly tailLines: number; readonly follow: boolean },
    signal: AbortSignal,
  ): Promise<Beginning> {
    const newest = runs.at(-1);
    if (!newest) return { past: NOTHING, runs: [], tailLines: undefined };
    const found: Uint8Array[] = [];
    let lines = 0;
    for (const run of runs.toReversed()) {
      // One more than is wanted says that the first one is whole.
      const bytes = await collected(await this.#logOf(of, run, tailLines + 1, signal));
      found.unshift(bytes);
      lines += countLines(bytes);
      if (follow && run === newest && lines > tailLines) return { past: NOTHING, runs: [newest], tailLines };
      // Each may end in the middle of a line that the next goes on with.
      if (lines > tailLines + found.length) break;
    }
    const text = joined(runs.slice(-found.length), found);
    const start = startOfLastLines(text, tailLines);
    if (!follow) return { past: text.subarray(start), runs: [], tailLines: undefined };
    // The newest is all told anew: more may have been said there since.
    const past = text.subarray(start, text.length - (found.at(-1)?.length ?? 0));
    return { past, runs: [newest], tailLines: undefined };
  }

  /** What was said in one run; nothing where a node that the guest has left cannot be reached any more. */
  async #logOf(
    of: GuestName,
    run: FoundRun,
    tailLines: number | undefined,
    signal: AbortSignal,
  ): Promise<AsyncIterable<Uint8Array>> {
    try {
      return (await this.#ask(of, run, { tailLines }, signal)).body;
    } catch (error) {
      if (signal.aborted || run.isLive) throw error;
      this.#options.log.debug('no serial log from a node', { node: run.node, error: String(error) });
      return nothing();
    }
  }

  /** What is said in one run until no more can come. An agent that is away for a while is asked again from there on. */
  async *#followed(
    of: GuestName,
    run: FoundRun,
    tailLines: number | undefined,
    signal: AbortSignal,
  ): AsyncGenerator<Uint8Array> {
    const { clock, log } = this.#options;
    let from: { readonly tailLines?: number | undefined; readonly offset?: number } = { tailLines };
    let heardMs = clock.now();
    for (;;) {
      const askedMs = clock.now();
      let { offset } = from;
      try {
        const answer = await this.#ask(of, run, { ...from, follow: true }, signal);
        ({ offset } = answer);
        for await (const piece of answer.body) {
          yield piece;
          if (piece.length > 0) heardMs = clock.now();
          if (offset !== undefined) offset += piece.length;
        }
        return;
      } catch (error) {
        // One that said nothing for long, and was there all the time, is as good as one that said something.
        if (clock.now() - askedMs > PATIENCE_MS) heardMs = clock.now();
        const isRefused = error instanceof ApiError && error.code === REFUSED;
        const isOver = signal.aborted || isRefused || clock.now() - heardMs > PATIENCE_MS;
        if (offset === undefined || isOver) throw error;
        log.debug('the serial log of a node broke off', { node: run.node, offset, error: String(error) });
        from = { offset };
      }
      await sleep(clock, LOOK_MS_MIN, signal);
    }
  }

  async #ask(
    { namespace, name }: GuestName,
    { node, podUID }: FoundRun,
    options: Readonly<Record<string, number | boolean | undefined>>,
    signal: AbortSignal,
  ): Promise<{ readonly body: AsyncIterable<Uint8Array>; readonly offset: number | undefined }> {
    const query = new URLSearchParams({ run: podUID });
    for (const [key, value] of Object.entries(options)) if (value !== undefined) query.set(key, String(value));
    const path = `${guestPath(namespace, name, 'log')}?${query.toString()}`;
    const { status, headers, body } = await this.#options.agents.send(node, { method: 'GET', path, signal });
    const offset = headers[LOG_OFFSET_HEADER];
    if (status === 200) return { body, offset: offset === undefined ? undefined : Number(offset) };
    throw new ApiError(REFUSED, 'InternalError', `node ${node} answered ${status}: ${await textOf(body)}`);
  }
}

async function* nothing(): AsyncGenerator<Uint8Array> {
  // There is nothing.
}

/** What was said in these runs, each on a line of its own unless it goes on with that of the one before. */
function joined(runs: readonly FoundRun[], said: readonly Uint8Array[]): Uint8Array {
  const pieces: Uint8Array[] = [];
  for (const [index, run] of runs.entries()) {
    const before = runs[index - 1];
    const isLineBegun = !endsLine(pieces.findLast(({ length }) => length > 0) ?? NOTHING);
    if (before && isLineBegun && !goesOn(before, run)) pieces.push(NEW_LINE);
    pieces.push(said[index] ?? NOTHING);
  }
  return Buffer.concat(pieces);
}
