import { type Clock, sleep } from '../env/ports.ts';

/** Lets everybody through while it is open, and nobody while it is closed. */
export class Gate {
  readonly #waiting = new Set<() => void>();
  #isOpen = true;

  get isOpen(): boolean {
    return this.#isOpen;
  }

  open(): void {
    this.#isOpen = true;
    for (const go of this.#waiting) go();
  }

  close(): void {
    this.#isOpen = false;
  }

  /** Resolves when the gate is open, or the signal aborts. */
  async pass(signal: AbortSignal): Promise<void> {
    while (!this.#isOpen && !signal.aborted) await this.#wait(signal);
  }

  /** Resolves when the gate is open, the time is over, or the signal aborts; says whether it is open. */
  async passWithin(clock: Clock, timeoutMs: number, signal: AbortSignal): Promise<boolean> {
    if (this.#isOpen) return true;
    const enough = new AbortController();
    const end = (): void => enough.abort();
    signal.addEventListener('abort', end, { once: true });
    if (signal.aborted) end();
    await Promise.race([this.pass(enough.signal), sleep(clock, timeoutMs, enough.signal)]);
    end();
    signal.removeEventListener('abort', end);
    return this.#isOpen;
  }

  #wait(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const go = (): void => {
        this.#waiting.delete(go);
        signal.removeEventListener('abort', go);
        resolve();
      };
      this.#waiting.add(go);
      signal.addEventListener('abort', go, { once: true });
    });
  }
}
