import { Counter, Histogram, type Registry } from 'prom-client';
import { MIGRATION_CAUSES } from '../../api/kubevirt/migration-cause.ts';
import type { VirtualMachineInstanceMigration } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { FAILURE_REASONS, type MigrationFailure } from '../../migration/phase/failure.ts';
import { PHASE_SECONDS_BUCKETS } from '../metrics/phase-times.ts';

/** From a pause that nobody notices up to one that ends connections. */
const DOWNTIME_SECONDS_BUCKETS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1, 2, 5, 10, 30, 60];

/** How migrations ended, counted when that is written down. */
export class OutcomeMetrics {
  readonly #finished: Counter<'result' | 'reason' | 'cause'>;
  readonly #downtimes: Histogram<'mode'>;
  readonly #durations: Histogram<'result'>;

  constructor(registry: Registry) {
    const registers = [registry];
    this.#finished = new Counter({
      name: 'godwit_migrations_finished_total',
      help: 'Migrations that ended, by how, by the reason of those that failed, and by why their guests were to move.',
      labelNames: ['result', 'reason', 'cause'],
      registers,
    });
    this.#downtimes = new Histogram({
      name: 'godwit_migration_downtime_seconds',
      help: 'For how long guests stood still when they went over, by how they moved.',
      labelNames: ['mode'],
      buckets: DOWNTIME_SECONDS_BUCKETS,
      registers,
    });
    this.#durations = new Histogram({
      name: 'godwit_migration_copy_duration_seconds',
      help: 'How long copies took from their beginning to their end, by how that was.',
      labelNames: ['result'],
      buckets: PHASE_SECONDS_BUCKETS,
      registers,
    });
    // A first failure is an increase only of something that was there before.
    for (const cause of MIGRATION_CAUSES) {
      this.#finished.inc({ result: 'succeeded', reason: '', cause }, 0);
      for (const reason of FAILURE_REASONS) this.#finished.inc({ result: 'failed', reason, cause }, 0);
    }
  }

  /** A migration has ended, which was not over before. */
  finished(
    { spec, status }: Pick<VirtualMachineInstanceMigration, 'spec' | 'status'>,
    failure: MigrationFailure | undefined,
  ): void {
    const result = status?.phase === 'Succeeded' ? 'succeeded' : 'failed';
    const { downtimeMs, mode, startTimestamp, endTimestamp } = status?.migrationState ?? {};
    this.#finished.inc({ result, reason: failure?.reason ?? '', cause: spec.cause ?? '' });
    if (result === 'succeeded' && downtimeMs !== undefined)
      this.#downtimes.observe({ mode: mode ?? '' }, downtimeMs / 1000);
    const tookMs = Date.parse(endTimestamp ?? '') - Date.parse(startTimestamp ?? '');
    if (!Number.isNaN(tookMs)) this.#durations.observe({ result }, Math.max(0, tookMs) / 1000);
  }
}
