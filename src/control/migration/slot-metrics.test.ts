import { Registry } from 'prom-client';
import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../env/test.ts';
import type { SlotHolder, SlotRequest } from '../../migration/slots/request.ts';
import { SlotBook } from '../../migration/slots/slot-book.ts';
import { SlotMetrics, type SlotView } from './slot-metrics.ts';

const LIMITS = { perCluster: 5, outboundPerNode: 2, inboundPerNode: 0 };
const RULES = {
  limits: LIMITS,
  limitsVersion: '1',
  isByPriority: true,
  ageingMs: 0,
  senderTimeoutMs: 1000,
  receiverPauseMs: 1000,
};

function holder(uid: string, more: Partial<SlotHolder>): SlotHolder {
  const nowhere = { sourceNode: undefined, targetNode: undefined };
  return { uid, kind: 'local', members: [], state: 'committed', sinceMs: 0, ...nowhere, ...more };
}

function request(uid: string, createdMs: number, isHeldUp = false): SlotRequest {
  const unknown = { targetNode: undefined, peer: undefined, deadlineMs: undefined };
  return { uid, kind: 'local', members: [], sourceNode: 'node-1', priority: 0, createdMs, isHeldUp, ...unknown };
}

async function series(view: SlotView | undefined): Promise<string[]> {
  const registry = new Registry();
  void new SlotMetrics(
    registry,
    () => view,
    () => 60_000,
  );
  return (await registry.metrics()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
}

describe('what is told of slots', () => {
  it('is nothing but counts where nobody in this process gives any', async () => {
    expect(await series(undefined)).toEqual([
      'godwit_migration_slots_given_total 0',
      'godwit_migration_slot_failures_total 0',
    ]);
  });

  it('is who has them, and who waits for how long', async () => {
    const book = new SlotBook(RULES, seededRandom(1));
    const holders = [
      holder('a', { sourceNode: 'node-1', targetNode: 'node-2' }),
      holder('b', { sourceNode: 'node-1', kind: 'send' }),
      holder('c', { targetNode: 'node-1', kind: 'receive' }),
    ];
    book.load({ limits: LIMITS, limitsVersion: '1', holders: new Map(holders.map((each) => [each.uid, each])) }, 0);
    book.want(request('a', 1000), 0);
    book.want(request('d', 10_000), 0);
    book.want(request('e', 30_000), 0);
    // Those that could not use a slot stand in no line.
    book.want(request('f', 5000, true), 0);
    expect(await series(book)).toEqual([
      'godwit_migration_slots_given_total 0',
      'godwit_migration_slot_failures_total 0',
      'godwit_migration_slots_limit{scope="cluster"} 5',
      'godwit_migration_slots_limit{scope="node-outbound"} 2',
      'godwit_migration_slots_limit{scope="node-inbound"} 0',
      'godwit_migration_slots_used{pool="sending"} 2',
      'godwit_migration_slots_used{pool="receiving"} 1',
      'godwit_migration_node_slots_used{node="node-1",direction="outbound"} 2',
      'godwit_migration_node_slots_used{node="node-2",direction="inbound"} 1',
      'godwit_migration_node_slots_used{node="node-1",direction="inbound"} 1',
      'godwit_migration_queue_length 2',
      'godwit_migration_queue_oldest_seconds 50',
    ]);
  });
});
