import type { CopyState } from '../../api/copy-state.ts';
import { errorMessage } from '../../api/error-message.ts';
import type { MigrationProgress, Mirror } from '../../hypervisor/migration.ts';
import type { CopyContext, CopyFailure } from './copy-options.ts';

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
