import { silentLogger } from '../../src/env/test.ts';
import { WorkQueue } from '../../src/kube/work-queue.ts';
import { median, report, rounded } from '../figures.ts';

/** controller-runtime's priority queue on a fast laptop: add, get and done together, per second. */
const CONTROLLER_RUNTIME_PER_SECOND = 860_000;
const KEY_COUNTS = [1000, 100_000, 1_000_000] as const;
const CYCLES = 1_000_000;
const ROUNDS = 5;

/**
 * Keys that go round: each is taken, done and added again while all others wait, so that the queue stays as full as it
 * is said to be. Priorities are spread over five classes, read off the key: what it costs to look one up is not the
 * queue's.
 */
function cyclesPerSecond(keyCount: number): number {
  const keys = Array.from({ length: keyCount }, (_, index) => `namespace-${index % 100}/name-${index}`);
  const clock = { now: () => Date.now(), setTimer: () => ({ cancel: () => undefined }) };
  const queue = new WorkQueue({
    env: { clock, log: silentLogger },
    name: 'bench',
    priorityOf: (key) => key.charCodeAt(key.length - 1) % 5,
  });
  for (const key of keys) queue.add(key);
  return perSecondOf(() => {
    const key = queue.tryNext() as string;
    queue.done(key);
    queue.add(key);
  });
}

/** Measured in processor time, since a busy machine stretches any other. */
function perSecondOf(cycle: (index: number) => void): number {
  const round = (): number => {
    const before = process.cpuUsage();
    for (let index = 0; index < CYCLES; index++) cycle(index);
    const { user, system } = process.cpuUsage(before);
    return CYCLES / ((user + system) / 1e6);
  };
  round();
  return median(Array.from({ length: ROUNDS }, round));
}

/** The same round in nothing but a map of the language: what no queue of keys can undercut, and how it grows. */
function bareMapPerSecond(keyCount: number): number {
  const keys = Array.from({ length: keyCount }, (_, index) => `namespace-${index % 100}/name-${index}`);
  const map = new Map(keys.map((key) => [key, {}]));
  return perSecondOf((cycle) => {
    const key = keys[cycle % keyCount] as string;
    const entry = map.get(key) ?? {};
    map.delete(key);
    if (!map.has(key)) map.set(key, entry);
  });
}

/** How many times a key can be added, taken and done per second, and what that costs as the queue grows. */
export async function queue(): Promise<void> {
  let smallest: { own: number; bareMap: number } | undefined;
  for (const keyCount of KEY_COUNTS) {
    const own = cyclesPerSecond(keyCount);
    const bareMap = bareMapPerSecond(keyCount);
    smallest ??= { own, bareMap };
    report('runtime', {
      figure: `queue add+get+done at ${keyCount} keys`,
      value: own,
      unit: 'per second',
      rival: CONTROLLER_RUNTIME_PER_SECOND,
      bareMap: rounded(bareMap),
    });
    report('runtime', {
      figure: `queue cost per operation at ${keyCount} keys, over that at ${KEY_COUNTS[0]}`,
      value: smallest.own / own,
      unit: 'times',
      logarithm: rounded(Math.log(keyCount) / Math.log(KEY_COUNTS[0])),
      bareMap: rounded(smallest.bareMap / bareMap),
    });
  }
}
