/** A failure that the user can understand and mend: printed as one sentence, without a stack. */
export class UserError extends Error {
  /** The process' exit code. */
  readonly exitCode: number;

  constructor(message: string, options: { exitCode?: number; cause?: unknown } = {}) {
    super(message, { cause: options.cause });
    this.name = 'UserError';
    this.exitCode = options.exitCode ?? 1;
  }
}
