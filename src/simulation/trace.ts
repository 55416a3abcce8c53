import { createHash } from 'node:crypto';

/** How many of the last lines are kept. */
const LINES_KEPT_MAX = 4096;
/** Lines that are hashed in one go. */
const BATCH_LINES = 512;

export interface TraceOptions {
  /** Milliseconds since the start of the run. */
  readonly elapsedMs: () => number;
  /** Told every line as it is written, for whoever wants the whole. */
  readonly onLine?: ((line: string) => void) | undefined;
}

/** Where lines of a trace go. */
export type Tracer = Pick<Trace, 'add'>;

/**
 * What was seen of a run: one line for each request, fault, commit and decision, with its virtual time and who it is
 * about. It keeps the last lines and a hash of all, so that two runs can be told apart however long they are.
 */
export class Trace {
  readonly #options: TraceOptions;
  readonly #hash = createHash('sha256');
  #batch: string[] = [];
  #lines: string[] = [];
  #count = 0;

  constructor(options: TraceOptions) {
    this.#options = options;
  }

  get count(): number {
    return this.#count;
  }

  add(component: string, text: string): void {
    const seconds = (this.#options.elapsedMs() / 1000).toFixed(3).padStart(10);
    const line = `${seconds}  ${component.padEnd(16)} ${text}`;
    this.#count++;
    this.#options.onLine?.(line);
    this.#batch.push(line);
    this.#lines.push(line);
    if (this.#batch.length >= BATCH_LINES) this.#flush();
    if (this.#lines.length >= 2 * LINES_KEPT_MAX) this.#lines = this.#lines.slice(-LINES_KEPT_MAX);
  }

  /** For what happens in one of several clusters: who it is about is told by that, too. */
  within(cluster: string): Tracer {
    return cluster === '' ? this : { add: (component, text) => this.add(`${cluster}/${component}`, text) };
  }

  /** The last lines, oldest first. */
  last(count = LINES_KEPT_MAX): readonly string[] {
    return this.#lines.slice(-count);
  }

  /** Stands for all lines so far. */
  digest(): string {
    this.#flush();
    return this.#hash.copy().digest('hex').slice(0, 16);
  }

  #flush(): void {
    if (this.#batch.length > 0) this.#hash.update(`${this.#batch.join('\n')}\n`);
    this.#batch = [];
  }
}
