import { describe, expect, it } from 'vitest';
import {
  ago,
  condition,
  guestOf,
  holderOf,
  kubeVirtOf,
  ledgerOf,
  migrationOf,
  NOW_MS,
  seenOf,
  targetPodOf,
} from '../seen/seen.fixture.ts';
import type { SeenCluster } from '../seen/seen-cluster.ts';
import { queueOf, type Waiting } from './queue.ts';
import { waitingWords } from './queue-words.ts';

const machines = (waiting: readonly Waiting[]): (readonly [number | undefined, string])[] =>
  waiting.map(({ place, machine }) => [place, machine]);

/** Three on one node, the first of which moves. */
const crowd: Partial<SeenCluster> = {
  guests: [guestOf('a', 'node-1'), guestOf('b', 'node-1'), guestOf('c', 'node-1')],
  migrations: [
    migrationOf('a', 'Running', { status: { progress: { percent: 42, summary: '42%, 12s left' } } }),
    migrationOf('b', 'Pending', {
      agoSeconds: 30,
      priority: 20,
      status: { causes: [{ cause: 'Descheduler', priority: 20 }] },
    }),
    migrationOf('c', 'Pending', { agoSeconds: 5 }),
  ],
};

describe('the queue', () => {
  it('is in the order of the controller: by class, then by age', () => {
    const ledger = ledgerOf({ outboundPerNode: 1 }, holderOf('a', 'node-1', 'node-2'));
    const queue = queueOf(seenOf({ ...crowd, ledger }));
    expect(queue.moving.map(({ machine, targetNode }) => [machine, targetNode])).toEqual([['shop/a', 'node-2']]);
    expect(machines(queue.waiting)).toEqual([
      [1, 'shop/c'],
      [2, 'shop/b'],
    ]);
  });

  it('is by age alone where there are no priorities', () => {
    const developerConfiguration = { disabledFeatureGates: ['MigrationPriorityQueue'] };
    const kubeVirt = kubeVirtOf({ developerConfiguration });
    const ledger = ledgerOf({ outboundPerNode: 1 }, holderOf('a', 'node-1', 'node-2'));
    expect(machines(queueOf(seenOf({ ...crowd, ledger, kubeVirt })).waiting)).toEqual([
      [1, 'shop/b'],
      [2, 'shop/c'],
    ]);
  });

  it('says behind whom one waits, and what would let it go', () => {
    const ledger = ledgerOf({ outboundPerNode: 1 }, holderOf('a', 'node-1', 'node-2'));
    const queue = queueOf(seenOf({ ...crowd, ledger }));
    const [first, second] = queue.waiting.map((each) => waitingWords(each, queue, NOW_MS));
    expect(first).toEqual({
      why: 'the one that may leave node-1 at once is under way',
      behind: ['shop/a (42%, 12s left)'],
      remedy:
        'it goes when one of those under way ends; or raise parallelOutboundMigrationsPerNode of the KubeVirt resource',
    });
    expect(second?.behind).toEqual(['shop/a (42%, 12s left)', 'shop/c']);
    expect(second?.remedy).toContain('and the one before it has gone');
  });

  it('does not let one wait behind others that need other slots', () => {
    const guests = [guestOf('a', 'node-1'), guestOf('b', 'node-1'), guestOf('d', 'node-9')];
    const migrations = [migrationOf('a', 'Running'), migrationOf('b'), migrationOf('d')];
    const ledger = ledgerOf({ outboundPerNode: 1 }, holderOf('a', 'node-1', 'node-2'));
    const queue = queueOf(seenOf({ guests, migrations, ledger }));
    const free = queue.waiting.find(({ machine }) => machine === 'shop/d');
    expect(free).toMatchObject({ full: [], behind: [] });
  });

  it('takes who has begun to have slots where the ledger cannot be read', () => {
    const { moving, waiting } = queueOf(
      seenOf({ ...crowd, ledger: undefined, targetPods: [targetPodOf('a', 'node-2')] }),
    );
    expect(moving.map(({ machine }) => machine)).toEqual(['shop/a']);
    expect(waiting).toHaveLength(2);
  });
});

describe('one that waits', () => {
  const scene = (parts: Partial<SeenCluster>): { why: string; remedy: string; place: number | undefined } => {
    const queue = queueOf(seenOf({ guests: [guestOf('a', 'node-1')], migrations: [migrationOf('a')], ...parts }));
    const [waiting] = queue.waiting;
    if (!waiting) throw new Error('nobody waits');
    const { why, remedy } = waitingWords(waiting, queue, NOW_MS);
    return { why, remedy, place: waiting.place };
  };
  const failedBefore = migrationOf('a', 'Failed', {
    annotations: { 'kubevirt.io/evacuationMigration': 'node-1' },
    status: { phaseTransitionTimestamps: [{ phase: 'Failed', phaseTransitionTimestamp: ago(5) }] },
  });
  const again = migrationOf('a', 'Pending', { annotations: { 'kubevirt.io/evacuationMigration': 'node-1' } });
  const noNode = [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable' }];
  const unfit = { conditions: [condition('migrationTargetPodUnschedulable', 'True', 'node-2: Insufficient memory')] };
  const quota = { conditions: [condition('migrationRejectedByResourceQuota', 'True', 'exceeded quota: tight')] };

  it.each<[string, Partial<SeenCluster>, number | undefined, string, string]>([
    ['for nothing', {}, 1, 'nothing is in its way', 'see that the control plane runs'],
    [
      'for a slot of the cluster',
      { ledger: ledgerOf({ perCluster: 2 }, holderOf('x', 'node-8', 'node-9'), holderOf('y', 'node-8', 'node-9')) },
      1,
      'all 2 that may move at once in the cluster are under way',
      'raise parallelMigrationsPerCluster',
    ],
    [
      'while all are paused',
      { ledger: ledgerOf({ perCluster: 0 }) },
      1,
      'paused: parallelMigrationsPerCluster is 0',
      'above 0',
    ],
    [
      'for room at its target',
      {
        migrations: [migrationOf('a', 'Scheduled')],
        targetPods: [targetPodOf('a', 'node-2')],
        ledger: ledgerOf({ inboundPerNode: 1 }, holderOf('x', 'node-8', 'node-2')),
      },
      1,
      'the one that may come to node-2 at once is under way',
      'raise parallelInboundMigrationsPerNode',
    ],
    [
      'for its guest',
      { guests: [guestOf('a', '', { phase: 'Scheduling' })] },
      undefined,
      'its guest does not run',
      'godwit why vm a',
    ],
    [
      'for the source of an older migration, which is gone',
      { guests: [guestOf('a', 'node-1', { migrationState: { migrationUid: 'x', startTimestamp: ago(60) } })] },
      undefined,
      'node-1 is still at an earlier move of its guest',
      "'godwit why node node-1'",
    ],
    [
      'for a quota',
      { migrations: [migrationOf('a', 'Pending', { status: quota })] },
      undefined,
      'exceeded quota: tight',
      'once the quota of shop',
    ],
    [
      'for a node',
      {
        migrations: [migrationOf('a', 'Scheduling', { status: unfit })],
        targetPods: [targetPodOf('a', '', noNode)],
        ledger: ledgerOf({}, holderOf('a', 'node-1')),
      },
      undefined,
      'no node takes it: node-2: Insufficient memory',
      'once a node has room',
    ],
    [
      'after a failure',
      { migrations: [{ ...failedBefore, metadata: { ...failedBefore.metadata, uid: 'other' } }, again] },
      undefined,
      'the last try failed, and the next one waits for 15s',
      'does not wait',
    ],
    [
      'for its other half',
      {
        migrations: [
          migrationOf('a', 'Synchronizing', { spec: { sendTo: { key: 'k', migrationID: 'k', connectURL: 'x:1' } } }),
        ],
      },
      undefined,
      'its other half is not ready',
      'trust each other',
    ],
  ])('%s', (_, parts, place, why, remedy) => {
    const told = scene(parts);
    expect(told.place).toBe(place);
    expect(told.why).toContain(why);
    expect(told.remedy).toContain(remedy);
  });
});
