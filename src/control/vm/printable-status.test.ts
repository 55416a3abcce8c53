import { describe, expect, it } from 'vitest';
import type { PrintableStatus } from '../../api/kubevirt/virtual-machine.ts';
import { guestOf, machineOf } from './machines.fixture.ts';
import { type Look, printableStatus } from './printable-status.ts';

const condition = (type: string, status: 'True' | 'False', reason = '') => ({
  status: { conditions: [{ type, status, reason }] },
});
const going = machineOf({ runStrategy: 'Always' });
going.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
const failing = machineOf({ runStrategy: 'Always' }, { startFailure: { consecutiveFailCount: 2 } });
const receiver = machineOf({ runStrategy: 'WaitAsReceiver' });
const migrating = { status: { migrationState: { startTimestamp: '2026-01-01T00:00:00Z' } } };
const migrated = { status: { migrationState: { startTimestamp: '2026-01-01T00:00:00Z', completed: true } } };

describe("a machine's state in a word", () => {
  it.each<[PrintableStatus, string, Partial<Look>]>([
    ['Terminating', 'before all else', { machine: going, guest: guestOf('Running') }],
    ['Stopping', 'even while it migrates', { guest: guestOf('Running', { isGoing: true, ...migrating }) }],
    ['Stopping', 'when it was just told to', { guest: guestOf('Running'), isStopping: true }],
    ['Migrating', 'while it runs', { guest: guestOf('Running', migrating) }],
    ['Stopped', 'where it ended on its way', { guest: guestOf('Failed', migrating) }],
    ['Running', 'after it has moved', { guest: guestOf('Running', migrated) }],
    ['Paused', '', { guest: guestOf('Running', condition('Paused', 'True')) }],
    ['Running', '', { guest: guestOf('Running', condition('Paused', 'False')) }],
    ['ErrorPvcNotFound', '', { guest: guestOf('Pending', condition('Synchronized', 'False', 'FailedPvcNotFound')) }],
    ['ErrorUnschedulable', '', { guest: guestOf('Scheduling', condition('PodScheduled', 'False', 'Unschedulable')) }],
    ['Starting', 'with gates', { guest: guestOf('Scheduling', condition('PodScheduled', 'False', 'SchedulingGated')) }],
    ['WaitingForVolumeBinding', '', { guest: guestOf('Scheduling'), isUnbound: true }],
    ['ErrImagePull', '', { guest: guestOf('Scheduling', condition('Synchronized', 'False', 'ErrImagePull')) }],
    ['ImagePullBackOff', '', { guest: guestOf('Scheduling', condition('Synchronized', 'False', 'ImagePullBackOff')) }],
    ['Starting', 'before the guest is seen', { isStarting: true }],
    ['Starting', 'of a guest that nobody looked at', { guest: guestOf('') }],
    ['Starting', 'though it failed before', { machine: failing, guest: guestOf('Scheduled') }],
    ['CrashLoopBackOff', '', { machine: failing }],
    ['CrashLoopBackOff', 'with what is left of the last one', { machine: failing, guest: guestOf('Failed') }],
    ['Stopped', 'without a guest', {}],
    ['Stopped', 'with one that ended', { guest: guestOf('Succeeded', { isGoing: true }) }],
    ['WaitingForReceiver', 'without a guest', { machine: receiver }],
    ['WaitingForReceiver', 'with one', { machine: receiver, guest: guestOf('WaitingForSync') }],
    ['Unknown', 'of a guest that nobody hears of', { guest: guestOf('Unknown') }],
  ])('%s %s', (word, _, look) => {
    const machine = machineOf({ runStrategy: 'Manual' });
    const plain = { machine, guest: undefined, isStarting: false, isStopping: false, isUnbound: false };
    expect(printableStatus({ ...plain, ...look })).toBe(word);
  });
});
