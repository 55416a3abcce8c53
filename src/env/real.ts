import { randomBytes, randomUUID } from 'node:crypto';
import { pino } from 'pino';
import type { Clock, Env, LogFields, Logger, Random } from './ports.ts';

/** The longest delay that Node's timers know, 25 days. */
const DELAY_MS_MAX = 2 ** 31 - 1;

/** The machine's own clock. */
export const realClock: Clock = {
  now: () => Date.now(),
  setTimer(callback, delayMs) {
    let timeout: NodeJS.Timeout;
    // Node takes a longer delay for none at all, and would call back at once.
    const wait = (leftMs: number): void => {
      timeout =
        leftMs > DELAY_MS_MAX
          ? setTimeout(() => wait(leftMs - DELAY_MS_MAX), DELAY_MS_MAX)
          : setTimeout(callback, leftMs);
    };
    wait(delayMs);
    return { cancel: () => clearTimeout(timeout) };
  },
};

/** Cryptographically strong randomness. */
export const realRandom: Random = {
  number: () => randomBytes(6).readUIntBE(0, 6) / 2 ** 48,
  bytes: (count) => randomBytes(count),
  uuid: () => randomUUID(),
};

/** JSON lines on standard error, so that standard output stays the user's. */
export function realLogger(level: string, fields: LogFields = {}): Logger {
  const wrap = (logger: ReturnType<typeof pino>): Logger => ({
    debug: (message, extra) => logger.debug(extra ?? {}, message),
    info: (message, extra) => logger.info(extra ?? {}, message),
    warn: (message, extra) => logger.warn(extra ?? {}, message),
    error: (message, extra) => logger.error(extra ?? {}, message),
    child: (more) => wrap(logger.child({ ...more })),
  });
  const destination = pino.destination({ dest: 2, sync: true });
  // Nobody is worse off for a log that cannot be written, and there is nowhere to say so.
  destination.on('error', () => undefined);
  return wrap(pino({ level, base: { ...fields } }, destination));
}

/** The real world, for processes that run in it. */
export function realEnv(logLevel = 'info'): Env {
  return { clock: realClock, random: realRandom, log: realLogger(logLevel) };
}
