import type { MigrationState } from '../../api/kubevirt/migration-state.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { VirtualMachineInstanceMigration } from '../../api/kubevirt/virtual-machine-instance-migration.ts';

/** Two guests, here and there, and a pair of migrations between them, for tests. */

export const RUNNER_HERE = { node: 'node-a', nodeUID: 'node-uid', podUID: 'pod-here' };
export const RUNNER_THERE = { node: 'node-a', nodeUID: 'other-uid', podUID: 'pod-there' };

function migrationOf(name: string, uid: string, spec: object): VirtualMachineInstanceMigration {
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstanceMigration',
    metadata: { name, namespace: 'shop', uid },
    spec: { vmName: name === 'send' ? 'web' : 'new', ...spec },
  };
}

export const SENDING = migrationOf('send', 'uid-send', { sendTo: { key: 'k', connectURL: 'there:1' } });
export const RECEIVING = migrationOf('receive', 'uid-receive', { receive: { key: 'k' } });

/** The guest that leaves, with a state of the pair. */
export function sourceGuest(
  state: MigrationState = {},
  status: VirtualMachineInstance['status'] = {},
): VirtualMachineInstance {
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { name: 'web', namespace: 'shop', uid: 'guest-here' },
    spec: { domain: { devices: {} } },
    status: {
      phase: 'Running',
      rightToRun: { epoch: 3, holder: RUNNER_HERE },
      ...status,
      migrationState: {
        migrationUid: 'uid-send',
        sourceState: { migrationUID: 'uid-send', virtualMachineInstanceUID: 'guest-here' },
        ...state,
      },
    },
  };
}

/** The guest that waits, with a state of the pair. */
export function targetGuest(
  state: MigrationState = {},
  status: VirtualMachineInstance['status'] = {},
): VirtualMachineInstance {
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { name: 'new', namespace: 'shop', uid: 'guest-there' },
    spec: { domain: { devices: {} } },
    status: {
      phase: 'WaitingForSync',
      ...status,
      migrationState: {
        targetState: { migrationUID: 'uid-receive', virtualMachineInstanceUID: 'guest-there' },
        ...state,
      },
    },
  };
}
