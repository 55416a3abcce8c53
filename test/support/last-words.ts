import type { Anything, EventStream } from './api.ts';

/** How soon an API server is asked again that does not answer: tests kill theirs. */
const AGAIN_MS = 100;

/** Watches from a version on; from now on where that is undefined. */
type Watch = (resourceVersion: string | undefined) => Promise<EventStream>;

/**
 * What each migration was last said to be. One that is over is deleted together with its guest, maybe before anybody has asked how it
 * ended; but it is told to who watches.
 */
export class LastWords {
  readonly #words = new Map<string, Anything>();
  #stream: EventStream | undefined;
  /** Up to where all was heard. */
  #resourceVersion: string | undefined;
  #isStopped = false;

  private constructor(first: EventStream) {
    this.#stream = first;
  }

  /** Listens from now on, and goes on where a watch has ended. */
  static async follow(watch: Watch): Promise<LastWords> {
    const words = new LastWords(await watch(undefined));
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

  async #run(watch: Watch): Promise<void> {
    while (!this.#isStopped) {
      await this.#listen();
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
      // Nobody answers for a while where a test has killed who would.
      if (!this.#isStopped) this.#stream = await watch(this.#resourceVersion).catch(() => undefined);
    }
    this.#stream?.close();
  }

  async #listen(): Promise<void> {
    for (let event = await this.#stream?.next(); event; event = await this.#stream?.next()) {
      const { metadata = {} } = event.object as Anything;
      // Without one it is told that so far back nothing is known any more.
      this.#resourceVersion = metadata.resourceVersion;
      if (metadata.uid !== undefined) this.#words.set(`${metadata.namespace}/${metadata.name}`, event.object);
    }
  }
}
