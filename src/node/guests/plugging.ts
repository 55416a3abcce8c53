import { errorMessage } from '../../api/error-message.ts';
import { bootMemoryBytes, bytesOf, memoryRoomOf, pluggedUnits } from '../../api/kubevirt/memory-room.ts';
import { memoryBytesOfPod, socketsOfPod, wantedMemoryBytes, wantedSockets } from '../../api/kubevirt/pod-room.ts';
import type {
  VirtualMachineInstance,
  VirtualMachineInstanceStatus,
} from '../../api/kubevirt/virtual-machine-instance.ts';
import { formatQuantity } from '../../api/quantity.ts';
import type { Machine } from '../../hypervisor/hypervisor.ts';
import type { EventRecorder } from '../../kube/event-recorder.ts';
import type { Logger } from '../../env/ports.ts';
import { isSameRunner } from '../../migration/right-to-run/attempt.ts';
import type { LauncherPod } from './launcher-pod.ts';
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
  readonly fields: Pick<VirtualMachineInstanceStatus, 'currentCPUTopology' | 'memory'>;
  /** When to try again what failed. */
  readonly retryAfterMs?: number;
}

/** Quantities count in these. */
const UNIT = 1_000_000_000n;
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
    const machine = this.#options.machines.get(podUID);
    if (!guest || !pod || !machine || !isPluggable(outcome)) return NOTHING;
    const processors = await this.#try(guest, 'Processor', () => plugProcessors(machine, guest, pod));
    const memory = await this.#try(guest, 'Memory', () => plugMemory(machine, guest, pod));
    const hasFailed = processors === 'failed' || memory === 'failed';
    return {
      fields: {
        ...(processors && processors !== 'failed' ? { currentCPUTopology: processors } : {}),
        ...(memory && memory !== 'failed' ? { memory } : {}),
      },
      ...(hasFailed ? { retryAfterMs: RETRY_MS } : {}),
    };
  }

  async #try<T>(
    guest: VirtualMachineInstance,
    what: 'Processor' | 'Memory',
    plug: () => Promise<T | undefined>,
  ): Promise<T | undefined | 'failed'> {
    const { recorder, log } = this.#options;
    try {
      const plugged = await plug();
      if (plugged) recorder.event(guest, 'Normal', `Successful${what}Plug`, `Plugged in: ${JSON.stringify(plugged)}`);
      return plugged;
    } catch (error) {
      const message = errorMessage(error);
      log.warn('something could not be plugged into a guest', { what, guest: guest.metadata.name, error: message });
      recorder.event(guest, 'Warning', `Failed${what}Plug`, `Error plugging in: ${message}`);
      return 'failed';
    }
  }
}

/** Whether the guest is here, and neither about to leave nor still coming: what is not all there is left as it is. */
function isPluggable({ guest, view, seen }: Outcome): boolean {
  const { rightToRun, migrationState } = guest?.status ?? {};
  const { standing, self } = view;
  const isHere = standing.kind === 'holding' && !standing.mustContinue && isSameRunner(rightToRun?.holder, self);
  const isMoving = standing.kind === 'holding' && standing.reserved !== undefined;
  const isSettled = migrationState === undefined || migrationState.completed === true;
  const isUp = seen.status === 'running' || seen.status === 'paused';
  return isHere && !isMoving && isSettled && isUp;
}

/** What the guest has then; undefined where nothing was to be done. */
async function plugProcessors(
  { processors }: Machine,
  guest: VirtualMachineInstance,
  pod: LauncherPod,
): Promise<VirtualMachineInstanceStatus['currentCPUTopology'] | undefined> {
  const { currentCPUTopology = {} } = guest.status ?? {};
  const { sockets: current = 0, cores = 1, threads = 1 } = currentCPUTopology;
  const sockets = Math.min(wantedSockets(guest), socketsOfPod(pod));
  if (!processors || current === 0 || sockets <= current) return undefined;
  await processors.plug(sockets * (cores || 1) * (threads || 1));
  return { ...currentCPUTopology, sockets };
}

/** Likewise. */
async function plugMemory(
  { memory: pieces }: Machine,
  guest: VirtualMachineInstance,
  pod: LauncherPod,
): Promise<VirtualMachineInstanceStatus['memory'] | undefined> {
  const { memory = {} } = guest.status ?? {};
  const [room, current = 0] = [memoryRoomOf(guest), bytesOf(memory.guestCurrent)];
  const wanted = Math.min(wantedMemoryBytes(guest), memoryBytesOfPod(pod));
  if (!pieces || !room || current === 0 || wanted <= current) return undefined;
  const count = Math.min(room.slots, Math.floor(pluggedUnits(guest, room, wanted)));
  await pieces.plug(count, room.unitBytes);
  const bytes = (bootMemoryBytes(guest) ?? 0) + count * room.unitBytes;
  const amount = formatQuantity({ amount: BigInt(bytes) * UNIT, format: 'BinarySI' });
  return bytes > current ? { ...memory, guestCurrent: amount, guestRequested: amount } : undefined;
}
