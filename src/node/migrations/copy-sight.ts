import type { CopyState } from '../../api/copy-state.ts';
import { errorMessage } from '../../api/error-message.ts';
import { type Clock, sleep } from '../../env/ports.ts';
import type { Machine } from '../../hypervisor/hypervisor.ts';
import type { MigrationProgress, Mirror } from '../../hypervisor/migration.ts';
import type { CopyContext, CopyFailure } from './copy-options.ts';

/** A machine whose guest has gone says so within milliseconds after it says that the copy is over. */
const END_SEEN_MS = 1000;
const END_POLL_MS = 50;

/** What a copy looks like from outside. */
export interface CopySight {
  /** Undefined where the machine does not say. */
  readonly seen: MigrationProgress | undefined;
  /** Of disks that are still copied. */
  readonly mirrors: readonly Mirror[];
}

/** Looks at memory and disks once. What the machine says of memory before that was begun is of an earlier copy. */
export async function lookAt(context: CopyContext, isBeforeMemory: boolean): Promise<CopySight> {
  const { env, machine } = context;
  try {
    const progress = await machine.migration.progress();
    const seen: MigrationProgress = isBeforeMemory
      ? { ...progress, state: 'none', memory: undefined, throttlePercent: 0 }
      : progress;
    return { seen, mirrors: copiesDisks(context, seen.state) ? await machine.migration.mirrors() : [] };
  } catch (error) {
    // The monitor knows for how long that may be so.
    env.log.debug('a machine does not tell of its migration', { error: errorMessage(error) });
    return { seen: undefined, mirrors: [] };
  }
}

/**
 * Whether a copy that a machine says to be over is the one by which its own guest came: after one from here the guest stands
 * still for good, though it may take a moment until the machine says so.
 */
export async function isOfEarlierCopy(machine: Machine, clock: Clock): Promise<boolean> {
  for (let waitedMs = 0; ; waitedMs += END_POLL_MS) {
    const status = await machine.status();
    if (status !== 'paused') return status !== 'finished-migrate';
    if (waitedMs >= END_SEEN_MS) return true;
    await sleep(clock, END_POLL_MS);
  }
}

/** Why a disk is not copied that should be; undefined where all are. */
export function mirrorFailure(
  context: CopyContext,
  state: CopyState,
  mirrors: readonly Mirror[],
): CopyFailure | undefined {
  const failed = mirrors.find((mirror) => mirror.state === 'failed');
  const isGone = copiesDisks(context, state) && mirrors.length < context.disks.length;
  if (!failed && !isGone) return undefined;
  return { reason: 'MirrorFailed', message: `a disk cannot be copied: ${failed?.message ?? 'its copy is gone'}` };
}

function copiesDisks({ disks }: CopyContext, state: CopyState): boolean {
  return disks.length > 0 && (state === 'none' || state === 'setup' || state === 'active');
}
