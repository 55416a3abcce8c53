import type { Random } from '../env/ports.ts';

/**
 * What can go wrong between a client and its server, each with a chance of its own. Drawn from one source of chance in
 * an order that does not depend on the chances, so that switching one fault off leaves the others where they were.
 */

export interface FaultPlan {
  /** A request never reaches the server. */
  readonly requestLost: number;
  /** A request takes effect, but its answer is lost. */
  readonly answerLost: number;
  /** How long, at most, a client waits for what was lost. */
  readonly timeoutMs: number;
  /** An update or patch is refused as if somebody else had been faster. */
  readonly conflict: number;
  /** The server is overloaded (429) or not ready (503): nothing takes effect. */
  readonly unavailable: number;
  /** A request is slow, half of them on their way there, half on their way back. */
  readonly slow: number;
  readonly slowMsMax: number;
  /** The client crashes at a write, half of them before it takes effect, half after. */
  readonly crash: number;
  /** A read finds the server lagging: for a while all reads see an older state. */
  readonly stale: number;
  readonly staleMsMax: number;
  /** How far behind the server may be when it begins to lag. */
  readonly staleRevisionsMax: number;
  /** A watch breaks off before an event. */
  readonly watchCut: number;
  /** A watch ends with 410 before an event, or begins with it: what lies between is never observed. */
  readonly watchExpired: number;
  /** An event, and all behind it, comes late. */
  readonly watchDelay: number;
  readonly watchDelayMsMax: number;
  /** An event comes again, or a recent one does. */
  readonly watchDuplicate: number;
}

/** Nothing goes wrong; plans are written as what differs from this. */
export const NO_FAULTS: FaultPlan = {
  requestLost: 0,
  answerLost: 0,
  timeoutMs: 30_000,
  conflict: 0,
  unavailable: 0,
  slow: 0,
  slowMsMax: 5_000,
  crash: 0,
  stale: 0,
  staleMsMax: 60_000,
  staleRevisionsMax: 50,
  watchCut: 0,
  watchExpired: 0,
  watchDelay: 0,
  watchDelayMsMax: 10_000,
  watchDuplicate: 0,
};

/** The faults that are counted. */
export const FAULT_NAMES = [
  'requestLost',
  'answerLost',
  'conflict',
  'unavailable',
  'slow',
  'crash',
  'stale',
  'partition',
  'watchCut',
  'watchExpired',
  'watchDelay',
  'watchDuplicate',
] as const;

export type FaultName = (typeof FAULT_NAMES)[number];

/** What befalls one request. At most one of the fates, and slowness besides. */
export interface RequestFate {
  readonly fate:
    | 'requestLost'
    | 'answerLost'
    | 'conflict'
    | 'tooMany'
    | 'notReady'
    | 'crashBefore'
    | 'crashAfter'
    | 'none';
  readonly slowBeforeMs: number;
  readonly slowAfterMs: number;
  readonly lostMs: number;
  /** How long the server lags from now on, and how far behind; 0 if it does not. */
  readonly staleMs: number;
  readonly staleRevisions: number;
  readonly isWatchExpired: boolean;
}

/** What befalls one event of a watch. */
export interface EventFate {
  readonly cut: 'cleanly' | 'broken' | undefined;
  readonly isExpired: boolean;
  readonly delayMs: number;
  /** Which of the last events comes again, the newest being 0; undefined for none. */
  readonly again: number | undefined;
}

/** How far back an event that comes again may lie. */
export const EVENTS_REMEMBERED = 8;

export function drawRequestFate(plan: FaultPlan, random: Random, method: string): RequestFate {
  const isRead = method === 'GET';
  const [one, slow, slowShare, half] = [random.number(), random.number(), random.number(), random.number() < 0.5];
  const chances: readonly (readonly [RequestFate['fate'], number])[] = [
    ['requestLost', plan.requestLost],
    ['answerLost', plan.answerLost],
    ['conflict', method === 'PUT' || method === 'PATCH' ? plan.conflict : 0],
    [half ? 'tooMany' : 'notReady', plan.unavailable],
    [half ? 'crashBefore' : 'crashAfter', isRead ? 0 : plan.crash],
  ];
  const slowMs = slow < plan.slow ? slowShare * plan.slowMsMax : 0;
  const lostMs = random.number() * plan.timeoutMs;
  const isStale = random.number() < plan.stale && isRead;
  const [staleShare, staleDepth] = [random.number(), random.number()];
  return {
    fate: pick(one, chances),
    slowBeforeMs: half ? slowMs : 0,
    slowAfterMs: half ? 0 : slowMs,
    lostMs,
    staleMs: isStale ? staleShare * plan.staleMsMax : 0,
    staleRevisions: Math.floor(staleDepth * plan.staleRevisionsMax),
    isWatchExpired: random.number() < plan.watchExpired,
  };
}

export function drawEventFate(plan: FaultPlan, random: Random): EventFate {
  const [cut, expired, delay, again] = [random.number(), random.number(), random.number(), random.number()];
  const [share, how] = [random.number(), random.number()];
  return {
    cut: cut < plan.watchCut ? (how < 0.5 ? 'cleanly' : 'broken') : undefined,
    isExpired: expired < plan.watchExpired,
    delayMs: delay < plan.watchDelay ? share * plan.watchDelayMsMax : 0,
    again: again < plan.watchDuplicate ? Math.floor(how * how * EVENTS_REMEMBERED) : undefined,
  };
}

/** The fate that the draw falls on, each as wide as its chance. */
function pick<F extends string>(draw: number, chances: readonly (readonly [F, number])[]): F | 'none' {
  let rest = draw;
  for (const [fate, chance] of chances) {
    if (rest < chance) return fate;
    rest -= chance;
  }
  return 'none';
}
