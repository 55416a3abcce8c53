import type { MigrationState } from '../../api/kubevirt/migration-state.ts';

/** What people are told of a migration when a write has told programs. */
export interface MigrationEvent {
  readonly type: 'Normal' | 'Warning';
  readonly reason: 'PreparingTarget' | 'Migrating' | 'Migrated';
  readonly message: string;
}

/** In KubeVirt's words, by which its tools and people's scripts go. */
export function migrationEvents(before: MigrationState = {}, after: MigrationState = {}): readonly MigrationEvent[] {
  const events: MigrationEvent[] = [];
  const isNew = (field: keyof MigrationState): boolean => before[field] === undefined && after[field] !== undefined;
  if (isNew('targetNodeAddress')) {
    const ports = Object.keys(after.targetDirectMigrationNodePorts ?? {}).join(',');
    const listening = `Migration Target is listening at ${after.targetNodeAddress ?? ''}, on ports: ${ports}`;
    for (const message of ['VirtualMachineInstance Migration Target Prepared.', listening])
      events.push({ type: 'Normal', reason: 'PreparingTarget', message });
  }
  if (isNew('startTimestamp'))
    events.push({ type: 'Normal', reason: 'Migrating', message: 'VirtualMachineInstance is migrating.' });
  if (after.failed === true && before.failed !== true) {
    const message = `VirtualMachineInstance migration uid ${after.migrationUid ?? ''} failed. reason:${after.failureReason ?? ''}`;
    events.push({ type: 'Warning', reason: 'Migrated', message });
  } else if (after.completed === true && before.completed !== true) {
    const message = `The VirtualMachineInstance migrated to node ${after.targetNode ?? ''}.`;
    events.push({ type: 'Normal', reason: 'Migrated', message });
  }
  return events;
}
