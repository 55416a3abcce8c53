import { report } from '../figures.ts';
import { seededRandom } from '../../src/env/test.ts';
import type { SlotRequest } from '../../src/migration/slots/request.ts';
import { SlotBook } from '../../src/migration/slots/slot-book.ts';

/** What a freed slot costs while many migrations wait: the end of one, the plan that follows, and what it brings. */

const NODES = 100;
const EVENTS = 2000;

function request(index: number): SlotRequest {
  const uid = `migration-${index}`;
  return {
    uid,
    kind: 'local',
    members: [{ namespace: 'default', name: uid, uid }],
    sourceNode: `node-${index % NODES}`,
    targetNode: undefined,
    peer: undefined,
    priority: [0, 20, 50, 100][index % 4] ?? 0,
    deadlineMs: undefined,
    createdMs: index,
  };
}

function measure(waiting: number): number {
  const limits = { perCluster: 25, outboundPerNode: 2, inboundPerNode: 2 };
  const rules = {
    limits,
    limitsVersion: '1',
    isByPriority: true,
    ageingMs: 60_000,
    senderTimeoutMs: 30_000,
    receiverPauseMs: 10_000,
  };
  const book = new SlotBook(rules, seededRandom(1));
  const write = (): void => {
    const plan = book.plan(0);
    if (plan) book.load(plan, 0);
  };
  for (let index = 0; index < waiting; index++) book.want(request(index), 0);
  write();
  const startedMs = performance.now();
  for (let event = 0; event < EVENTS; event++) {
    const [first] = book.ledger.holders.values();
    if (first) book.isOver(first.uid);
    book.want(request(waiting + event), 0);
    write();
  }
  return ((performance.now() - startedMs) / EVENTS) * 1000;
}

export async function measureSlots(): Promise<void> {
  measure(1000);
  for (const waiting of [100, 10_000, 100_000])
    report('runtime', { figure: 'a slot that is freed', value: measure(waiting), unit: 'us', waiting, nodes: NODES });
}
