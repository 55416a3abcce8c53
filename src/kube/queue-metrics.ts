import { type DurationCounts, QUEUE_SECONDS_BUCKETS, type QueueStats } from './queue-stats.ts';

/**
 * What work queues have counted, in Prometheus' text format, under the names that KubeVirt uses.
 * A queue has its series from the moment it exists, all nought, so that alerts can tell nothing from not yet anything.
 */

type Labels = Readonly<Record<string, string | number>>;
/** The ending of the metric's name, its labels, its value. */
type Sample = readonly [suffix: string, labels: Labels, value: number];

interface Metric {
  readonly name: string;
  readonly labels: readonly string[];
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly help: string;
  readonly samples: (queue: Labels, stats: QueueStats, nowMs: number) => Sample[];
}

const OF_QUEUE = ['name'];

/** What there is of each queue. */
export const QUEUE_METRICS: readonly Metric[] = [
  {
    name: 'kubevirt_workqueue_depth',
    labels: [...OF_QUEUE, 'priority'],
    type: 'gauge',
    help: 'Keys that are ready to be worked on, by priority.',
    samples: (queue, stats) => [...stats.depths].map(([priority, depth]) => ['', { ...queue, priority }, depth]),
  },
  {
    name: 'kubevirt_workqueue_adds_total',
    labels: OF_QUEUE,
    type: 'counter',
    help: 'Keys that became ready to be worked on.',
    samples: (queue, stats) => [['', queue, stats.adds]],
  },
  {
    name: 'kubevirt_workqueue_queue_duration_seconds',
    labels: OF_QUEUE,
    type: 'histogram',
    help: 'How long keys were ready before a worker took them.',
    samples: (queue, stats) => durationSamples(queue, stats.queueDurations),
  },
  {
    name: 'kubevirt_workqueue_work_duration_seconds',
    labels: OF_QUEUE,
    type: 'histogram',
    help: 'How long keys were worked on.',
    samples: (queue, stats) => durationSamples(queue, stats.workDurations),
  },
  {
    name: 'kubevirt_workqueue_unfinished_work_seconds',
    labels: OF_QUEUE,
    type: 'gauge',
    help: 'How long the keys of now have been worked on, all together.',
    samples: (queue, stats, nowMs) => [['', queue, agesSeconds(stats, nowMs).reduce((sum, age) => sum + age, 0)]],
  },
  {
    name: 'kubevirt_workqueue_longest_running_processor_seconds',
    labels: OF_QUEUE,
    type: 'gauge',
    help: 'How long the key of now that takes longest has been worked on.',
    samples: (queue, stats, nowMs) => [['', queue, Math.max(0, ...agesSeconds(stats, nowMs))]],
  },
  {
    name: 'kubevirt_workqueue_retries_total',
    labels: OF_QUEUE,
    type: 'counter',
    help: 'Keys that were added to be worked on later.',
    samples: (queue, stats) => [['', queue, stats.retries]],
  },
];

/** Renders the queues' series, by name, which is that of the controller. */
export function renderQueues(queues: ReadonlyMap<string, QueueStats>, nowMs: number): string {
  const lines: string[] = [];
  for (const { name, type, help, samples } of QUEUE_METRICS) {
    lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`);
    for (const [queue, stats] of queues) {
      for (const [suffix, labels, value] of samples({ name: queue }, stats, nowMs)) {
        lines.push(`${name}${suffix}{${labelsText(labels)}} ${value}`);
      }
    }
  }
  return `${lines.join('\n')}\n`;
}

function durationSamples(queue: Labels, durations: DurationCounts): Sample[] {
  const bounds = [...QUEUE_SECONDS_BUCKETS.map(String), '+Inf'];
  const buckets = durations
    .cumulative()
    .map((count, index): Sample => ['_bucket', { ...queue, le: bounds[index] ?? '' }, count]);
  return [...buckets, ['_sum', queue, durations.sum], ['_count', queue, durations.count]];
}

function agesSeconds(stats: QueueStats, nowMs: number): number[] {
  return stats.worked.map(({ workedSinceMs }) => Math.max(0, nowMs - workedSinceMs) / 1000);
}

function labelsText(labels: Labels): string {
  return Object.entries(labels)
    .map(
      ([name, value]) =>
        `${name}="${String(value).replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('"', '\\"')}"`,
    )
    .join(',');
}
