import { HypervisorError, type MachineProcessors } from '../hypervisor.ts';
import { isRecord } from './qmp-message.ts';

/** Sends a command of QMP. */
export type Execute = (name: string, args?: Readonly<Record<string, unknown>>) => Promise<unknown>;

/** The place of a processor, with what QEMU calls such a one. */
interface Place {
  readonly driver: string;
  readonly socket: number;
  readonly core: number;
  readonly thread: number;
}

/**
 * The processors of a QEMU. They are plugged in in the order of their places: a machine with as many from the start has
 * them at the same ones, and can take the guest over.
 */
export class QemuProcessors implements MachineProcessors {
  readonly #execute: Execute;

  constructor(execute: Execute) {
    this.#execute = execute;
  }

  async count(): Promise<number> {
    const processors = await this.#execute('query-cpus-fast');
    return Array.isArray(processors) ? processors.length : 0;
  }

  async plug(count: number): Promise<void> {
    const missing = count - (await this.count());
    if (missing <= 0) return;
    const free = freePlaces(await this.#execute('query-hotpluggable-cpus'));
    if (free.length < missing)
      throw new HypervisorError(
        'Refused',
        `the machine has room for ${free.length} more processors, not for ${missing}`,
      );
    for (const { driver, socket, core, thread } of free.slice(0, missing)) {
      const place = { 'socket-id': socket, 'core-id': core, 'thread-id': thread };
      await this.#execute('device_add', { driver, id: `processor-${socket}-${core}-${thread}`, ...place });
    }
  }
}

/** The places where there is nothing yet, in order. */
function freePlaces(answer: unknown): readonly Place[] {
  const places = Array.isArray(answer) ? answer.filter(isRecord) : [];
  return places
    .filter((each) => each['qom-path'] === undefined)
    .map((each) => placeOf(each))
    .toSorted((a, b) => a.socket - b.socket || a.core - b.core || a.thread - b.thread);
}

function placeOf({ type, props }: Record<string, unknown>): Place {
  const at = isRecord(props) ? props : {};
  const number = (name: string): number => (typeof at[name] === 'number' ? at[name] : 0);
  return { driver: String(type), socket: number('socket-id'), core: number('core-id'), thread: number('thread-id') };
}
