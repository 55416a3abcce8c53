import { describe, expect, it } from 'vitest';
import type { FieldError } from '../field-error.ts';
import { withMigrationDefaults } from './complete-migration.ts';
import type { KubeVirtConfiguration } from './kube-virt.ts';
import { migratedGuestErrors, migrationConflicts, migrationErrors, priorityRight } from './validate-migration.ts';
import type { VirtualMachineInstance } from './virtual-machine-instance.ts';
import type {
  MigrationPhase,
  VirtualMachineInstanceMigration,
  VirtualMachineInstanceMigrationSpec,
} from './virtual-machine-instance-migration.ts';

type Spec = VirtualMachineInstanceMigrationSpec;

const BOTH_GATES: KubeVirtConfiguration = { developerConfiguration: { featureGates: ['DecentralizedLiveMigration'] } };
const NO_QUEUE: KubeVirtConfiguration = {
  developerConfiguration: { disabledFeatureGates: ['MigrationPriorityQueue'] },
};

function migration(spec: Spec, metadata: object = {}, phase: MigrationPhase = ''): VirtualMachineInstanceMigration {
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstanceMigration',
    metadata: { name: 'm', namespace: 'shop', ...metadata },
    spec,
    status: { phase },
  };
}

/** As a webhook sees it: completed. */
function stored(spec: Spec, metadata: object = {}, phase: MigrationPhase = ''): VirtualMachineInstanceMigration {
  return withMigrationDefaults(migration(spec, metadata, phase), { isOwnComponent: false });
}

function sentences(errors: readonly FieldError[]): string[] {
  return errors.map(({ field, message }) => `${field}: ${message}`);
}

describe('a migration', () => {
  it.each<[what: string, spec: object, errors: string[], configuration?: KubeVirtConfiguration]>([
    ['of a guest', { vmiName: 'a' }, []],
    ['of a guest under the proposed name', { vmName: 'a' }, []],
    ['of nobody', {}, ['spec.vmiName: vmiName is missing']],
    [
      'of two guests',
      { vmName: 'a', vmiName: 'b' },
      ['spec.vmName: Invalid value: "a": must be the same as spec.vmiName, "b"'],
    ],
    ['with an unknown field', { vmiName: 'a', extra: 1 }, ['spec.extra: unknown field']],
    [
      'with an unknown field in a half',
      { vmiName: 'a', receive: { key: '1', extra: 1 } },
      ['spec.receive.extra: unknown field'],
      BOTH_GATES,
    ],
    ['of a class', { vmiName: 'a', priority: 'user-triggered' }, []],
    [
      'of a class that nobody knows',
      { vmiName: 'a', priority: 'urgent' },
      [
        'spec.priority: Unsupported value: "urgent": supported values: "system-critical", "user-triggered", "system-maintenance"',
      ],
    ],
    [
      'of a class without the gate',
      { vmiName: 'a', priority: 'user-triggered' },
      ['spec.priority: MigrationPriorityQueue feature gate is not enabled in kubevirt resource'],
      NO_QUEUE,
    ],
    ['without a class and without the gate', { vmiName: 'a' }, [], NO_QUEUE],
    [
      'to nodes that cannot be',
      { vmiName: 'a', addedNodeSelector: { zone: '-b' } },
      [expect.stringContaining('spec.addedNodeSelector: Invalid value: "-b"') as never],
    ],
    [
      'that is a half without a key',
      { vmiName: 'a', receive: {} },
      ['spec.receive.key: Required value: or migrationID'],
      BOTH_GATES,
    ],
    [
      'that is a half without an address',
      { vmiName: 'a', sendTo: { key: '1', connectURL: '' } },
      ['spec.sendTo.connectURL: Required value'],
      BOTH_GATES,
    ],
    [
      'to an address that is none',
      { vmiName: 'a', sendTo: { key: '1', connectURL: 'http://there/x' } },
      [
        expect.stringContaining(
          'spec.sendTo.connectURL: Invalid value: "http://there/x": must be a host and a port',
        ) as never,
      ],
      BOTH_GATES,
    ],
    ...['there:9185', 'there', '10.0.0.1:443', '[fd00::1]:9185', 'https://there:1', 'https://there/'].map(
      (connectURL): [string, object, string[], KubeVirtConfiguration] => [
        `to ${connectURL}`,
        { vmiName: 'a', sendTo: { key: '1', connectURL } },
        [],
        BOTH_GATES,
      ],
    ),
    ...['there:0', 'there:65536', 'user@there:1', 'fd00::1', 'there:1?x', 'ftp://there:1', 'a b:1', ' there:1'].map(
      (connectURL): [string, object, string[], KubeVirtConfiguration] => [
        `not to ${connectURL}`,
        { vmiName: 'a', sendTo: { key: '1', connectURL } },
        [expect.stringContaining('spec.sendTo.connectURL: Invalid value') as never],
        BOTH_GATES,
      ],
    ),
    [
      'with a key that is too long',
      { vmiName: 'a', receive: { key: 'k'.repeat(513) } },
      [expect.stringContaining('spec.receive.key: Too long') as never],
      BOTH_GATES,
    ],
    [
      'with two keys for one half',
      { vmiName: 'a', receive: { key: '1', migrationID: '2' } },
      ['spec.receive.key: Invalid value: "1": must be the same as spec.receive.migrationID, "2"'],
      BOTH_GATES,
    ],
  ])('%s', (_, spec, errors, configuration = {}) => {
    expect(sentences(migrationErrors(stored(spec as Spec).spec, configuration))).toEqual(errors);
  });

  describe('between two control planes (KubeVirt: migration-create-admitter, feature gate table)', () => {
    const sendTo = { migrationID: '1', connectURL: 'u' };
    const receive = { migrationID: '1' };
    const OFF = 'DecentralizedLiveMigration feature gate is not enabled in kubevirt resource';
    it.each<[string, object, KubeVirtConfiguration, string[]]>([
      ['reject vmim with sendTo if featuregate is disabled', { sendTo }, {}, [`spec.sendTo: ${OFF}`]],
      ['reject vmim with receive if featuregate is disabled', { receive }, {}, [`spec.receive: ${OFF}`]],
      ['allow vmim with sendTo if featuregate is enabled', { sendTo }, BOTH_GATES, []],
      ['allow vmim with receive if featuregate is enabled', { receive }, BOTH_GATES, []],
      ['allow vmim with sendTo and receiver if featuregate is enabled', { sendTo, receive }, BOTH_GATES, []],
      [
        'reject vmim with sendTo and receiver if migrationID does not match if featuregate is enabled',
        { sendTo, receive: { migrationID: '2' } },
        BOTH_GATES,
        ['spec.receive.key: sendTo migrationID 1 does not match receive migrationID 2'],
      ],
    ])('%s', (_, halves, configuration, errors) => {
      const { spec } = stored({ vmiName: 'a', ...halves });
      expect(sentences(migrationErrors(spec, configuration))).toEqual(errors);
    });
  });

  it('of a class needs a right that is named after the class', () => {
    expect(priorityRight({})).toBeUndefined();
    expect(priorityRight({ priority: 'system-critical' })).toEqual({
      verb: 'use',
      group: 'kubevirt.io',
      resource: 'migrationpriorities',
      name: 'system-critical',
    });
  });
});

describe('the guest of a migration', () => {
  const guest = (status: VirtualMachineInstance['status']): Pick<VirtualMachineInstance, 'status'> =>
    status ? { status } : {};
  const stuck = (reason: string): VirtualMachineInstance['status'] => ({
    phase: 'Running',
    conditions: [{ type: 'LiveMigratable', status: 'False', reason, message: 'no' }],
  });
  const half = { vmiName: 'a', receive: { key: '1' } };
  const sending = { vmiName: 'a', sendTo: { key: '1', connectURL: 'there:9185' } };
  const DISKS = 'DisksNotLiveMigratable';
  const WAITS =
    'Cannot migrate VMI that waits for its guest from another namespace or cluster: only a migration with spec.receive moves it.';
  it.each<[string, Spec, Pick<VirtualMachineInstance, 'status'> | undefined, string[]]>([
    ['runs', { vmiName: 'a' }, guest({ phase: 'Running' }), []],
    ['says nothing yet', { vmiName: 'a' }, guest(undefined), []],
    ['is not there', { vmiName: 'a' }, undefined, ['spec.vmiName: the VMI "shop/a" does not exist']],
    [
      'has ended',
      { vmiName: 'a' },
      guest({ phase: 'Succeeded' }),
      ['spec.vmiName: Cannot migrate VMI in finalized state.'],
    ],
    [
      'has failed',
      { vmiName: 'a' },
      guest({ phase: 'Failed' }),
      ['spec.vmiName: Cannot migrate VMI in finalized state.'],
    ],
    [
      'cannot move',
      { vmiName: 'a' },
      guest(stuck('HostDeviceNotLiveMigratable')),
      ['spec.vmiName: Cannot migrate VMI, Reason: HostDeviceNotLiveMigratable, Message: no'],
    ],
    [
      'has disks that stay',
      { vmiName: 'a' },
      guest(stuck(DISKS)),
      [`spec.vmiName: Cannot migrate VMI, Reason: ${DISKS}, Message: no`],
    ],
    ['has disks that are copied to another cluster', sending, guest(stuck(DISKS)), []],
    [
      'cannot move at all, to no other cluster either',
      sending,
      guest(stuck('HostDeviceNotLiveMigratable')),
      ['spec.vmiName: Cannot migrate VMI, Reason: HostDeviceNotLiveMigratable, Message: no'],
    ],
    [
      'waits for its own guest, and so has none to be moved',
      { vmiName: 'a' },
      guest({ phase: 'WaitingForSync' }),
      [`spec.vmiName: ${WAITS}`],
    ],
    [
      'waits for its own guest, and so has none to be sent',
      sending,
      guest({ phase: 'WaitingForSync' }),
      [`spec.vmiName: ${WAITS}`],
    ],
    ['waits for its guest, and is to receive it', half, guest({ phase: 'WaitingForSync' }), []],
    [
      'has received its guest, and has not said so yet',
      { vmiName: 'a' },
      guest({ phase: 'WaitingForSync', rightToRun: { epoch: 2, volumes: [] } }),
      [],
    ],
    ['is not there to be sent', sending, undefined, ['spec.vmiName: the VMI "shop/a" does not exist']],
    ['is not there to be received, yet', half, undefined, []],
    ['waits to be received, and could not move now', half, guest(stuck('HostDeviceNotLiveMigratable')), []],
    [
      'has ended, and is received by nobody',
      half,
      guest({ phase: 'Failed' }),
      ['spec.vmiName: Cannot migrate VMI in finalized state.'],
    ],
    [
      'has disks that stay, with both halves in one',
      { ...half, sendTo: { key: '1', connectURL: 'u' } },
      guest(stuck(DISKS)),
      [`spec.vmiName: Cannot migrate VMI, Reason: ${DISKS}, Message: no`],
    ],
  ])('%s', (_, spec, found, errors) => {
    expect(sentences(migratedGuestErrors(stored(spec), found))).toEqual(errors);
  });
});

describe('other migrations', () => {
  const sendTo = { key: '1', connectURL: 'u' };
  const IN_FLIGHT =
    'spec.vmiName: in-flight migration detected. Active migration job (o) is currently already in progress for VMI a.';
  const SAME_KEY = 'the migration far/other has the same key, and is not over';
  const other = { name: 'other', uid: 'o' };
  const far = { ...other, namespace: 'far' };
  it.each<[string, Spec, VirtualMachineInstanceMigration, string[]]>([
    ['of the same guest', { vmiName: 'a' }, stored({ vmiName: 'a' }, other, 'Running'), [IN_FLIGHT]],
    ['of the same guest that nobody has looked at', { vmiName: 'a' }, stored({ vmName: 'a' }, other), [IN_FLIGHT]],
    ['of the same guest that succeeded', { vmiName: 'a' }, stored({ vmiName: 'a' }, other, 'Succeeded'), []],
    ['of the same guest that failed', { vmiName: 'a' }, stored({ vmiName: 'a' }, other, 'Failed'), []],
    ['of another guest', { vmiName: 'a' }, stored({ vmiName: 'b' }, other), []],
    ['of a namesake elsewhere', { vmiName: 'a' }, stored({ vmiName: 'a' }, far), []],
    ['that is the other half', { vmiName: 'a', sendTo }, stored({ vmiName: 'a', receive: { key: '1' } }, other), []],
    [
      'that is half of another one',
      { vmiName: 'a', sendTo },
      stored({ vmiName: 'a', receive: { key: '2' } }, other),
      [IN_FLIGHT],
    ],
    ['that is the same half', { vmiName: 'a', sendTo }, stored({ vmiName: 'a', sendTo }, other), [IN_FLIGHT]],
    [
      'that is the same half elsewhere',
      { vmiName: 'a', sendTo },
      stored({ vmiName: 'b', sendTo }, far),
      [`spec.sendTo.key: ${SAME_KEY}`],
    ],
    [
      'that is the same half elsewhere, and comes',
      { vmiName: 'a', receive: { key: '1' } },
      stored({ vmiName: 'b', receive: { key: '1' } }, far),
      [`spec.receive.key: ${SAME_KEY}`],
    ],
    ['that was the same half elsewhere', { vmiName: 'a', sendTo }, stored({ vmiName: 'b', sendTo }, far, 'Failed'), []],
    [
      'that is the other half elsewhere',
      { vmiName: 'a', sendTo },
      stored({ vmiName: 'b', receive: { key: '1' } }, far),
      [],
    ],
    ['of the same guest, as a half', { vmiName: 'a', sendTo }, stored({ vmiName: 'a' }, other), [IN_FLIGHT]],
  ])('%s', (_, spec, known, errors) => {
    expect(sentences(migrationConflicts(stored(spec), [known]))).toEqual(errors);
  });
  it('are not itself', () => {
    const one = stored({ vmiName: 'a' }, { uid: 'o' });
    expect(migrationConflicts(one, [one])).toEqual([]);
  });
});

describe('a new migration', () => {
  it('Should mutate the VirtualMachineInstanceMigration object (KubeVirt: migration-create-mutator)', () => {
    const { metadata } = stored({ vmiName: 'a' }, { labels: { app: 'x' } });
    expect(metadata.labels).toEqual({ app: 'x', 'kubevirt.io/vmi-name': 'a' });
    expect(metadata.finalizers).toEqual(['kubevirt.io/migrationJobFinalize']);
  });
  it('keeps what is there, and changes nothing the second time', () => {
    const once = stored({ vmiName: 'a' }, { finalizers: ['x', 'kubevirt.io/migrationJobFinalize'] });
    expect(once.metadata.finalizers).toEqual(['x', 'kubevirt.io/migrationJobFinalize']);
    expect(withMigrationDefaults(once, { isOwnComponent: false })).toEqual(once);
  });
  it('is selected by as much of its name as a label has room for', () => {
    const name = `${'a'.repeat(62)}-b.c`;
    expect(stored({ vmiName: name }).metadata.labels).toEqual({ 'kubevirt.io/vmi-name': 'a'.repeat(62) });
    expect(stored({}).metadata.labels).toEqual({});
  });
  it.each<[string, Spec, boolean, string]>([
    ['a user', { vmiName: 'a' }, false, 'User'],
    ['a user who claims another cause', { vmiName: 'a', cause: 'Preemption' }, false, 'User'],
    ['a user with a half', { vmiName: 'a', receive: { key: '1' } }, false, 'CrossCluster'],
    ['a component', { vmiName: 'a', cause: 'Preemption' }, true, 'Preemption'],
    ['a component that says nothing', { vmiName: 'a' }, true, 'User'],
  ])('of %s has its cause from who asked', (_, spec, isOwnComponent, cause) => {
    expect(withMigrationDefaults(migration(spec), { isOwnComponent }).spec.cause).toBe(cause);
  });
});
