import { createHash } from 'node:crypto';
import { errorMessage } from '../api/error-message.ts';
import type { Clock, Random } from '../env/ports.ts';
import {
  type Peer,
  type PeerAnswer,
  PeerError,
  type PeerErrorCode,
  type PeerRequest,
  type PeerService,
} from '../node/migrations/peer.ts';
import { parseAnswer, parseRequest } from '../node/migrations/peer-language.ts';
import type { FaultMix } from './fault-mix.ts';
import type { AgentsLink } from './model-node.ts';
import { clusterAt, nodeAt } from './places.ts';
import type { SimulatedProcess } from './process.ts';
import type { Tracer } from './trace.ts';

export interface AgentsChannelOptions {
  /** The network's own. */
  readonly clock: Clock;
  readonly random: Random;
  readonly trace: Tracer;
  /** As it is at any time. */
  readonly mix: () => Pick<FaultMix, 'network' | 'latencyMsMax'>;
  /** Answers that are not what was said, for planted bugs. */
  readonly spoilAnswer?: ((answer: PeerAnswer) => PeerAnswer) | undefined;
}

/** A process as far as others speak with it. */
export type Speaker = Pick<SimulatedProcess, 'clock' | 'killed'>;

interface Caller {
  readonly place: string;
  readonly speaker: Speaker;
}

/** Hears how one exchange ended; only the first word counts. */
interface Listener {
  readonly answer: (answer: PeerAnswer) => void;
  readonly fail: (code: PeerErrorCode, why: string) => void;
}

/** What got lost is given up after so long. */
const TIMEOUT_MS = 10_000;

/**
 * How agents reach each other without the API server. Everything is said as it would be on a wire, takes its time, may get
 * lost on either way, and is lost between two nodes that are cut off from each other. Agents of different clusters know each
 * other by their keys alone.
 */
export class AgentsChannel {
  readonly #options: AgentsChannelOptions;
  readonly #services = new Map<string, { readonly service: PeerService; readonly speaker: Speaker }>();
  readonly #cuts = new Map<string, number>();

  constructor(options: AgentsChannelOptions) {
    this.#options = options;
  }

  /** The end of the agent at a place, which is reached instead of whoever was there before. */
  linkOf(place: string, speaker: Speaker): AgentsLink {
    return {
      peers: { exchange: (peer, request, signal) => this.#exchange({ place, speaker }, peer, request, signal) },
      serve: (service) => void this.#services.set(place, { service, speaker }),
    };
  }

  /** For now these two do not reach each other; they do again when the answer is called. */
  cut(one: string, other: string): () => void {
    const pair = pairOf(one, other);
    this.#cuts.set(pair, (this.#cuts.get(pair) ?? 0) + 1);
    return () => this.#cuts.set(pair, Math.max(0, (this.#cuts.get(pair) ?? 0) - 1));
  }

  /** Everybody is reached again. */
  heal(): void {
    this.#cuts.clear();
  }

  #exchange(caller: Caller, peer: Peer, request: PeerRequest, signal: AbortSignal): Promise<PeerAnswer> {
    const about = `${request.kind === 'letter' ? request.message.kind : request.kind} to ${peer.address}`;
    const note = (what: string): void => this.#options.trace.add(caller.place, `says ${about}: ${what}`);
    return new Promise((resolve, reject) => {
      let isOver = false;
      const end = (what: string, act: () => void): void => {
        if (isOver || caller.speaker.killed.aborted) return;
        isOver = true;
        timer.cancel();
        signal.removeEventListener('abort', giveUp);
        note(what);
        caller.speaker.clock.setTimer(act, 0);
      };
      const fail = (code: PeerErrorCode, why: string): void =>
        end(`${code}, ${why}`, () => reject(new PeerError(code, why)));
      const giveUp = (): void => fail('Unreachable', 'there was no answer in time');
      const timer = caller.speaker.clock.setTimer(giveUp, TIMEOUT_MS);
      signal.addEventListener('abort', giveUp, { once: true });
      if (signal.aborted) return giveUp();
      this.#deliver(caller, peer, request, { answer: (answer) => end(summaryOf(answer), () => resolve(answer)), fail });
    });
  }

  /** Carries a request there and its answer back, if neither gets lost. */
  #deliver(caller: Caller, { address, keys }: Peer, request: PeerRequest, { answer, fail }: Listener): void {
    const { random, mix, spoilAnswer } = this.#options;
    const { requestLost = 0, answerLost = 0 } = mix().network;
    const [isThere, isBack] = [random.number() >= requestLost, random.number() >= answerLost];
    const isCut = (): boolean => (this.#cuts.get(pairOf(caller.place, address)) ?? 0) > 0;
    this.#later(() => {
      const other = this.#services.get(address);
      if (isCut() || !isThere) return;
      if (!other || other.speaker.killed.aborted) return fail('Unreachable', 'connection refused');
      if (!isKnown(caller.place, address, keys)) return fail('Unreachable', 'it has not proven who it is');
      const { killed, clock } = other.speaker;
      const back = (act: () => void): void => {
        killed.removeEventListener('abort', broken);
        this.#later(() => {
          if (!isCut() && isBack) act();
        });
      };
      const broken = (): void => back(() => fail('Unreachable', 'the connection broke'));
      killed.addEventListener('abort', broken, { once: true });
      clock.setTimer(() => {
        answerOf(other.service, { from: caller.place, to: address }, request).then(
          (said) => back(() => answer(spoilAnswer?.(said) ?? said)),
          (error: unknown) => back(() => fail('Refused', errorMessage(error))),
        );
      }, 0);
    });
  }

  #later(act: () => void): void {
    const { clock, random, mix } = this.#options;
    clock.setTimer(act, random.number() * mix().latencyMsMax);
  }
}

/** By what the agent at a place is known to those who do not believe its cluster's authority. */
export function agentKeyOf(place: string): string {
  return createHash('sha256').update(place).digest('base64');
}

/** Nobody but the caller knows when the caller has given up. */
async function answerOf(
  service: PeerService,
  { from, to }: { readonly from: string; readonly to: string },
  request: PeerRequest,
): Promise<PeerAnswer> {
  const asked = parseRequest(overWire(request));
  const isNear = clusterAt(from) === clusterAt(to);
  const shown = { ...(isNear ? { node: nodeAt(from) } : {}), key: agentKeyOf(from) };
  return parseAnswer(overWire(await service.answer(shown, asked, new AbortController().signal)));
}

/** Whether whoever is at an address is the one that is asked for: by its key, or as a node of the same cluster. */
function isKnown(caller: string, address: string, keys: readonly string[] | undefined): boolean {
  return keys ? keys.includes(agentKeyOf(address)) : clusterAt(caller) === clusterAt(address);
}

function overWire(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}

function pairOf(one: string, other: string): string {
  return [one, other].toSorted().join(' ');
}

function summaryOf({ machine, letters }: PeerAnswer): string {
  return [machine, ...letters.map(({ kind }) => kind)].join(', ');
}
