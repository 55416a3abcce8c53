import { Registry } from 'prom-client';
import { beforeEach, describe, expect, it } from 'vitest';
import { ManualClock } from '../env/test.ts';
import { type FollowedCopy, NodeMetrics } from './node-metrics.ts';

let registry: Registry;
let clock: ManualClock;
let metrics: NodeMetrics;
beforeEach(() => {
  registry = new Registry();
  clock = new ManualClock();
  metrics = new NodeMetrics({ registry, clock, node: 'node-1', guests: () => 3 });
});

async function series(prefix: string): Promise<string[]> {
  return (await registry.metrics()).split('\n').filter((line) => line.startsWith(prefix));
}

/** A copy that ends when it is told to. */
class PlayedCopy implements FollowedCopy {
  state: FollowedCopy['state'] = 'copying';
  progress: FollowedCopy['progress'];
  readonly settled: Promise<void>;
  #settle: () => void = () => undefined;

  constructor() {
    this.settled = new Promise((resolve) => (this.#settle = resolve));
  }

  async end(state: 'completed' | 'failed'): Promise<void> {
    this.state = state;
    this.#settle();
    await this.settled;
  }
}

const guest = { metadata: { namespace: 'shop', name: 'web' } };
const LABELS = 'namespace="shop",name="web",node="node-1"';

describe('what an agent tells', () => {
  it('is how copies go, as of now', async () => {
    const copy = new PlayedCopy();
    metrics.follow(guest, copy);
    expect(await series('kubevirt_vmi_migration_')).toEqual([]);
    copy.progress = {
      percent: 40,
      secondsLeft: 7,
      totalBytes: 1000,
      transferredBytes: 400,
      remainingBytes: 600,
      throughputBytesPerSecond: 100,
      dirtyRateBytesPerSecond: 0,
    };
    expect(await series('kubevirt_vmi_migration_')).toEqual([
      `kubevirt_vmi_migration_data_total_bytes{${LABELS}} 1000`,
      `kubevirt_vmi_migration_data_processed_bytes{${LABELS}} 400`,
      `kubevirt_vmi_migration_data_remaining_bytes{${LABELS}} 600`,
      `kubevirt_vmi_migration_dirty_memory_rate_bytes{${LABELS}} 0`,
      `kubevirt_vmi_migration_memory_transfer_rate_bytes{${LABELS}} 100`,
      `kubevirt_vmi_migration_data_bytes_total{${LABELS}} 1000`,
    ]);
    expect(await series('godwit_copy_left_seconds')).toEqual([`godwit_copy_left_seconds{${LABELS}} 7`]);
  });

  it('is how they went, for a while', async () => {
    const copy = new PlayedCopy();
    copy.progress = { percent: 90, secondsLeft: 1, transferredBytes: 900, remainingBytes: 100 };
    metrics.follow(guest, copy);
    await copy.end('completed');
    expect(await series('kubevirt_vmi_migration_data')).toEqual([
      `kubevirt_vmi_migration_data_processed_bytes{${LABELS}} 900`,
      `kubevirt_vmi_migration_data_remaining_bytes{${LABELS}} 0`,
    ]);
    expect(await series('godwit_copy_left_seconds')).toEqual([]);
    clock.advance(5 * 60_000 + 1);
    expect(await series('kubevirt_vmi_migration_data')).toEqual([]);
  });

  it('is the last copy of a guest, and what all have sent', async () => {
    const [first, second] = [new PlayedCopy(), new PlayedCopy()];
    first.progress = { percent: 10, transferredBytes: 100, remainingBytes: 900 };
    metrics.follow(guest, first);
    await first.end('failed');
    metrics.follow(guest, second);
    second.progress = { percent: 100, transferredBytes: 1000, remainingBytes: 0 };
    await second.end('completed');
    expect(await series('kubevirt_vmi_migration_data_processed_bytes')).toEqual([
      `kubevirt_vmi_migration_data_processed_bytes{${LABELS}} 1000`,
    ]);
    expect(await series('godwit_cop')).toEqual([
      'godwit_copies_total{result="succeeded"} 1',
      'godwit_copies_total{result="failed"} 1',
      'godwit_copy_sent_bytes_total 1100',
    ]);
  });

  it('is whether it works, for how many guests, and whether its journal can be written', async () => {
    metrics.ready(true);
    metrics.journalFailed();
    expect(await series('kubevirt_virt_handler_ready_status')).toEqual(['kubevirt_virt_handler_ready_status 1']);
    expect(await series('godwit_agent_guests')).toEqual(['godwit_agent_guests 3']);
    expect(await series('godwit_journal_failures_total')).toEqual(['godwit_journal_failures_total 1']);
  });
});
