import type { GuestRun } from '../../api/guest-run.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import { ApiError, conflict, notFound } from '../../api/status.ts';
import type { Connection, ConnectionHandlers } from '../../env/ports.ts';
import { HypervisorError, type Machine, type MachineStatus } from '../../hypervisor/hypervisor.ts';
import { virtualMachineInstances } from '../../kube/kubevirt-resources.ts';
import type { JournaledStanding } from '../../migration/right-to-run/journal.ts';
import type { GuestAgentInfo } from '../guest-agent/guest-agent-info.ts';
import type { JournalFile } from '../journal/journal-file.ts';
import { Consoles } from './consoles.ts';
import type { GuestAccess, SerialLog } from './guest-access.ts';
import type { GuestNote, GuestNotes } from './guest-notes.ts';
import type { Machines } from './machines.ts';
import type { Surroundings } from './surroundings.ts';

export interface NodeGuestAccessOptions {
  readonly surroundings: Surroundings;
  readonly machines: Machines;
  readonly notes: GuestNotes;
  /** What the journal says; resolves when there is one, and all notes have been read. */
  readonly journal: () => Promise<Pick<JournalFile, 'vmOf' | 'standing'>>;
  /** Where the machine of a pod writes what its serial port says. */
  readonly serialLogOf: (podUID: string) => string;
}

/** The guests that this node runs, for whoever may ask for them. */
export class NodeGuestAccess implements GuestAccess {
  readonly #options: NodeGuestAccessOptions;
  readonly #consoles = new Consoles();

  constructor(options: NodeGuestAccessOptions) {
    this.#options = options;
  }

  // What becomes of it is seen at the machine, and told in the guest's conditions from there.

  pause(namespace: string, name: string): Promise<void> {
    return this.#command(namespace, name, async (machine, status, isMoving) => {
      if (isMoving) throw moving(name);
      if (status === 'running') await machine.stop();
    });
  }

  unpause(namespace: string, name: string): Promise<void> {
    return this.#command(namespace, name, async (machine, status, isMoving) => {
      if (isMoving) throw moving(name);
      // One whose copy was over when it was given up stands as one that has gone.
      const isHeld = status === 'paused' || status === 'disk-error' || status === 'finished-migrate';
      if (isHeld) await machine.continue();
    });
  }

  softReboot(namespace: string, name: string): Promise<void> {
    return this.#command(namespace, name, async (machine, status) => {
      if (status !== 'running') throw conflict(virtualMachineInstances, name, 'the guest is paused');
      await machine.powerDown();
    });
  }

  reset(namespace: string, name: string): Promise<void> {
    return this.#command(namespace, name, async (machine, status, isMoving) => {
      // One that stands still because it goes over would not be what its target has.
      if (isMoving && status !== 'running') throw moving(name);
      await machine.reset();
    });
  }

  async guestInfo(namespace: string, name: string): Promise<GuestAgentInfo> {
    const { podUID } = await this.#running(namespace, name);
    const { agent } = await this.#options.machines.look(podUID);
    if (typeof agent === 'object') return agent;
    throw conflict(virtualMachineInstances, name, 'the agent inside the guest is not connected');
  }

  async openConsole(namespace: string, name: string, handlers: ConnectionHandlers): Promise<Connection> {
    const { podUID, machine } = await this.#running(namespace, name);
    return this.#consoles.open(podUID, machine, handlers);
  }

  async serialLogs(namespace: string, name: string): Promise<readonly SerialLog[]> {
    const { notes, serialLogOf } = this.#options;
    const stays = await this.#stays(namespace, name);
    return stays.flatMap(({ note: { podUID }, isLive }) => {
      const kept = notes.keptLog(podUID);
      const log = { podUID, path: serialLogOf(podUID), isLive };
      return kept === undefined ? [log] : [{ podUID, path: kept, isLive: false }, log];
    });
  }

  async runs(namespace: string, name: string): Promise<readonly GuestRun[]> {
    const { surroundings } = this.#options;
    const stays = await this.#stays(namespace, name);
    return stays.flatMap(({ note, machineUID, standing, isLive }): GuestRun[] => {
      const { podUID, guestUID, atMs: startedAtMs, end } = note;
      const { kind } = standing;
      if (kind === 'receiving' || kind === 'refused') return [];
      // What it was noted for is about to be journaled.
      if (kind === 'none' && !isLive && !end && surroundings.knowsPod(podUID)) return [];
      const epoch = epochOf(standing);
      const order = machineUID === undefined || epoch === undefined ? {} : { machineUID, epoch };
      return [{ podUID, guestUID, startedAtMs, ...order, isLive }];
    });
  }

  async #stays(namespace: string, name: string): Promise<Stay[]> {
    const { notes } = this.#options;
    const journal = await this.#options.journal();
    return Promise.all(
      notes.of(namespace, name).map(async (note) => {
        const machineUID = journal.vmOf(note.podUID);
        const standing: JournaledStanding =
          machineUID === undefined ? { kind: 'none' } : journal.standing(machineUID, note.podUID);
        return { note, machineUID, standing, isLive: await this.#isLive(note, standing) };
      }),
    );
  }

  /** Whether more may come of a machine: it is there, or is about to be. */
  async #isLive({ podUID, end }: GuestNote, standing: JournaledStanding): Promise<boolean> {
    const { machines } = this.#options;
    if (machines.get(podUID)) return true;
    if (end || standing.kind === 'ended' || standing.kind === 'refused') return false;
    // A machine that a former agent started is known once it has been looked for.
    return standing.kind === 'starting' || (await machines.look(podUID)).fact !== 'dead';
  }

  async #command(
    namespace: string,
    name: string,
    command: (machine: Machine, status: MachineStatus, isMoving: boolean) => Promise<void>,
  ): Promise<void> {
    const { podUID, machine, guest } = await this.#running(namespace, name);
    const journal = await this.#options.journal();
    // Before that its machine may be continued at any time.
    if (guest.status?.phase !== 'Running') throw conflict(virtualMachineInstances, name, 'the guest does not run');
    try {
      const status = await machine.status();
      const standing = journal.standing(journal.vmOf(podUID) ?? '', podUID);
      await command(machine, status, isMoving(guest, standing));
    } catch (error) {
      if (!(error instanceof HypervisorError)) throw error;
      if (error.code === 'Refused') throw conflict(virtualMachineInstances, name, error.message);
      throw new ApiError(503, 'ServiceUnavailable', error.message, undefined, error);
    }
  }

  async #running(
    namespace: string,
    name: string,
  ): Promise<{ podUID: string; machine: Machine; guest: VirtualMachineInstance }> {
    const { surroundings, machines } = this.#options;
    const guest = surroundings.runningGuest(namespace, name);
    const podUID = guest?.status?.rightToRun?.holder?.podUID;
    if (!guest || podUID === undefined) throw notFound(virtualMachineInstances, name);
    // A machine that a former agent started is known once it has been looked for.
    await machines.look(podUID);
    const machine = machines.get(podUID);
    if (!machine) throw conflict(virtualMachineInstances, name, 'the guest does not run');
    return { podUID, machine, guest };
  }
}

interface Stay {
  readonly note: GuestNote;
  readonly machineUID: string | undefined;
  readonly standing: JournaledStanding;
  readonly isLive: boolean;
}

function epochOf(standing: JournaledStanding): number | undefined {
  if ('epoch' in standing) return standing.epoch;
  return standing.kind === 'granted' ? standing.attempt.epoch : undefined;
}

/**
 * Whether a guest is on its way: whether it runs afterwards was settled when its successor was named. The journal is asked
 * too, since the record may be late, or restored from before: a guest that was given away must not be continued.
 */
function isMoving({ status }: VirtualMachineInstance, standing: JournaledStanding): boolean {
  return status?.rightToRun?.successor !== undefined || standing.kind !== 'holding' || standing.reserved !== undefined;
}

function moving(name: string): ApiError {
  return conflict(virtualMachineInstances, name, 'the guest is being moved; try again when it has been');
}
