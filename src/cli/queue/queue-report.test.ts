import { describe, expect, it } from 'vitest';
import { plain } from '../colours.ts';
import { guestOf, holderOf, ledgerOf, migrationOf, NOW_MS, seenOf } from '../seen/seen.fixture.ts';
import { queueOf } from './queue.ts';
import { queueLines, queueReport } from './queue-report.ts';

const seen = seenOf({
  guests: [guestOf('a', 'node-1'), guestOf('b', 'node-1')],
  migrations: [migrationOf('a', 'Running'), migrationOf('b', 'Pending', { agoSeconds: 90 })],
  ledger: ledgerOf({ outboundPerNode: 1 }, holderOf('a', 'node-1', 'node-2')),
});

describe('what is printed of the queue', () => {
  it('is a line for each, with what it waits for below', () => {
    expect(queueLines(queueOf(seen), NOW_MS, { isWide: false, paint: plain })).toEqual([
      '#   VIRTUAL MACHINE   CLASS            WAITS',
      '1   shop/b            user-triggered   90s',
      '    the one that may leave node-1 at once is under way',
      '    behind shop/a',
      '    it goes when one of those under way ends; or raise parallelOutboundMigrationsPerNode of the KubeVirt resource',
      '',
      'One waits: 1 of 5 in the cluster move; at most 1 leave a node and 2 come to one; who waits goes by class, deadline and age.',
    ]);
  });

  it('says more where there is room for it', () => {
    const [head = '', row = ''] = queueLines(queueOf(seen), NOW_MS, { isWide: true, paint: plain });
    expect(head).toContain('MIGRATION');
    expect(row).toContain('shop/move-b');
  });

  it('says so where nobody waits', () => {
    const lines = queueLines(queueOf(seenOf({})), NOW_MS, { isWide: false, paint: plain });
    expect(lines).toEqual([
      'Nobody waits: 0 of 5 in the cluster move; at most 2 leave a node and 2 come to one; who waits goes by class, deadline and age.',
    ]);
  });

  it('is the same for programs', () => {
    expect(JSON.parse(JSON.stringify(queueReport(queueOf(seen), NOW_MS)))).toMatchObject({
      limits: { perCluster: 5, outboundPerNode: 1, inboundPerNode: 2 },
      moving: [{ virtualMachine: 'shop/a', migration: 'shop/move-a', phase: 'Running' }],
      waiting: [{ place: 1, virtualMachine: 'shop/b', class: 'user-triggered', priority: 50, causes: ['User'] }],
    });
  });
});
