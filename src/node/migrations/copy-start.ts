import type { MigrationState } from '../../api/kubevirt/migration-state.ts';
import type { Machine } from '../../hypervisor/hypervisor.ts';
import { firstDecisions } from './copy-decisions.ts';
import type { AdoptOptions, CopyOptions } from './copy-options.ts';
import { CopyWatch } from './copy-watch.ts';

/** With what a copy is watched: from its start, or from where a former agent left it. */

/** `asked` is as the policy has it, `options` as the time that is left allows. */
export async function watchFromStart(
  asked: CopyOptions,
  options: CopyOptions,
  mustStandStill: boolean,
): Promise<CopyWatch> {
  const { env, opened, method, machine } = options;
  const startedAtMs = env.clock.now();
  return new CopyWatch({
    clock: env.clock,
    options: options.options,
    ramBytes: await memoryBytes(machine),
    isPostCopyPossible: method.allowsPostCopy && opened.isPostCopyPossible,
    startedAtMs,
    deadlineMs: options.deadlineMs,
    decisions: firstDecisions(asked.options, method, startedAtMs, asked.deadlineMs?.(), mustStandStill),
    ...(mustStandStill ? { resumed: { pausedAtMs: 0 } } : {}),
  });
}

/** Of a copy that was found: whether its guest was held for it, and how it goes over. */
interface Found {
  readonly isPaused: boolean;
  readonly mode: MigrationState['mode'];
}

/** For a copy that goes on since a former agent began it. */
export async function watchFromNow(
  { known, startedAtMs, env, options, machine, deadlineMs }: AdoptOptions,
  { isPaused, mode }: Found,
): Promise<CopyWatch> {
  const nowMs = env.clock.now();
  const elapsedMs = nowMs - (startedAtMs ?? nowMs);
  return new CopyWatch({
    clock: env.clock,
    options,
    ramBytes: await memoryBytes(machine),
    isPostCopyPossible: true,
    startedAtMs: startedAtMs ?? nowMs,
    deadlineMs,
    resumed: {
      percent: known.progress?.percent ?? 0,
      ...(isPaused ? { pausedAtMs: elapsedMs } : {}),
      ...(mode === 'PostCopy' ? { postCopyAtMs: elapsedMs } : {}),
    },
    decisions: known.decisions ?? [],
  });
}

/** All of the memory that is to be sent. */
async function memoryBytes({ migration, memory }: Machine): Promise<number> {
  return (await migration.ramBytes()) + ((await memory?.pluggedBytes()) ?? 0);
}
