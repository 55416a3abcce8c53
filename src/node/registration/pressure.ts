import { unreachable } from '../../api/unreachable.ts';
import type { HostUsage } from '../../env/ports.ts';

/** What a host can be short of. */
export type PressureType = 'MemoryPressure' | 'DiskPressure' | 'PIDPressure';

/** A condition of a node that says whether the host is short of something. */
export interface Pressure {
  readonly type: PressureType;
  readonly isPressing: boolean;
  readonly reason: string;
  readonly message: string;
}

const MEBIBYTE = 1024 * 1024;
/** As kubelets have it by default. */
const MEMORY_BYTES_MIN = 100 * MEBIBYTE;
/** A tenth of a small disk, as kubelets have it; nobody needs a tenth of a large one to be free. */
const DISK_SHARE_MIN = 0.1;
const DISK_BYTES_MIN = 1024 * MEBIBYTE;
const INODES_SHARE_MIN = 0.05;
const PROCESSES_SHARE_MIN = 0.1;
/** How long it stays said after it was last so: what hovers about a limit must not push pods to and fro. */
const CALM_MS = 5 * 60_000;

const WORDS: { readonly [type in PressureType]: readonly [name: string, what: string] } = {
  MemoryPressure: ['Memory', 'memory'],
  DiskPressure: ['Disk', 'room on its disk'],
  PIDPressure: ['PID', 'process numbers'],
};
const TYPES = Object.keys(WORDS) as PressureType[];

/** Tells pressure from passing peaks; remembers when each was last seen. */
export class PressureGauge {
  readonly #seenMs = new Map<PressureType, number>();

  read(usage: HostUsage, nowMs: number): Pressure[] {
    return TYPES.map((type) => {
      if (isShort(type, usage)) this.#seenMs.set(type, nowMs);
      const seenMs = this.#seenMs.get(type);
      const isPressing = seenMs !== undefined && Math.abs(nowMs - seenMs) < CALM_MS;
      const [name, what] = WORDS[type];
      return {
        type,
        isPressing,
        reason: isPressing ? `Insufficient${name}` : `Sufficient${name}`,
        message: isPressing ? `the node has too little ${what}` : `the node has enough ${what}`,
      };
    });
  }
}

function isShort(type: PressureType, { memoryAvailableBytes, disk, processes }: HostUsage): boolean {
  switch (type) {
    case 'MemoryPressure':
      return memoryAvailableBytes < MEMORY_BYTES_MIN;
    case 'DiskPressure':
      return (
        disk.availableBytes < Math.min(disk.bytes * DISK_SHARE_MIN, DISK_BYTES_MIN) ||
        (disk.inodes > 0 && disk.freeInodes < disk.inodes * INODES_SHARE_MIN)
      );
    case 'PIDPressure':
      return processes.max > 0 && processes.max - processes.running < processes.max * PROCESSES_SHARE_MIN;
    default:
      return unreachable(type);
  }
}
