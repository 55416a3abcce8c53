import { type MigrationProgress, progressSummary } from '../../api/kubevirt/migration-progress.ts';
import { formatTime } from '../../api/meta.ts';
import type { Observation } from './monitor.ts';

/** What the status of a guest says of its copy, as it was seen at this time. */
export function progressStatus({ monitor, percent, estimate }: Observation, epochMs: number): MigrationProgress {
  const { memory, disks } = monitor.sample ?? {};
  const progress: Omit<MigrationProgress, 'summary'> = {
    percent,
    ...seconds('secondsLeft', estimate.leftMs, Math.round),
    ...seconds('secondsLeftMin', estimate.minMs, Math.floor),
    ...seconds('secondsLeftMax', estimate.maxMs, Math.ceil),
    iteration: memory?.passes ?? 0,
    totalBytes: (memory?.totalBytes ?? 0) + (disks?.totalBytes ?? 0),
    transferredBytes: (memory?.transferredBytes ?? 0) + (disks?.copiedBytes ?? 0),
    remainingBytes: (memory?.remainingBytes ?? 0) + Math.max(0, (disks?.totalBytes ?? 0) - (disks?.copiedBytes ?? 0)),
    throughputBytesPerSecond: Math.round(monitor.rates?.sentBytesPerSecond ?? 0),
    dirtyRateBytesPerSecond: Math.round(memory?.dirtyBytesPerSecond ?? 0),
    time: formatTime(epochMs),
  };
  return { ...progress, summary: progressSummary(progress) };
}

/** Absent where it is unknown. */
function seconds<Field extends string>(
  field: Field,
  milliseconds: number | undefined,
  round: (value: number) => number,
): { readonly [field in Field]?: number } {
  if (milliseconds === undefined) return {};
  return { [field]: round(milliseconds / 1000) } as { readonly [field in Field]: number };
}
