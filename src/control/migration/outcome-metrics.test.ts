import { Registry } from 'prom-client';
import { describe, expect, it } from 'vitest';
import type { VirtualMachineInstanceMigration } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { failure } from '../../migration/phase/failure.ts';
import { OutcomeMetrics } from './outcome-metrics.ts';

type Ended = Required<Pick<VirtualMachineInstanceMigration, 'spec' | 'status'>>;

function migration(status: Ended['status']): Ended {
  return { spec: { vmiName: 'web', cause: 'User' }, status };
}

const TIMES = { startTimestamp: '2026-01-01T00:00:00Z', endTimestamp: '2026-01-01T00:00:07Z' };

describe('how migrations ended', () => {
  it('is counted by result, reason and cause, with all that may come at nought', async () => {
    const registry = new Registry();
    const outcomes = new OutcomeMetrics(registry);
    const state = { ...TIMES, downtimeMs: 40, mode: 'PreCopy' as const };
    outcomes.finished(migration({ phase: 'Succeeded', migrationState: state }), undefined);
    outcomes.finished(migration({ phase: 'Failed', migrationState: TIMES }), failure('TargetPodDown'));
    outcomes.finished(migration({ phase: 'Failed' }), failure('Canceled'));
    const lines = (await registry.metrics()).split('\n');
    const of = (prefix: string): string[] => lines.filter((line) => line.startsWith(prefix));
    expect(of('godwit_migrations_finished_total').filter((line) => !line.endsWith(' 0'))).toEqual([
      'godwit_migrations_finished_total{result="succeeded",reason="",cause="User"} 1',
      'godwit_migrations_finished_total{result="failed",reason="Canceled",cause="User"} 1',
      'godwit_migrations_finished_total{result="failed",reason="TargetPodDown",cause="User"} 1',
    ]);
    expect(lines).toContain(
      'godwit_migrations_finished_total{result="failed",reason="PeerLost",cause="CrossCluster"} 0',
    );
    expect(of('godwit_migration_downtime_seconds_sum')).toEqual([
      'godwit_migration_downtime_seconds_sum{mode="PreCopy"} 0.04',
    ]);
    expect(of('godwit_migration_copy_duration_seconds_sum')).toEqual([
      'godwit_migration_copy_duration_seconds_sum{result="succeeded"} 7',
      'godwit_migration_copy_duration_seconds_sum{result="failed"} 7',
    ]);
  });
});
