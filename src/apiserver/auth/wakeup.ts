/** Remembers that something happened until someone has waited for it. */
export class Wakeup {
  readonly #signal: AbortSignal;
  #rung = false;
  #resolve: (() => void) | undefined;

  constructor(signal: AbortSignal) {
    this.#signal = signal;
    signal.addEventListener('abort', () => this.#resolve?.(), { once: true });
  }

  ring(): void {
    this.#rung = true;
    this.#resolve?.();
  }

  /** True once it has rung since the last time, false once the signal has aborted. */
  async wait(): Promise<boolean> {
    if (!this.#rung && !this.#signal.aborted) {
      await new Promise<void>((resolve) => {
        this.#resolve = resolve;
      });
    }
    this.#rung = false;
    return !this.#signal.aborted;
  }
}
