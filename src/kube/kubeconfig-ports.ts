import type { Clock } from '../env/ports.ts';

/** What reading a kubeconfig needs of the machine. */
export interface KubeconfigPorts {
  readonly clock: Clock;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly homeDirectory: string;
  /** The text of a file. Rejects with the system's error, whose code is ENOENT if there is none. */
  readFile(path: string): Promise<string>;
  /** Runs a program to its end, without a terminal. Rejects when it cannot be started, or the signal aborts. */
  run(program: Program): Promise<ProgramResult>;
}

export interface Program {
  readonly command: string;
  readonly args: readonly string[];
  /** All of it: nothing is inherited. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
}

export interface ProgramResult {
  /** Null when a signal ended it. */
  readonly exitCode: number | null;
  readonly output: string;
  readonly errors: string;
}

/** What is wrong with a kubeconfig, in one sentence that names the file and the field. */
export class KubeconfigError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'KubeconfigError';
  }
}
