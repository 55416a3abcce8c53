import { errorMessage } from '../../api/error-message.ts';
import { socketsOfPod, wantedSockets } from '../../api/kubevirt/pod-room.ts';
import type { VirtualMachineInstanceStatus } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { EventRecorder } from '../../kube/event-recorder.ts';
import type { Logger } from '../../env/ports.ts';
import { isSameRunner } from '../../migration/right-to-run/attempt.ts';
import type { Machines } from './machines.ts';
import type { Outcome } from './scene.ts';

export interface PluggingOptions {
  readonly machines: Pick<Machines, 'get'>;
  readonly recorder: Pick<EventRecorder, 'event'>;
  readonly log: Logger;
}

/** What came of it. */
export interface Plugged {
  /** What the guest's status has to say. */
  readonly fields: Pick<VirtualMachineInstanceStatus, 'currentCPUTopology'>;
  /** When to try again what failed. */
  readonly retryAfterMs?: number;
}

/** Nothing changes by itself about a machine that refuses. */
const RETRY_MS = 30_000;
const NOTHING: Plugged = { fields: {} };

/**
 * Plugs into guests what they are to have and their pods were made for: usually once they have come to a pod that was made
 * for more than the one before.
 */
export class Plugging {
  readonly #options: PluggingOptions;

  constructor(options: PluggingOptions) {
    this.#options = options;
  }

  /** Plugs in what is missing, where now is the time. Never rejects. */
  async bring(outcome: Outcome): Promise<Plugged> {
    const { podUID, guest, pod } = outcome;
    const sockets = missingSockets(outcome);
    const { processors } = this.#options.machines.get(podUID) ?? {};
    if (!guest || !pod || sockets === undefined || !processors) return NOTHING;
    const { cores = 1, threads = 1 } = guest.status?.currentCPUTopology ?? {};
    const { recorder, log } = this.#options;
    try {
      await processors.plug(sockets * (cores || 1) * (threads || 1));
    } catch (error) {
      const message = `Error plugging in processors: ${errorMessage(error)}`;
      log.warn('processors could not be plugged in', { pod: podUID, error: errorMessage(error) });
      recorder.event(guest, 'Warning', 'FailedProcessorPlug', message);
      return { fields: {}, retryAfterMs: RETRY_MS };
    }
    recorder.event(
      guest,
      'Normal',
      'SuccessfulProcessorPlug',
      `Plugged in processors: there are ${sockets} sockets now`,
    );
    return { fields: { currentCPUTopology: { ...guest.status?.currentCPUTopology, sockets } } };
  }
}

/** The number of sockets that the guest should have now; undefined where it has them, or is not in the state to get them. */
function missingSockets({ guest, pod, view, seen }: Outcome): number | undefined {
  const { rightToRun, currentCPUTopology, migrationState } = guest?.status ?? {};
  const { sockets: current = 0 } = currentCPUTopology ?? {};
  const { standing, self } = view;
  if (!guest || !pod || current === 0) return undefined;
  const isHere = standing.kind === 'holding' && !standing.mustContinue && isSameRunner(rightToRun?.holder, self);
  const isMoving = standing.kind === 'holding' && standing.reserved !== undefined;
  // What has not all come yet, or is about to leave, is left as it is.
  const isSettled = migrationState === undefined || migrationState.completed === true;
  const isUp = seen.status === 'running' || seen.status === 'paused';
  if (!isHere || isMoving || !isSettled || !isUp) return undefined;
  const sockets = Math.min(wantedSockets(guest), socketsOfPod(pod));
  return sockets > current ? sockets : undefined;
}
