import type { MonitorOptions } from './monitor-options.ts';

/** How long the guest may stand still at the end, which grows step by step where that was asked for. */
export interface Downtime {
  /** What the hypervisor was told last; undefined before the first time. */
  readonly limitMs: number | undefined;
  /** When the last step was made, or the first became possible. */
  readonly steppedAtMs: number | undefined;
}

/** Before the hypervisor was told anything. */
export const NO_DOWNTIME: Downtime = { limitMs: undefined, steppedAtMs: undefined };

/** What a guest may stand still for at first where no steps are asked for; as QEMU has it. */
const FIRST_LIMIT_MS = 300;

/** The limit to begin with. */
export function firstDowntimeMs({ downtimeSteps, downtimeMsMax }: MonitorOptions): number {
  return Math.min(downtimeSteps?.initialMs ?? FIRST_LIMIT_MS, downtimeMsMax);
}

/** Notes when the pass is reached from which steps are made: the first comes one cooldown after that. */
export function awaitSteps(before: Downtime, atMs: number, pass: number, options: MonitorOptions): Downtime {
  const isReached = options.downtimeSteps !== undefined && pass > options.downtimeSteps.startAfterPass;
  return isReached && before.steppedAtMs === undefined ? { ...before, steppedAtMs: atMs } : before;
}

/** The next limit; undefined while it is not yet time for it, or when there is none. */
export function nextDowntimeMs(downtime: Downtime, atMs: number, options: MonitorOptions): number | undefined {
  const { downtimeSteps, downtimeMsMax } = options;
  const { limitMs, steppedAtMs } = downtime;
  if (!downtimeSteps || limitMs === undefined || steppedAtMs === undefined || limitMs >= downtimeMsMax)
    return undefined;
  if (atMs - steppedAtMs < downtimeSteps.cooldownMs) return undefined;
  const stepMs = (downtimeMsMax - firstDowntimeMs(options)) / Math.max(1, downtimeSteps.steps);
  return Math.min(downtimeMsMax, Math.ceil(limitMs + stepMs));
}
