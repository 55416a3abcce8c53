import type { MigrationProgress, Mirror } from '../../hypervisor/migration.ts';
import type { DisksSample, Sample } from '../../migration/monitor/sample.ts';

/** What the monitor is told of a copy, from what the hypervisor says of memory and of the disks that are copied. */
export function sampleOf(progress: MigrationProgress, mirrors: readonly Mirror[]): Sample {
  const { state, memory, throttlePercent } = progress;
  return {
    state,
    throttlePercent,
    ...(memory ? { memory } : {}),
    ...(mirrors.length > 0 ? { disks: disksSample(mirrors) } : {}),
  };
}

/** What the guest writes to a disk that is whole goes on being copied, and is no work that is left. */
function disksSample(mirrors: readonly Mirror[]): DisksSample {
  const copied = ({ state, copiedBytes, totalBytes }: Mirror): number => (state === 'whole' ? totalBytes : copiedBytes);
  return {
    totalBytes: mirrors.reduce((sum, { totalBytes }) => sum + totalBytes, 0),
    copiedBytes: mirrors.reduce((sum, mirror) => sum + copied(mirror), 0),
  };
}
