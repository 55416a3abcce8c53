import type { Anything } from '../support/api.ts';
import { ConnectionLost, type HttpClient } from '../support/http-client.ts';

/**
 * Several of these add to one object, each to its own number, by reading it and writing it back under the
 * resourceVersion that was read. Whatever crashes: no addition that was acknowledged is lost to another's.
 */
export class Counter {
  readonly #name: string;
  readonly #target: string;
  readonly #client: HttpClient;
  #acknowledged = 0;
  #open = 0;

  constructor(options: { name: string; target: string; client: HttpClient }) {
    this.#name = options.name;
    this.#target = options.target;
    this.#client = options.client;
  }

  /** Adds until the connection is lost. */
  async run(): Promise<void> {
    try {
      for (;;) await this.#add();
    } catch (error) {
      if (!(error instanceof ConnectionLost)) throw error;
    }
  }

  /** Throws unless the number is what was acknowledged, or one more where an answer was lost. */
  verify(object: Anything): void {
    const value = Number(object.data?.[this.#name] ?? 0);
    if (value < this.#acknowledged || value > this.#acknowledged + this.#open)
      throw new Error(`${this.#name} added ${this.#acknowledged} (and perhaps ${this.#open}), but there are ${value}`);
    this.#acknowledged = value;
    this.#open = 0;
  }

  async #add(): Promise<void> {
    const object = (await this.#client.request('GET', this.#target)).expect(200).json;
    const value = Number(object.data?.[this.#name] ?? 0);
    if (value !== this.#acknowledged) throw new Error(`${this.#name} reads ${value} after ${this.#acknowledged}`);
    const body = { ...object, data: { ...object.data, [this.#name]: String(value + 1) } };
    this.#open = 1;
    const { status } = await this.#client.request('PUT', this.#target, { body });
    if (status !== 200 && status !== 409) throw new Error(`an addition was answered with ${status}`);
    this.#open = 0;
    if (status === 200) this.#acknowledged++;
  }
}
