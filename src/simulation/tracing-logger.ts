import type { LogFields, Logger } from '../env/ports.ts';
import type { Tracer } from './trace.ts';

export interface TracingLoggerOptions {
  readonly component: string;
  readonly trace: Tracer;
  /** Told when something is logged that only a bug explains. */
  readonly onBug: (message: string) => void;
}

/** What the server and the controllers log when they were thrown something that no careful code throws. */
const BUGS: ReadonlySet<string> = new Set(['reconcile has a bug', 'request failed unexpectedly']);

/** A logger that writes warnings and errors into the trace. */
export function tracingLogger(options: TracingLoggerOptions): Logger {
  const { component, trace, onBug } = options;
  const write = (message: string, fields: LogFields = {}): void => {
    // Stacks name files by where they lie on this machine.
    const { stack: _, ...rest } = fields;
    trace.add(component, `says: ${message} ${JSON.stringify(rest)}`);
    if (BUGS.has(message)) onBug(`${component}: ${message}: ${JSON.stringify(fields)}`);
  };
  const logger: Logger = {
    debug: () => undefined,
    info: () => undefined,
    warn: write,
    error: write,
    child: () => logger,
  };
  return logger;
}
