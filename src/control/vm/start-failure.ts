import type { KubeVirtCondition } from '../../api/kubevirt/condition.ts';
import { effectiveRunStrategy } from '../../api/kubevirt/run-strategy.ts';
import type { VirtualMachine, VirtualMachineStatus } from '../../api/kubevirt/virtual-machine.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import { formatTime } from '../../api/meta.ts';
import type { Env } from '../../env/ports.ts';
import { findCondition } from '../../kube/conditions.ts';
import { isFinal, isWaiting } from './decide.ts';

/** Guests that end before they ever ran are not started again at once, but after delays that grow. */

type StartFailure = VirtualMachineStatus['startFailure'];

const DELAY_SECONDS_MIN = 10;
const DELAY_SECONDS_MAX = 300;

/** After how many seconds to try it again: ten for the first, growing with the square, and up to a half more by chance. */
export function retryDelaySeconds(failCount: number, random: Env['random']): number {
  const base = DELAY_SECONDS_MIN * Math.max(1, failCount) ** 2;
  return Math.min(DELAY_SECONDS_MAX, base + Math.floor(random.number() * (base / 2 + 1)));
}

/** What the machine's status says of failures once this guest has been looked at. Each guest counts once. */
export function startFailureAfter(
  machine: VirtualMachine,
  guest: VirtualMachineInstance | undefined,
  env: Pick<Env, 'clock' | 'random'>,
): StartFailure {
  const known = machine.status?.startFailure;
  const strategy = effectiveRunStrategy(machine.spec);
  if (strategy !== 'Always' && strategy !== 'RerunOnFailure' && strategy !== 'Once') return undefined;
  if (!guest) return known;
  if (hasRun(guest)) return undefined;
  const { uid } = guest.metadata;
  // One that only waited for a guest to come was not to start.
  if (!isFinal(guest) || isWaiting(guest) || known?.lastFailedVMIUID === uid) return known;
  const consecutiveFailCount = (known?.consecutiveFailCount ?? 0) + 1;
  const delayMs = retryDelaySeconds(consecutiveFailCount, env.random) * 1000;
  return {
    consecutiveFailCount,
    ...(uid === undefined ? {} : { lastFailedVMIUID: uid }),
    retryAfterTimestamp: formatTime(env.clock.now() + delayMs),
  };
}

const CRASH_LOOP = 'CrashLoopBackOff';

/** Why a machine's guests do not start, for as long as none has: as the last one told it. */
export function crashLoopFailure(
  machine: VirtualMachine,
  guest: VirtualMachineInstance | undefined,
  startFailure: StartFailure,
): Pick<KubeVirtCondition, 'reason' | 'message'> | undefined {
  if (!startFailure?.consecutiveFailCount) return undefined;
  const told = guest && isFinal(guest) ? findCondition(guest.status?.conditions, 'Synchronized') : undefined;
  if (told?.status === 'False')
    return {
      reason: CRASH_LOOP,
      message: `the guest ended before it ran: ${told.reason ?? ''}: ${told.message ?? ''}`,
    };
  const known = findCondition(machine.status?.conditions, 'Failure');
  if (known?.reason === CRASH_LOOP) return { reason: CRASH_LOOP, message: known.message ?? '' };
  const { name = '' } = machine.metadata;
  return {
    reason: CRASH_LOOP,
    message: `the guest ended before it ran; 'kubectl events --for vmi/${name}' may tell more`,
  };
}

function hasRun({ status }: VirtualMachineInstance): boolean {
  return (
    status?.phase === 'Running' || (status?.phaseTransitionTimestamps ?? []).some(({ phase }) => phase === 'Running')
  );
}
