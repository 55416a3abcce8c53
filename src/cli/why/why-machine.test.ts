import { describe, expect, it } from 'vitest';
import { queueOf } from '../queue/queue.ts';
import {
  ago,
  condition,
  guestOf,
  holderOf,
  ledgerOf,
  machineOf,
  migrationOf,
  nodeOf,
  NOW_MS,
  seenOf,
} from '../seen/seen.fixture.ts';
import type { SeenCluster } from '../seen/seen-cluster.ts';
import { type MachineScene, whyMachine } from './why-machine.ts';

function answer(scene: Partial<MachineScene>, seen: Partial<SeenCluster> = {}) {
  return whyMachine({
    namespace: 'shop',
    name: 'web',
    machine: machineOf('web'),
    guest: undefined,
    migrations: [],
    targetPod: undefined,
    node: nodeOf('node-1'),
    queue: queueOf(seenOf(seen)),
    configuration: {},
    unfitness: undefined,
    nowMs: NOW_MS,
    ...scene,
  });
}

const deleting = machineOf('web');
deleting.metadata.deletionTimestamp = ago(1);
const ending = guestOf('web', 'node-1', {}, { terminationGracePeriodSeconds: 30 });
ending.metadata.deletionTimestamp = ago(1);
const away = guestOf('web', 'node-1');
away.status = { ...away.status, rightToRun: { ...away.status?.rightToRun, epoch: 2, across: true } } as never;
const marked = { evacuationNodeName: 'node-1', evacuationCauses: [{ cause: 'APIEviction' as const, since: ago(3) }] };
const stuck = { ...marked, conditions: [condition('LiveMigratable', 'False', 'a disk is not shared')] };
const halted = machineOf('web', { runStrategy: 'Halted' });
const crashing = machineOf(
  'web',
  {},
  {
    startFailure: { consecutiveFailCount: 3, retryAfterTimestamp: ago(-40) },
    conditions: [condition('Failure', 'True', 'the guest ended before it ran: NoImage')],
  },
);
const wanted = machineOf('web', {}, { conditions: [condition('Failure', 'True', 'no such instance type')] });
const paused = {
  conditions: [condition('Paused', 'True', 'VMI was paused by user'), condition('LiveMigratable', 'True')],
};
const unscheduled = { phase: 'Scheduling' as const, conditions: [condition('PodScheduled', 'False', '0/2 nodes')] };
const lacking = {
  phase: 'Pending' as const,
  conditions: [condition('Synchronized', 'False', 'no claim', 'FailedPvcNotFound')],
};

describe('a virtual machine', () => {
  it.each<[string, Partial<MachineScene>, string, string, string, string | undefined]>([
    ['that is deleted', { machine: deleting }, 'It is being deleted.', 'Somebody deleted it.', 'It goes.', undefined],
    [
      'that is halted',
      { machine: halted },
      'It is stopped.',
      'runStrategy is Halted',
      'Nothing.',
      'godwit start web -n shop',
    ],
    [
      'that was not started',
      { machine: machineOf('web', { runStrategy: 'Manual' }) },
      'stopped',
      'Manual',
      'until somebody starts',
      'godwit start',
    ],
    [
      'that ended well',
      {
        machine: machineOf('web', { runStrategy: 'RerunOnFailure' }),
        guest: guestOf('web', 'node-1', { phase: 'Succeeded' }),
      },
      'stopped',
      'RerunOnFailure',
      'ended well',
      'godwit start',
    ],
    [
      'that waits for nodes to be heard since a restore',
      { guest: guestOf('web', 'node-1', { phase: 'Scheduled' }), unheard: ['node-2', 'node-3'] },
      'not started on node-1 yet',
      'not heard since: node-2, node-3.',
      'have said what their journals hold',
      'out-of-service',
    ],
    ['that is about to start', {}, 'about to start', 'Always', 'guest is made', undefined],
    [
      'that somebody started',
      { machine: machineOf('web', { runStrategy: 'Manual' }, { stateChangeRequests: [{ action: 'Start' }] }) },
      'about to start',
      'asked for it',
      'guest is made',
      undefined,
    ],
    ['that fails again and again', { machine: crashing }, 'failed 3 times', 'NoImage', 'in 40s', 'godwit logs web'],
    [
      'that cannot be made',
      { machine: wanted },
      'does not run, though it should',
      'No such instance type.',
      'tried again',
      'kubectl describe vm web',
    ],
    [
      'that waits for a guest',
      { machine: machineOf('web', { runStrategy: 'WaitAsReceiver' }) },
      'waits for a guest',
      'WaitAsReceiver',
      'once the guest has come',
      'godwit move VM --to-namespace shop',
    ],
    [
      'whose guest has gone',
      { machine: machineOf('web', {}, { rightToRun: { epoch: 3, grantedAway: true } }) },
      'runs elsewhere',
      'moved to another',
      'Nothing runs here',
      'godwit reclaim web -n shop',
    ],
    [
      'whose guest is going',
      { guest: away },
      'runs elsewhere',
      'moved to another',
      'Nothing runs here',
      'godwit reclaim web -n shop',
    ],
    [
      'that stops',
      { guest: ending },
      'stopping',
      'asked to shut down',
      'grace period of 30s',
      '--force --grace-period 0',
    ],
    [
      'that no node takes',
      { guest: guestOf('web', '', unscheduled) },
      'no node takes it',
      '0/2 nodes.',
      'as soon as a node takes it',
      'room for it',
    ],
    [
      'that no node takes, node by node',
      { guest: guestOf('web', '', unscheduled), unfitness: 'node-1: Insufficient memory; node-2: cordoned' },
      'no node takes it',
      'node-2: cordoned.',
      'as soon as a node takes it',
      undefined,
    ],
    [
      'that lacks something',
      { guest: guestOf('web', '', lacking) },
      'does not start (FailedPvcNotFound)',
      'No claim.',
      'tried again',
      'kubectl describe vmi web',
    ],
    [
      'that is placed',
      { guest: guestOf('web', '', { phase: 'Scheduling', conditions: [] }) },
      'It is starting.',
      'pod',
      'runs once its node',
      undefined,
    ],
    [
      'that is started',
      { guest: guestOf('web', 'node-1', { phase: 'Scheduled' }) },
      'being started on node-1',
      'agent of node-1',
      'in a moment',
      'godwit why node node-1',
    ],
    [
      'whose node is silent',
      { guest: guestOf('web', 'node-1'), node: nodeOf('node-1', false) },
      'Nobody knows whether it runs',
      'It is not heard of.',
      'might run twice',
      'out-of-service=nodeshutdown:NoExecute',
    ],
    [
      'whose node was given up',
      {
        guest: guestOf('web', 'node-1'),
        node: nodeOf('node-1', false, { taints: [{ key: 'node.kubernetes.io/out-of-service', effect: 'NoExecute' }] }),
      },
      'given up',
      'taint',
      'starts elsewhere',
      undefined,
    ],
    [
      'that runs',
      { guest: guestOf('web', 'node-1') },
      'It runs on node-1, and can be live-migrated.',
      'is drained it is shut down (evictionStrategy None)',
      'goes on',
      'godwit migrate web -n shop --watch',
    ],
    [
      'that is paused',
      { guest: guestOf('web', 'node-1', paused) },
      'It is paused on node-1',
      'VMI was paused by user.',
      'goes on',
      'godwit unpause web',
    ],
    [
      'that cannot move',
      {
        guest: guestOf('web', 'node-1', { conditions: [condition('LiveMigratable', 'False', 'a disk is not shared')] }),
      },
      'cannot be live-migrated',
      'A disk is not shared.',
      'goes on',
      'godwit console',
    ],
    [
      'whose last migration failed',
      {
        guest: guestOf('web', 'node-1'),
        migrations: [
          migrationOf('web', 'Failed', {
            status: { conditions: [condition('migrationFailed', 'True', 'it took too long')] },
          }),
        ],
      },
      'It runs on node-1',
      'last migration that failed: It took too long.',
      'goes on',
      undefined,
    ],
    [
      'that has to leave',
      { guest: guestOf('web', 'node-1', marked, { evictionStrategy: 'LiveMigrate' }) },
      'has to leave it.',
      'Its node is being drained.',
      'A migration is made',
      'godwit evacuate-cancel web -n shop',
    ],
    [
      'that has to leave, and cannot',
      { guest: guestOf('web', 'node-1', stuck, { evictionStrategy: 'LiveMigrate' }) },
      'has to leave it, but cannot',
      'Cannot be live-migrated: a disk is not shared.',
      'until it can be live-migrated',
      'godwit stop web',
    ],
    [
      'that others have to move',
      { guest: guestOf('web', 'node-1', marked, { evictionStrategy: 'External' }) },
      'but cannot',
      'External',
      'whoever manages it',
      undefined,
    ],
  ])('%s', (_, scene, state, why, next, action) => {
    const told = answer(scene);
    expect(told.subject).toBe('virtual machine shop/web');
    expect(told.state).toContain(state);
    expect(told.why.join('\n')).toContain(why);
    expect(told.next).toContain(next);
    if (action !== undefined) expect(told.actions.join('\n')).toContain(action);
  });

  it('that waits to move says for what', () => {
    const guests = [guestOf('web', 'node-1'), guestOf('db', 'node-1')];
    const migrations = [migrationOf('web'), migrationOf('db', 'Running')];
    const ledger = ledgerOf({ outboundPerNode: 1 }, holderOf('db', 'node-1', 'node-2'));
    const told = answer(
      { guest: guests[0], migrations: [migrations[0] ?? migrationOf('web')] },
      { guests, migrations, ledger },
    );
    expect(told.state).toBe('It runs on node-1, and is to move. It waits for its turn: it is number 1 in line.');
    expect(told.why).toEqual([
      'The one that may leave node-1 at once is under way.',
      'Before it: shop/db.',
      'It is to move since somebody asked for it (class: user-triggered).',
    ]);
  });

  it('that is only a guest is called one', () => {
    expect(answer({ machine: undefined, guest: guestOf('web', 'node-1') }).subject).toBe(
      'virtual machine instance shop/web',
    );
  });
});
