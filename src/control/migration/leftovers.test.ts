import { describe, expect, it } from 'vitest';
import type { MigrationState } from '../../api/kubevirt/migration-state.ts';
import type { VirtualMachineInstanceMigration } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import type { LauncherPod } from '../resources.ts';
import { guestOf } from '../vmi/guests.fixture.ts';
import { leftovers } from './leftovers.ts';

const owner = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstance', name: 'web', uid: 'guest-1' };

/** A launcher of the guest, made for a migration unless it is the first. */
function pod(name: string, phase: string, migrationUid?: string): LauncherPod {
  const labels: Record<string, string> =
    migrationUid === undefined ? {} : { 'kubevirt.io/migrationJobUID': migrationUid };
  const metadata = { name, uid: `uid-${name}`, labels, ownerReferences: [{ ...owner, controller: true }] };
  return { apiVersion: 'v1', kind: 'Pod', metadata, status: { phase } };
}

const migration = (uid: string, state: MigrationState = {}): VirtualMachineInstanceMigration => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachineInstanceMigration',
  metadata: { uid },
  spec: { vmName: 'web' },
  status: { migrationState: state },
});

const guest = (state: MigrationState = {}, holder = 'first') =>
  guestOf(
    {},
    {
      rightToRun: { epoch: 1, holder: { node: 'a', nodeUID: 'a', podUID: `uid-${holder}` } },
      migrationState: state,
    },
  );

const DONE = { migrationUid: 'm', sourcePod: 'first', targetPod: 'second', completed: true };
const UNDER_WAY = { ...DONE, completed: false };

describe('what a migration leaves behind that is gone', () => {
  it.each([
    ['the pod that the guest runs in stays', guest(), [pod('first', 'Running')], [], []],
    ['a pod of a migration that is there stays', guest(), [pod('second', 'Pending', 'm')], [migration('m')], []],
    ['a pod that no agent was told of goes', guest(), [pod('second', 'Pending', 'm')], [], ['second']],
    ['a pod that an agent has to end stays until then', guest(DONE), [pod('second', 'Running', 'm')], [], []],
    ['and goes then', guest(DONE), [pod('second', 'Failed', 'm')], [], ['second']],
    ['a pod that a guest has left goes', guest(DONE, 'second'), [pod('first', 'Succeeded')], [], ['first']],
    [
      'unless the migration that it left with is kept',
      guest(DONE, 'second'),
      [pod('first', 'Succeeded')],
      [migration('m', { sourcePod: 'first' })],
      [],
    ],
    ['a pod of a move that goes on stays', guest(UNDER_WAY), [pod('second', 'Failed', 'm')], [], []],
    ['pods of a guest that is over stay', guestOf({}, { phase: 'Succeeded' }), [pod('first', 'Succeeded')], [], []],
    [
      'a pod that is to go is left alone',
      guest(),
      [{ ...pod('x', 'Failed', 'm'), metadata: { ...pod('x', '', 'm').metadata, deletionTimestamp: 'now' } }],
      [],
      [],
    ],
  ])('%s', (_what, subject, pods, migrations, expected) => {
    expect(leftovers(subject, pods, migrations).pods.map(({ metadata }) => metadata.name)).toEqual(expected);
  });

  it.each([
    ['nothing was begun', guest(), [], false],
    ['it is over', guest(DONE), [], false],
    ['it is there', guest(UNDER_WAY), [migration('m')], false],
    ['it is gone', guest(UNDER_WAY), [], true],
    ['it is gone, and another one is there', guest(UNDER_WAY), [migration('n')], true],
    ['the agents know', guest({ ...UNDER_WAY, abortRequested: true }), [], false],
  ])('what the agents have of it is abandoned: %s', (_what, subject, migrations, expected) => {
    expect(leftovers(subject, [], migrations).isAbandoned).toBe(expected);
  });
});
