/** Runs tasks of the same key one after the other, in the order of their arrival; those of different keys at once. */
export class KeyedQueue {
  readonly #tails = new Map<string, Promise<void>>();

  /** Answers what the task answers, or rejects as it does; neither affects the next one. */
  async run<T>(key: string, task: () => Promise<T>): Promise<T> {
    const before = this.#tails.get(key);
    let release = (): void => undefined;
    const tail = new Promise<void>((resolve) => {
      release = resolve;
    });
    this.#tails.set(key, tail);
    await before;
    try {
      return await task();
    } finally {
      if (this.#tails.get(key) === tail) this.#tails.delete(key);
      release();
    }
  }
}
