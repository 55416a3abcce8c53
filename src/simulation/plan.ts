import type { Random } from '../env/ports.ts';
import { FAULT_CLASSES, type FaultClass } from './fault-mix.ts';
import type { Scenario } from './scenario.ts';
import { between, Streams } from './streams.ts';

/**
 * All that a run does from outside, drawn from its seed before it begins: which faults there are, what strikes when, and
 * what the user does. Whatever is taken out of a plan leaves the rest of the run alike, which is how failures are
 * shrunk.
 */
export interface Plan {
  readonly seed: number;
  readonly scenario: string;
  /** How long anything may fail, before everything has to settle. */
  readonly horizonMs: number;
  readonly faults: readonly FaultClass[];
  readonly strikes: readonly Strike[];
  readonly actions: readonly PlannedAction[];
}

const STRIKES = ['crash-server', 'kill', 'partition', 'pause', 'step-clock', 'node-down'] as const;
/** Where there are machines: what becomes of them by themselves, and nodes that are given up. */
const MACHINE_STRIKES = ['kill-machine', 'silence-machine', 'panic', 'power-off'] as const;
/** Where guests move: ways between nodes that break, with or without a sign, and agents that do not reach each other. */
const LINK_STRIKES = ['cut-link', 'silence-link', 'cut-channel'] as const;

/** Where pods of guests are evicted: nobody answers for them, for a while. */
const EVICTION_STRIKES = ['webhooks-down'] as const;

/** Where there are several clusters: what lies between them. */
const STREAM_STRIKES = ['break-streams', 'mute-streams', 'cut-clusters'] as const;

export type MachineStrike = (typeof MACHINE_STRIKES)[number] | (typeof LINK_STRIKES)[number];
/** What befalls one cluster, or something of it. */
export type ClusterStrikeName = (typeof STRIKES)[number] | (typeof EVICTION_STRIKES)[number] | 'node-lost';
type StrikeName = ClusterStrikeName | MachineStrike | (typeof STREAM_STRIKES)[number];

/** A fault that happens at a certain time, to a certain victim. */
export interface Strike {
  readonly atMs: number;
  readonly what: StrikeName;
  /** Which of those that it can happen to, as a share of their number. */
  readonly victim: number;
  readonly durationMs: number;
}

/** Something that the user does; what exactly, the action itself draws from a stream of its own. */
export interface PlannedAction {
  readonly atMs: number;
  readonly what: string;
  readonly stream: string;
}

/** In a run of an hour. Each class of strikes may be missing altogether. */
const STRIKES_PER_HOUR_MAX = 60;
const STRIKE_MS_MAX = 120_000;
/** Long enough for the pods of a lost node to be given up. */
const NODE_DOWN_MS_MAX = 900_000;

/** How much is done at least of what a run does not like, as a share. */
const LIKING_MIN = 0.05;

/** The plan of a seed. */
export function planOf(seed: number, scenario: Scenario): Plan {
  const streams = new Streams(seed);
  const horizonMs = Math.ceil(between(streams.of('horizon'), scenario.horizonMs / 4, scenario.horizonMs));
  const isOn = streams.of('faults');
  return {
    seed,
    scenario: scenario.name,
    horizonMs,
    faults: FAULT_CLASSES.filter(() => isOn.number() < 0.5),
    strikes: strikesIn(scenario)
      .flatMap((what) => strikesOf(what, horizonMs * shareOf(what, scenario), horizonMs, streams.of(`strikes/${what}`)))
      .sort(byTime),
    actions: actionsOf(scenario, horizonMs, streams.of('actions')),
  };
}

function strikesIn({ hasMachines, hasMoves, hasEvictions, clusters }: Scenario): readonly StrikeName[] {
  const links = hasMoves === true ? LINK_STRIKES : [];
  const evictions = hasEvictions === true ? EVICTION_STRIKES : [];
  const streams = clusters ? STREAM_STRIKES : [];
  return hasMachines === true
    ? [...STRIKES, ...MACHINE_STRIKES, 'node-lost', ...links, ...evictions, ...streams]
    : STRIKES;
}

/** Where guests move, what lies between nodes breaks more often than they do: else they would hardly ever arrive. */
function shareOf(what: StrikeName, { hasMoves }: Scenario): number {
  if (hasMoves !== true) return 1;
  if ([...LINK_STRIKES, ...STREAM_STRIKES].some((each) => each === what)) return 3;
  const isOften = what === 'kill' || what === 'pause' || what === 'partition' || what === 'webhooks-down';
  return isOften ? 1 : 0.3;
}

/** As many as strike in `shareMs`, over the whole run. */
function strikesOf(what: Strike['what'], shareMs: number, horizonMs: number, random: Random): Strike[] {
  const isOn = random.number() < 0.5;
  const perHour = random.number() ** 2 * STRIKES_PER_HOUR_MAX;
  if (!isOn) return [];
  return Array.from({ length: Math.ceil((perHour * shareMs) / 3_600_000) }, () => ({
    atMs: random.number() * horizonMs,
    what,
    victim: random.number(),
    durationMs: random.number() ** 2 * (what.startsWith('node-') ? NODE_DOWN_MS_MAX : STRIKE_MS_MAX),
  }));
}

function actionsOf(scenario: Scenario, horizonMs: number, random: Random): PlannedAction[] {
  // Each run has likes of its own: one that does a thing all the time finds what one that does everything does not.
  const likes = Object.entries(scenario.actions).map(
    ([name, weight]) => [name, weight * (LIKING_MIN + random.number() ** 2)] as const,
  );
  const total = likes.reduce((sum, [, weight]) => sum + weight, 0);
  const count = Math.ceil(between(random, 0.2, 1) * scenario.actionsMax);
  return Array.from({ length: count }, (_, index) => {
    let draw = random.number() * total;
    const [what = ''] = likes.find(([, weight]) => (draw -= weight) < 0) ?? likes[0] ?? [];
    return { atMs: random.number() * horizonMs, what, stream: `action/${index}` };
  }).sort(byTime);
}

function byTime(a: { readonly atMs: number }, b: { readonly atMs: number }): number {
  return a.atMs - b.atMs;
}
