/**
 * The outside world as ports. Everything below this room receives time, chance and logging through
 * these interfaces, so that the simulation can run the very same code in virtual time from one seed.
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
