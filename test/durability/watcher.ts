import { type Anything, withQuery, type WatchEvent } from '../support/api.ts';
import { ConnectionLost, type HttpClient } from '../support/http-client.ts';
import { assertWhole } from './writer.ts';

/** How soon a watcher tries again while nobody serves. */
const RETRY_MS = 20;

/** Follows changes across crashes, always from the last resourceVersion that it was told, and never lists again. */
export class Watcher {
  readonly events: WatchEvent[] = [];
  readonly #client: HttpClient;
  readonly #path: string;
  readonly #query: Readonly<Record<string, string>>;
  #revision: string;
  #isStopped = false;
  /** How often it had to resume, and from how many bookmarks. */
  resumed = 0;
  bookmarks = 0;

  constructor(options: {
    client: HttpClient;
    path: string;
    query: Readonly<Record<string, string>>;
    revision: string;
  }) {
    this.#client = options.client;
    this.#path = options.path;
    this.#query = options.query;
    this.#revision = options.revision;
  }

  get revision(): number {
    return Number(this.#revision);
  }

  /** Watches until told to stop. Throws where the stream breaks its promises. */
  async run(): Promise<void> {
    while (!this.#isStopped) {
      try {
        await this.#follow();
      } catch (error) {
        if (!(error instanceof ConnectionLost)) throw error;
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      }
    }
  }

  stop(): void {
    this.#isStopped = true;
    this.#client.close();
  }

  async #follow(): Promise<void> {
    const query = { watch: 'true', allowWatchBookmarks: 'true', resourceVersion: this.#revision, ...this.#query };
    const stream = await this.#client.watch(withQuery(this.#path, query));
    if (stream.status !== 200) throw new Error(`resuming at ${this.#revision} was answered with ${stream.status}`);
    this.resumed++;
    for (let event = await stream.next(); event; event = await stream.next()) this.#take(event);
  }

  #take(event: WatchEvent): void {
    const { type, object } = event;
    if (type === 'ERROR') throw new Error(`the watch failed: ${JSON.stringify(object)}`);
    const revision: string = object.metadata.resourceVersion;
    const isBookmark = type === 'BOOKMARK';
    if (Number(revision) < this.revision || (!isBookmark && Number(revision) === this.revision))
      throw new Error(`${type} at ${revision} came after ${this.#revision}`);
    this.#revision = revision;
    if (isBookmark) this.bookmarks++;
    else {
      if (type !== 'DELETED') assertWhole(object);
      this.events.push(event);
    }
  }
}

/** What somebody who believes these events takes to be there, by name. Throws where they contradict each other. */
export function believe(events: readonly WatchEvent[]): Map<string, Anything> {
  const state = new Map<string, Anything>();
  for (const { type, object } of events) {
    const { name, uid } = object.metadata;
    const known = state.get(name);
    if ((known === undefined) !== (type === 'ADDED'))
      throw new Error(`${type} of ${name}, which is ${known ? '' : 'not '}there`);
    if (known && known.metadata.uid !== uid) throw new Error(`${name} changed its uid without being deleted`);
    if (type === 'DELETED') state.delete(name);
    else state.set(name, object);
  }
  return state;
}
