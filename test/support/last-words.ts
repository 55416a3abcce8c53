import type { Anything, EventStream } from './api.ts';

/** How soon an API server is asked again that does not answer: tests kill theirs. */
const AGAIN_MS = 100;

/**
 * What each migration was last said to be. One that is over is deleted together with its guest, maybe before anybody has asked how it
 * ended; but it is told to who watches.
 */
export class LastWords {
  readonly #words = new Map<string, Anything>();
  #stream: EventStream | undefined;
  #isStopped = false;

  private constructor(first: EventStream) {
    this.#stream = first;
  }

  /** Listens from now on, wherever the watch begins anew. */
  static async follow(watch: () => Promise<EventStream>): Promise<LastWords> {
    const words = new LastWords(await watch());
    void words.#run(watch);
    return words;
  }

  of(namespace: string, name: string): Anything {
    return this.#words.get(`${namespace}/${name}`);
  }

  stop(): void {
    this.#isStopped = true;
    this.#stream?.close();
  }

  async #run(watch: () => Promise<EventStream>): Promise<void> {
    while (!this.#isStopped) {
      await this.#listen();
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
      // Nobody answers for a while where a test has killed who would.
      if (!this.#isStopped) this.#stream = await watch().catch(() => undefined);
    }
    this.#stream?.close();
  }

  async #listen(): Promise<void> {
    for (let event = await this.#stream?.next(); event; event = await this.#stream?.next()) {
      const { metadata = {} } = event.object as Anything;
      if (metadata.uid !== undefined) this.#words.set(`${metadata.namespace}/${metadata.name}`, event.object);
    }
  }
}
