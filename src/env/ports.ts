/**
 * The outside world as ports. Everything below this room receives time, chance, logging, sockets, processes and files
 * through these interfaces, so that the simulation can run the very same code in virtual time from one seed.
 */

/** A timer that has been set; cancelling one that already fired does nothing. */
export interface Timer {
  cancel(): void;
}

/** Wall-clock time and timers. */
export interface Clock {
  /** Milliseconds since the Unix epoch. */
  now(): number;
  /** Calls back once, `delayMs` from now. */
  setTimer(callback: () => void, delayMs: number): Timer;
}

/** Chance: unpredictable in production, seeded in the simulation. */
export interface Random {
  /** A number in [0, 1). */
  number(): number;
  bytes(count: number): Uint8Array;
  /** A version 4 UUID. */
  uuid(): string;
}

export type LogFields = Readonly<Record<string, unknown>>;

/** Structured logging. Callers never pass secrets; there is no redaction behind this port. */
export interface Logger {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  /** A logger that adds these fields to every line. */
  child(fields: LogFields): Logger;
}

/** What one side of a connection hears. */
export interface ConnectionHandlers {
  data(bytes: Uint8Array): void;
  /** Called once, after everything else; the error says what broke the connection, where something did. */
  closed(error?: Error): void;
}

/** A two-way stream of bytes. */
export interface Connection {
  /** Takes the bytes at once and sends them in order; what is written after the end goes nowhere. */
  write(bytes: Uint8Array | string): void;
  /** Ends the connection without waiting for anything; `closed` is heard nevertheless. */
  close(): void;
}

/** Reaches sockets on this host. */
export interface Connector {
  /** Connects to a unix socket. Rejects where nobody listens; handlers hear nothing before it resolves. */
  connectUnix(path: string, handlers: ConnectionHandlers): Promise<Connection>;
}

/** What a component needs from the outside world. */
export interface Env {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
}

/** Resolves after `delayMs`, or as soon as the signal aborts; it never rejects. */
export function sleep(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const timer = clock.setTimer(done, delayMs);
    function done(): void {
      timer.cancel();
      signal?.removeEventListener('abort', done);
      resolve();
    }
    signal?.addEventListener('abort', done, { once: true });
  });
}
