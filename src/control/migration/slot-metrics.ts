import { Counter, type Registry } from 'prom-client';
import { addSampledGauge, type Sample } from '../../kube/sampled-gauge.ts';
import type { SlotLedger } from '../../migration/slots/ledger.ts';
import { poolOf } from '../../migration/slots/request.ts';

/** What there is to say of the slots of migrations, when somebody asks. */
export interface SlotView {
  readonly ledger: SlotLedger;
  /** How many wait for a slot, and since when the first of them does. */
  readonly waiting: { readonly count: number; readonly oldestMs: number | undefined };
}

/** Slots, who waits for them, and whether they can be given. */
export class SlotMetrics {
  readonly #given: Counter;
  readonly #failures: Counter;

  /** The view is undefined while nobody in this process gives slots. */
  constructor(registry: Registry, view: () => SlotView | undefined, nowMs: () => number) {
    const registers = [registry];
    this.#given = new Counter({
      name: 'godwit_migration_slots_given_total',
      help: 'Migrations that were given their first slot.',
      registers,
    });
    this.#failures = new Counter({
      name: 'godwit_migration_slot_failures_total',
      help: 'Attempts to give slots, or to take them back, that failed since they could not be written down.',
      registers,
    });
    const define = <T extends string = never>(
      name: string,
      help: string,
      labels: readonly T[],
      samples: (now: SlotView) => Iterable<Sample<T>>,
    ): void => {
      const samplesNow = (): Iterable<Sample<T>> => {
        const now = view();
        return now ? samples(now) : [];
      };
      addSampledGauge<T>({ registry, name, help, labels, samples: samplesNow });
    };
    define(
      'godwit_migration_slots_limit',
      'Migrations that may be under way at once, by where that holds.',
      ['scope'],
      ({ ledger: { limits } }) => [
        [{ scope: 'cluster' }, limits.perCluster],
        [{ scope: 'node-outbound' }, limits.outboundPerNode],
        [{ scope: 'node-inbound' }, limits.inboundPerNode],
      ],
    );
    define(
      'godwit_migration_slots_used',
      'Migrations that have slots of the cluster, by what these are for.',
      ['pool'],
      usedInPools,
    );
    define(
      'godwit_migration_node_slots_used',
      'Migrations that have slots of a node, by which way they go.',
      ['node', 'direction'],
      usedAtNodes,
    );
    define('godwit_migration_queue_length', 'Migrations that wait for a slot.', [], ({ waiting }) => [
      [{}, waiting.count],
    ]);
    define(
      'godwit_migration_queue_oldest_seconds',
      'How long ago the oldest migration that waits for a slot was asked for; 0 where none does.',
      [],
      ({ waiting: { oldestMs } }) => [[{}, oldestMs === undefined ? 0 : Math.max(0, nowMs() - oldestMs) / 1000]],
    );
  }

  /** Somebody who had no slot has one. */
  given(): void {
    this.#given.inc();
  }

  failed(): void {
    this.#failures.inc();
  }
}

function usedInPools({ ledger }: SlotView): Sample<'pool'>[] {
  const used = { sending: 0, receiving: 0 };
  for (const { kind } of ledger.holders.values()) used[poolOf(kind)]++;
  return Object.entries(used).map(([pool, count]) => [{ pool }, count]);
}

function* usedAtNodes({ ledger }: SlotView): Generator<Sample<'node' | 'direction'>> {
  const [outbound, inbound] = [new Map<string, number>(), new Map<string, number>()];
  for (const { sourceNode, targetNode } of ledger.holders.values()) {
    if (sourceNode !== undefined) outbound.set(sourceNode, (outbound.get(sourceNode) ?? 0) + 1);
    if (targetNode !== undefined) inbound.set(targetNode, (inbound.get(targetNode) ?? 0) + 1);
  }
  for (const [node, count] of outbound) yield [{ node, direction: 'outbound' }, count];
  for (const [node, count] of inbound) yield [{ node, direction: 'inbound' }, count];
}
