import { type CopyState, isOver, isPostCopy } from '../../api/copy-state.ts';
import { errorMessage } from '../../api/error-message.ts';
import { type Clock, sleep } from '../../env/ports.ts';
import { HypervisorError } from '../../hypervisor/hypervisor.ts';
import type { MachineMigration } from '../../hypervisor/migration.ts';
import { bandwidthBytesPerSecond } from './copy-method.ts';
import type { CopyFailure, CopyHooks, CopyOptions } from './copy-options.ts';

/** What a copy asks of its machine, in more than one word. */

const END_POLL_MS = 20;
/** QEMU needs milliseconds to give up, also where its link is dead. */
const END_WAIT_MS = 10_000;

/** Begins with the disks, on a machine that may have copies of them left from before. */
export async function startMirrors(migration: MachineMigration, options: CopyOptions): Promise<void> {
  const { disks, credentials, opened, road } = options;
  const { host, disksPort } = opened;
  if (disksPort === undefined) throw new HypervisorError('Refused', 'the target does not wait for disks');
  await migration.dropMirrors();
  await migration.startMirrors({
    target: road?.disks ?? { host, port: disksPort },
    tls: credentials?.tls,
    disks,
    bandwidthBytesPerSecond: bandwidthBytesPerSecond(options.options),
  });
}

/** Begins with memory. The machine has read its credentials then, and needs them no more. */
export async function sendMemory(
  migration: MachineMigration,
  { opened, method, options, credentials, road }: CopyOptions,
  downtimeMs: number,
): Promise<void> {
  const { host, memoryPort, isPostCopyPossible } = opened;
  await migration.start({
    target: road?.memory ?? { host, port: memoryPort },
    tls: credentials?.tls,
    allowsPostCopy: method.allowsPostCopy && isPostCopyPossible,
    channels: method.channels,
    allowsAutoConverge: options.allowAutoConverge,
    limits: { bandwidthBytesPerSecond: bandwidthBytesPerSecond(options), downtimeMs },
  });
}

/** Both sides of a post-copy let go of a link that may be dead, then meet again. */
export async function recover(migration: MachineMigration, hooks: CopyHooks, signal: AbortSignal): Promise<void> {
  try {
    await migration.pausePostCopy();
  } catch (error) {
    // It has let go already.
    if (!isRefused(error)) throw error;
  }
  await migration.resumePostCopy(await hooks.listenAgain(signal));
}

/** Makes the machine copy no more. Answers the state that it ended in; rejects where it cannot, or does not. */
export async function giveUp(migration: MachineMigration, clock: Clock): Promise<CopyState> {
  await migration.cancel();
  for (let waitedMs = 0; ; waitedMs += END_POLL_MS) {
    const { state } = await migration.progress();
    if (isOver(state) || state === 'none') return state;
    if (isPostCopy(state)) throw new HypervisorError('Refused', 'the guest has gone over already');
    if (waitedMs >= END_WAIT_MS) throw new HypervisorError('Unreachable', `the copy does not end: it is ${state}`);
    await sleep(clock, END_POLL_MS);
  }
}

/** Whether the machine said no, rather than nothing. */
export function isRefused(error: unknown): boolean {
  return error instanceof HypervisorError && error.code === 'Refused';
}

/** What a command of the machine that failed makes of a copy. */
export function failureOf(error: unknown): CopyFailure {
  const isUnreachable = error instanceof HypervisorError && error.code === 'Unreachable';
  return { reason: isUnreachable ? 'TargetUnreachable' : 'CopyFailed', message: errorMessage(error) };
}
