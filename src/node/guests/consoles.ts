import type { Connection, ConnectionHandlers } from '../../env/ports.ts';
import type { Machine } from '../../hypervisor/hypervisor.ts';

/** Serial consoles, each for one at a time: who comes later takes it over. */
export class Consoles {
  /** How to end what is open, by pod. */
  readonly #open = new Map<string, () => Promise<void>>();
  /** Whoever comes waits until all before have had their turn. */
  readonly #turns = new Map<string, Promise<void>>();

  /** Opens the console of a pod's machine; whoever had it hears that it is closed. */
  open(podUID: string, machine: Machine, handlers: ConnectionHandlers): Promise<Connection> {
    const turn = (this.#turns.get(podUID) ?? Promise.resolve()).then(() => this.#takeOver(podUID, machine, handlers));
    void this.#queue(podUID, turn.then(noop, noop));
    return turn;
  }

  async #queue(podUID: string, settled: Promise<void>): Promise<void> {
    this.#turns.set(podUID, settled);
    await settled;
    if (this.#turns.get(podUID) === settled) this.#turns.delete(podUID);
  }

  async #takeOver(podUID: string, machine: Machine, handlers: ConnectionHandlers): Promise<Connection> {
    await this.#open.get(podUID)?.();
    let onClosed = noop;
    const closed = new Promise<void>((resolve) => (onClosed = resolve));
    const connection = await machine.openConsole({
      data: (bytes) => handlers.data(bytes),
      closed: (error) => {
        if (this.#open.get(podUID) === end) this.#open.delete(podUID);
        onClosed();
        handlers.closed(error);
      },
    });
    const end = async (): Promise<void> => {
      connection.close();
      await closed;
    };
    this.#open.set(podUID, end);
    return connection;
  }
}

const noop = (): void => undefined;
