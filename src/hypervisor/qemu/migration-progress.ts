import type { CopyState } from '../../api/copy-state.ts';
import { HypervisorError } from '../hypervisor.ts';
import type { MemoryProgress, MigrationEvent, MigrationProgress } from '../migration.ts';
import { isRecord, type QmpEvent } from './qmp-message.ts';

/** QEMU's words about migrations in ours. */

const STATES: ReadonlyMap<unknown, CopyState> = new Map([
  // A machine that has never migrated says nothing.
  [undefined, 'none'],
  ['none', 'none'],
  ['setup', 'setup'],
  ['wait-unplug', 'setup'],
  ['active', 'active'],
  ['pre-switchover', 'pre-switchover'],
  ['device', 'device'],
  ['postcopy-active', 'postcopy-active'],
  ['postcopy-paused', 'postcopy-paused'],
  ['postcopy-recover-setup', 'postcopy-recover'],
  ['postcopy-recover', 'postcopy-recover'],
  ['completed', 'completed'],
  ['failed', 'failed'],
  ['cancelling', 'cancelling'],
  ['cancelled', 'cancelled'],
]);

const PAGE_BYTES = 4096;
const BYTES_PER_MEGABIT = 125_000;
/** What the jobs that copy disks are called, before the name of the disk. */
export const MIRROR_PREFIX = 'mirror-';

/** The answer to `query-migrate`. */
export function migrationProgress(answer: unknown): MigrationProgress {
  const state = isRecord(answer) ? STATES.get(answer['status']) : undefined;
  if (!isRecord(answer) || !state)
    throw new HypervisorError('Unreachable', `QEMU says of its migration what is not known: ${JSON.stringify(answer)}`);
  const { 'error-desc': message, ram } = answer;
  return {
    state,
    message: typeof message === 'string' ? message : undefined,
    memory: isRecord(ram) ? memoryProgress(ram) : undefined,
    downtimeMs: number(answer['downtime']) ?? number(answer['expected-downtime']),
    totalMs: number(answer['total-time']) ?? 0,
    throttlePercent: number(answer['cpu-throttle-percentage']) ?? 0,
  };
}

function memoryProgress(ram: Readonly<Record<string, unknown>>): MemoryProgress {
  const field = (name: string): number => number(ram[name]) ?? 0;
  return {
    totalBytes: field('total'),
    remainingBytes: field('remaining'),
    transferredBytes: field('transferred'),
    bytesPerSecond: field('mbps') * BYTES_PER_MEGABIT,
    dirtyBytesPerSecond: field('dirty-pages-rate') * (number(ram['page-size']) ?? PAGE_BYTES),
    passes: field('dirty-sync-count'),
    requestedPages: field('postcopy-requests'),
  };
}

function number(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}

/** The event about a migration that others care about; undefined for the rest. */
export function migrationEvent({ name, data, atMs }: QmpEvent): MigrationEvent | undefined {
  switch (name) {
    case 'MIGRATION': {
      const state = STATES.get(data['status']);
      return state && { kind: 'migration', state, atMs };
    }
    case 'MIGRATION_PASS':
      return { kind: 'migration-pass', pass: number(data['pass']) ?? 0, atMs };
    case 'BLOCK_JOB_READY':
    case 'BLOCK_JOB_COMPLETED':
    case 'BLOCK_JOB_CANCELLED':
      return String(data['device']).startsWith(MIRROR_PREFIX) ? { kind: 'mirror', atMs } : undefined;
    default:
      return undefined;
  }
}
