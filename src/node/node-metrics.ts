import { Counter, Gauge, type Registry } from 'prom-client';
import type { MigrationProgress } from '../api/kubevirt/migration-progress.ts';
import type { VirtualMachineInstance } from '../api/kubevirt/virtual-machine-instance.ts';
import type { Clock } from '../env/ports.ts';
import { addSampledGauge, type Sample } from '../kube/sampled-gauge.ts';
import type { Copy } from './migrations/copy.ts';

/** What is looked at of a copy. */
export type FollowedCopy = Pick<Copy, 'progress' | 'state' | 'settled'>;

interface Figures {
  readonly labels: { readonly [label in (typeof LABELS)[number]]: string };
  readonly copy: FollowedCopy;
  /** When it was over; undefined while it is not. */
  endedMs: number | undefined;
}

const LABELS = ['namespace', 'name', 'node'] as const;

/** Most copies are over before anybody reads how they go: how they went is told for a while. */
const KEPT_MS = 5 * 60_000;

const FIGURES: readonly (readonly [name: string, help: string, of: (progress: Progress) => number | undefined])[] = [
  ['data_total_bytes', 'What there is to copy of a guest, memory and disks.', ({ totalBytes }) => totalBytes],
  ['data_processed_bytes', 'What was sent of a guest.', ({ transferredBytes }) => transferredBytes],
  ['data_remaining_bytes', 'What is left to be sent of a guest in this pass.', ({ remainingBytes }) => remainingBytes],
  [
    'dirty_memory_rate_bytes',
    'What a guest that is copied writes to its memory each second.',
    ({ dirtyRateBytesPerSecond }) => dirtyRateBytesPerSecond,
  ],
  [
    'memory_transfer_rate_bytes',
    'What is sent of a guest each second, memory and disks.',
    ({ throughputBytesPerSecond }) => throughputBytesPerSecond,
  ],
];

type Progress = MigrationProgress;

/** What the agent of a node counts: the copies of guests that leave it, and what must not go wrong with its journal. */
export class NodeMetrics {
  readonly #clock: Clock;
  readonly #node: string;
  readonly #figures = new Map<string, Figures>();
  readonly #ready: Gauge;
  readonly #copies: Counter<'result'>;
  readonly #sentBytes: Counter;
  readonly #journalFailures: Counter;

  constructor(options: {
    readonly registry: Registry;
    readonly clock: Clock;
    readonly node: string;
    /** How many guests are this node's to execute. */
    readonly guests: () => number;
  }) {
    const { registry, clock, node, guests } = options;
    const registers = [registry];
    this.#clock = clock;
    this.#node = node;
    this.#ready = new Gauge({
      name: 'kubevirt_virt_handler_ready_status',
      help: 'Whether the agent looks after the guests of its node.',
      registers,
    });
    this.#defineFigures(registry);
    addSampledGauge({
      registry,
      name: 'godwit_agent_guests',
      help: "Guests that are this node's to execute, as its journal says.",
      samples: () => [[{}, guests()]],
    });
    this.#copies = new Counter({
      name: 'godwit_copies_total',
      help: 'Copies of guests to other nodes that ended, by how.',
      labelNames: ['result'],
      registers,
    });
    this.#sentBytes = new Counter({
      name: 'godwit_copy_sent_bytes_total',
      help: 'What was sent of guests to other nodes, by copies that have ended.',
      registers,
    });
    this.#journalFailures = new Counter({
      name: 'godwit_journal_failures_total',
      help: 'Writes of the journal of the right to run that failed: nothing that rests on them was done.',
      registers,
    });
    for (const result of ['succeeded', 'failed']) this.#copies.inc({ result }, 0);
  }

  /** Whether guests are looked after by now. */
  ready(isReady: boolean): void {
    this.#ready.set(isReady ? 1 : 0);
  }

  journalFailed(): void {
    this.#journalFailures.inc();
  }

  /** A guest is copied to another node. */
  follow(guest: Pick<VirtualMachineInstance, 'metadata'> | undefined, copy: FollowedCopy): void {
    const { namespace = '', name = '' } = guest?.metadata ?? {};
    const figures: Figures = { labels: { namespace, name, node: this.#node }, copy, endedMs: undefined };
    this.#forgetOld();
    this.#figures.set(`${namespace}/${name}`, figures);
    void copy.settled.then(() => this.#ended(figures));
  }

  #ended(figures: Figures): void {
    const { state, progress } = figures.copy;
    figures.endedMs = this.#clock.now();
    this.#copies.inc({ result: state === 'completed' ? 'succeeded' : 'failed' });
    this.#sentBytes.inc(progress?.transferredBytes ?? 0);
  }

  #defineFigures(registry: Registry): void {
    for (const [name, help, valueOf] of FIGURES)
      addSampledGauge({
        registry,
        name: `kubevirt_vmi_migration_${name}`,
        help,
        labels: LABELS,
        samples: () => this.#samples(valueOf),
      });
    addSampledGauge({
      registry,
      name: 'kubevirt_vmi_migration_data_bytes_total',
      help: 'The same as kubevirt_vmi_migration_data_total_bytes, as newer versions of KubeVirt name it.',
      labels: LABELS,
      type: 'counter',
      samples: () => this.#samples(({ totalBytes }) => totalBytes),
    });
    addSampledGauge({
      registry,
      name: 'godwit_copy_left_seconds',
      help: 'How long a copy that is under way will probably take.',
      labels: LABELS,
      samples: () => this.#samples(({ secondsLeft }) => secondsLeft, true),
    });
  }

  *#samples(
    valueOf: (progress: Progress) => number | undefined,
    isOfUnfinished = false,
  ): Generator<Sample<(typeof LABELS)[number]>> {
    this.#forgetOld();
    for (const { labels, copy, endedMs } of this.#figures.values()) {
      if (!copy.progress || (isOfUnfinished && endedMs !== undefined)) continue;
      // The last look at a copy that succeeded may have been before its end.
      const progress = copy.state === 'completed' ? { ...copy.progress, remainingBytes: 0 } : copy.progress;
      const value = valueOf(progress);
      if (value !== undefined) yield [labels, value];
    }
  }

  #forgetOld(): void {
    const beforeMs = this.#clock.now() - KEPT_MS;
    for (const [key, { endedMs }] of this.#figures)
      if (endedMs !== undefined && endedMs < beforeMs) this.#figures.delete(key);
  }
}
