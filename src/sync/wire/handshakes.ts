import type { Socket } from 'node:net';

/** What a connection is known by, before anything was said on it. */
type Ends = Pick<Socket, 'remoteAddress' | 'remotePort'>;

interface Waiting {
  readonly socket: Socket;
  readonly address: string;
}

/**
 * Connections on which nobody has said over TLS who it is. Anybody can make as many as they like, and whoever means well
 * says it at once: so of too many the eldest has to go, of the address that has most of them, and all others still get in.
 */
export class Handshakes {
  readonly #max: number;
  /** By their ends, the eldest first. */
  readonly #waiting = new Map<string, Waiting>();

  constructor(max: number) {
    this.#max = max;
  }

  /** Somebody has connected. */
  begin(socket: Socket): void {
    const id = idOf(socket);
    this.#waiting.set(id, { socket, address: socket.remoteAddress ?? '' });
    socket.once('close', () => {
      if (this.#waiting.get(id)?.socket === socket) this.#waiting.delete(id);
    });
    if (this.#waiting.size > this.#max) this.#turnAway();
  }

  /** It is known who this is, or that it is a stranger. */
  end(ends: Ends): void {
    this.#waiting.delete(idOf(ends));
  }

  /** Nobody is waited for any more. */
  stop(): void {
    for (const { socket } of this.#waiting.values()) socket.destroy();
  }

  #turnAway(): void {
    const crowds = new Map<string, Waiting[]>();
    for (const each of this.#waiting.values()) crowds.set(each.address, [...(crowds.get(each.address) ?? []), each]);
    const [eldest] = [...crowds.values()].reduce((most, each) => (each.length > most.length ? each : most), []);
    eldest?.socket.destroy();
  }
}

function idOf({ remoteAddress, remotePort }: Ends): string {
  return `${remoteAddress ?? ''} ${remotePort ?? ''}`;
}
