import { describe, expect, it } from 'vitest';
import type { EvacuationCause } from '../../api/kubevirt/evacuation-cause.ts';
import type { VirtualMachineInstanceMigration } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { guestWith, marked, NOW } from './evacuation.fixture.ts';
import { evacuationMigration } from './evacuation-migration.ts';

const made = (causes: EvacuationCause[], all: readonly VirtualMachineInstanceMigration[] = [], configuration = {}) =>
  evacuationMigration(guestWith('LiveMigrate', marked(...causes)), all, configuration);

describe('the migration that empties a node', () => {
  it('object has the annotation of KubeVirt, the priority system-critical, and its cause', () => {
    const { metadata, spec } = made([{ cause: 'APIEviction', untilUncordon: true }]);
    expect(metadata.name).toMatch(/^kubevirt-evacuation-[a-z0-9]{10}$/);
    expect(metadata).toMatchObject({
      namespace: 'shop',
      annotations: { 'kubevirt.io/evacuationMigration': 'node-a' },
      labels: { 'kubevirt.io/vmi-name': 'web' },
      finalizers: ['kubevirt.io/migrationJobFinalize'],
    });
    expect(spec).toEqual({ vmName: 'web', vmiName: 'web', cause: 'APIEviction', priority: 'system-critical' });
  });

  it('has the priority system-maintenance where the descheduler alone asked', () => {
    expect(made([{ cause: 'Descheduler' }]).spec).toMatchObject({
      cause: 'Descheduler',
      priority: 'system-maintenance',
    });
    expect(made([{ cause: 'Descheduler' }, { cause: 'DrainTaint' }]).spec).toMatchObject({
      cause: 'DrainTaint',
      priority: 'system-critical',
    });
  });

  it('is for the most pressing cause', () => {
    const causes: EvacuationCause[] = [{ cause: 'APIEviction' }, { cause: 'Preemption', deadline: NOW }];
    expect(made(causes).spec.cause).toBe('Preemption');
  });

  it('has no priority where there are none', () => {
    const configuration = { developerConfiguration: { disabledFeatureGates: ['MigrationPriorityQueue'] } };
    expect(made([{ cause: 'APIEviction' }], [], configuration).spec.priority).toBeUndefined();
  });

  it('has the same name whoever makes it, and another one for each try, node and guest', () => {
    const causes: EvacuationCause[] = [{ cause: 'APIEviction' }];
    const first = made(causes);
    expect(made([{ cause: 'DrainTaint' }]).metadata.name).toBe(first.metadata.name);
    const tries: VirtualMachineInstanceMigration[] = [];
    for (let count = 0; count < 5; count++) {
      const next = made(causes, tries.toReversed());
      tries.push({ ...next, metadata: { ...next.metadata, uid: `try-${count}` } });
    }
    const guest = guestWith('LiveMigrate', marked(...causes));
    const elsewhere = { ...guest, status: { ...guest.status, nodeName: 'node-b' } };
    const another = { ...guest, metadata: { ...guest.metadata, uid: 'guest-2' } };
    const names = [
      ...tries.map(({ metadata }) => metadata.name),
      ...[elsewhere, another].map((each) => evacuationMigration(each, [], {}).metadata.name),
    ];
    expect(new Set(names).size).toBe(7);
    // Those that are forgotten are in nobody's way.
    expect(made(causes, tries.slice(1)).metadata.name).toBe(first.metadata.name);
  });
});
