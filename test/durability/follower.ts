import type { Anything, Api } from '../support/api.ts';
import { withQuery } from '../support/api.ts';
import { ConnectionLost } from '../support/http-client.ts';
import { COLLECTION } from './writers.ts';

/** One thing that a watch told. */
export interface Seen {
  readonly type: string;
  readonly name: string;
  readonly revision: number;
}

/** A watch that is taken up again, at the last revision it saw, whenever it breaks. */
export class Follower {
  readonly seen: Seen[] = [];
  readonly #api: Api;
  #revision: number;

  constructor(api: Api, revision: number) {
    this.#api = api;
    this.#revision = revision;
  }

  /** Follows until the named object has been seen to be added. */
  async runUntil(last: string): Promise<void> {
    for (;;) {
      try {
        if (await this.#follow(last)) return;
      } catch (error) {
        if (!(error instanceof ConnectionLost)) throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  async #follow(last: string): Promise<boolean> {
    const query = { watch: 'true', allowWatchBookmarks: 'true', resourceVersion: String(this.#revision) };
    const stream = await this.#api.watch(withQuery(COLLECTION, query));
    if (stream.status !== 200)
      throw new Error(`a watch at revision ${this.#revision} was answered with ${stream.status}`);
    for (let event = await stream.next(); event; event = await stream.next()) {
      if (event.type === 'ERROR')
        throw new Error(`a watch at revision ${this.#revision} was told ${JSON.stringify(event.object)}`);
      const { name, resourceVersion } = event.object.metadata as Anything;
      this.#revision = Number(resourceVersion);
      if (event.type === 'BOOKMARK') continue;
      this.seen.push({ type: event.type, name, revision: this.#revision });
      if (name === last) {
        stream.close();
        return true;
      }
    }
    return false;
  }
}
