import type { CommitFault } from '../apiserver/storage/memory-engine.ts';
import type { Random } from '../env/ports.ts';
import type { FaultPlan } from '../kube/faults.ts';
import { between, betweenRatios, type Streams } from './streams.ts';

/**
 * Which faults a run has, and how often each strikes. Every class is on or off for the whole run: faults that are always
 * there hide each other, and some bugs show only where one of them is alone.
 */

/** Faults of the network and the server, by their names in a transport's plan. */
const NETWORK_CLASSES = [
  'requestLost',
  'answerLost',
  'conflict',
  'unavailable',
  'slow',
  'crash',
  'stale',
  'watchCut',
  'watchExpired',
  'watchDelay',
  'watchDuplicate',
] as const satisfies readonly (keyof FaultPlan)[];

const DISK_CLASSES = ['slowDisk', 'failedSync', 'fullDisk'] as const;

/** All classes of faults that are there or not for a whole run. */
export const FAULT_CLASSES = [...NETWORK_CLASSES, ...DISK_CLASSES, 'clockSkew', 'shortHistory', 'replicas'] as const;

export type FaultClass = (typeof FAULT_CLASSES)[number];

const CHANCE_MIN = 0.001;
const CHANCE_MAX = 0.1;
/** A crash costs a restart, and a failed sync one of the whole server: more of them, and nothing would ever happen. */
const RARE_CHANCE_MAX = 0.01;
const LATENCY_MS_MAX = 5;
const SYNC_MS_MAX = 3;
const CLOCK_SKEW_MS_MAX = 10_000;

export interface FaultMix {
  readonly network: Partial<FaultPlan>;
  /** How long requests are on their way, at most. */
  readonly latencyMsMax: number;
  readonly disk: DiskFaults;
  readonly clockSkewMsMax: number;
  /** So few changes are remembered that watches often come too late. */
  readonly historyChangesMax: number | undefined;
  /** Loops have two replicas, of which one leads. */
  readonly hasReplicas: boolean;
  /** All loops but the scheduler share a process, as they do in a controller manager. */
  readonly isTogether: boolean;
}

interface DiskFaults {
  readonly syncMsMax: number;
  readonly slow: number;
  readonly slowMsMax: number;
  readonly failedSync: number;
  readonly full: number;
}

/** The mix of a run, with the faults that its plan has left. */
export function mixOf(faults: readonly FaultClass[], streams: Streams): FaultMix {
  const isOn = (name: FaultClass): boolean => faults.includes(name);
  const chance = (name: FaultClass, max = CHANCE_MAX): number =>
    isOn(name) ? betweenRatios(streams.of(`fault/${name}`), CHANCE_MIN, max) : 0;
  const random = streams.of('mix');
  const [latencyMsMax, syncMsMax, skew] = [
    between(random, 0.1, LATENCY_MS_MAX),
    between(random, 0, SYNC_MS_MAX),
    random.number(),
  ];
  const network = Object.fromEntries(
    NETWORK_CLASSES.map((name) => [name, chance(name, name === 'crash' ? RARE_CHANCE_MAX : CHANCE_MAX)]),
  );
  return {
    network,
    latencyMsMax,
    disk: {
      syncMsMax,
      slow: chance('slowDisk'),
      slowMsMax: 2000,
      failedSync: chance('failedSync', CHANCE_MIN * 2),
      full: chance('fullDisk', RARE_CHANCE_MAX),
    },
    clockSkewMsMax: isOn('clockSkew') ? skew * CLOCK_SKEW_MS_MAX : 0,
    historyChangesMax: isOn('shortHistory') ? 200 : undefined,
    hasReplicas: isOn('replicas'),
    isTogether: random.number() < 0.5,
  };
}

/** What a healthy network and disk are like: everything takes its time, and nothing fails. */
export function calmed(mix: FaultMix): FaultMix {
  return { ...mix, network: {}, disk: { ...mix.disk, slow: 0, failedSync: 0, full: 0 } };
}

/** What befalls the next commit. */
export function drawCommitFault(faults: DiskFaults, random: Random): CommitFault | undefined {
  const draw = random.number();
  if (draw < faults.failedSync) return 'failed-sync';
  return draw < faults.failedSync + faults.full ? 'disk-full' : undefined;
}

/** How long the disk takes for half a commit. */
export function drawSyncMs(faults: DiskFaults, random: Random): number {
  const isSlow = random.number() < faults.slow;
  return (random.number() * (isSlow ? faults.slowMsMax : faults.syncMsMax)) / 2;
}
