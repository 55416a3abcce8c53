import { describe, expect, it } from 'vitest';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import { guestKeyOf } from '../../control/migration/keys.ts';
import type { Node } from '../../migration/fit/objects.ts';
import { queueOf } from '../queue/queue.ts';
import { ago, condition, guestOf, ledgerOf, migrationOf, nodeOf, NOW_MS, seenOf } from '../seen/seen.fixture.ts';
import { whyNode } from './why-node.ts';

const MOVES = { evictionStrategy: 'LiveMigrate' };
const marked = { evacuationNodeName: 'node-1', evacuationCauses: [{ cause: 'APIEviction' as const, since: ago(3) }] };
const stuck = { ...marked, conditions: [condition('LiveMigratable', 'False', 'a disk is not shared')] };
const outOfService = { taints: [{ key: 'node.kubernetes.io/out-of-service', effect: 'NoExecute' }] };
const cordoned = nodeOf('node-1', true, { unschedulable: true });

function answer(node: Node, guests: readonly VirtualMachineInstance[], isWaiting = false) {
  const migrations = isWaiting ? guests.map(({ metadata }) => migrationOf(metadata.name ?? '')) : [];
  const queue = queueOf(seenOf({ guests, migrations, ledger: ledgerOf({ perCluster: 0 }) }));
  const migrationsOf = new Map(migrations.map((each) => [guestKeyOf(each), [each]]));
  return whyNode({ node, guests, migrationsOf, queue, configuration: {}, nowMs: NOW_MS });
}

describe('a node', () => {
  it.each<[string, Node, VirtualMachineInstance[], string, string, string, string]>([
    [
      'that is well',
      nodeOf('node-1'),
      [guestOf('a', 'node-1', {}, MOVES), guestOf('b', 'node-1')],
      'ready, and has 2 virtual machines',
      'If it were drained, 1 would move, 1 would be shut down.',
      'goes on',
      'godwit drain node-1 --dry-run',
    ],
    [
      'under pressure',
      nodeOf('node-1', true, {}, [{ type: 'DiskPressure', status: 'True', message: 'little is left' }]),
      [],
      'ready',
      'DiskPressure: little is left.',
      'goes on',
      'drain',
    ],
    [
      'that is silent',
      nodeOf('node-1', false),
      [],
      'It is not ready.',
      'It is not heard of.',
      'takes no pods',
      'godwit agent --name node-1',
    ],
    [
      'that is silent with guests',
      nodeOf('node-1', false),
      [guestOf('a', 'node-1')],
      'whether 1 virtual machine on it still runs',
      'not heard of',
      'might run twice',
      'out-of-service=nodeshutdown',
    ],
    [
      'that was given up',
      nodeOf('node-1', false, outOfService),
      [guestOf('a', 'node-1')],
      'given up',
      'taint',
      '1 virtual machine on it is taken back',
      'out-of-service-',
    ],
    [
      'that is cordoned and empty',
      cordoned,
      [],
      'cordoned, and has no virtual machine',
      'empties',
      'switched off',
      'godwit uncordon node-1',
    ],
    [
      'that is cordoned alone',
      cordoned,
      [guestOf('a', 'node-1', {}, MOVES)],
      '1 virtual machine is on it, 0 of which have to leave',
      'Nobody has asked them',
      'until it is drained',
      'godwit drain node-1',
    ],
    [
      'that is drained',
      cordoned,
      [guestOf('a', 'node-1', marked, MOVES)],
      '1 of which has to leave',
      '',
      'then it is empty',
      'godwit evacuate-cancel node node-1',
    ],
    [
      'that does not become empty',
      cordoned,
      [guestOf('a', 'node-1', stuck, MOVES)],
      '1 of which has to leave',
      'shop/a cannot be live-migrated: ',
      'until something is done about that',
      'evacuate-cancel',
    ],
  ])('%s', (_, node, guests, state, why, next, action) => {
    const told = answer(node, guests);
    expect(told.subject).toBe('node node-1');
    expect(told.state).toContain(state);
    expect(told.why.join('\n')).toContain(why);
    expect(told.next).toContain(next);
    expect(told.actions.join('\n')).toContain(action);
  });

  it('says how many wait to move', () => {
    expect(answer(cordoned, [guestOf('a', 'node-1', marked, MOVES)], true).why).toEqual([
      "One of them waits to move: 'godwit queue' says for what.",
    ]);
  });
});
