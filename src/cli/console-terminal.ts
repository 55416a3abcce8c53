import type { Readable, Writable } from 'node:stream';
import { WebSocket } from 'ws';
import type { Clock } from '../env/ports.ts';

/** The terminal, or whatever stands in its place. */
export interface ConsoleStreams {
  readonly input: Readable & { readonly isTTY?: boolean; setRawMode?(isRaw: boolean): unknown };
  readonly output: Writable;
  readonly errors: Writable;
}

/** How a connection ended. */
export interface Closure {
  readonly code: number;
  readonly reason: string;
}

/** Ctrl+]. */
const ESCAPE = 0x1d;
/** How long answers to what was piped in may take, once all of it has been sent. */
const LINGER_MS = 2_000;
/** What may be typed while there is no connection; nobody types more in the dark. */
const TYPED_BYTES_MAX = 4 * 1024;

/** Whoever sits at a console: what is typed goes to the connection of the moment, and waits where there is none. */
export class ConsoleTerminal {
  readonly #streams: ConsoleStreams;
  readonly #clock: Clock;
  readonly #leaving = new AbortController();
  #socket: WebSocket | undefined;
  #typed: Uint8Array[] = [];
  #sentBytes = 0;

  /** From here on what is typed is for the guest. */
  constructor(streams: ConsoleStreams, clock: Clock) {
    this.#streams = streams;
    this.#clock = clock;
    const { input } = streams;
    if (input.isTTY === true) input.setRawMode?.(true);
    input.on('data', this.#onInput);
    input.once('end', this.#onEnd);
  }

  /** Aborted once this side has had enough. */
  get left(): AbortSignal {
    return this.#leaving.signal;
  }

  /** Tells the person something, on a line of its own. */
  note(text: string): void {
    const end = this.#streams.input.isTTY ? '\r\n' : '\n';
    this.#streams.errors.write(`${text.replaceAll('\n', end)}${end}`);
  }

  /** Carries bytes both ways until either side ends it. */
  attach(socket: WebSocket): Promise<Closure> {
    const { output } = this.#streams;
    this.#socket = socket;
    socket.on('message', (data: Buffer) => {
      if (this.left.aborted) return;
      if (!output.write(data)) {
        socket.pause();
        output.once('drain', () => socket.resume());
      }
    });
    for (const bytes of this.#typed.splice(0)) this.#send(bytes);
    if (this.left.aborted) socket.close(1000);
    return new Promise((resolve) => {
      socket.once('error', () => undefined);
      socket.once('close', (code, reason) => {
        this.#socket = undefined;
        resolve({ code, reason: reason.toString('utf8') });
      });
    });
  }

  /** What is typed from here on is the shell's. */
  release(): void {
    const { input } = this.#streams;
    input.off('data', this.#onInput);
    input.off('end', this.#onEnd);
    if (input.isTTY === true) input.setRawMode?.(false);
    input.pause();
  }

  readonly #onInput = (bytes: Buffer): void => {
    const end = bytes.indexOf(ESCAPE);
    this.#send(end < 0 ? bytes : bytes.subarray(0, end));
    if (end >= 0) this.#leave();
  };

  /** Who pipes nothing in wants to look on; who pipes something in wants to see what comes of it. */
  readonly #onEnd = (): void => {
    if (this.#sentBytes > 0) this.#clock.setTimer(this.#leave, LINGER_MS);
  };

  readonly #leave = (): void => {
    this.#leaving.abort();
    this.#socket?.close(1000);
  };

  #send(bytes: Uint8Array): void {
    this.#sentBytes += bytes.length;
    if (bytes.length === 0) return;
    if (this.#socket?.readyState === WebSocket.OPEN) return this.#socket.send(bytes);
    const keptBytes = this.#typed.reduce((sum, { length }) => sum + length, 0);
    if (keptBytes + bytes.length <= TYPED_BYTES_MAX) this.#typed.push(bytes);
  }
}
