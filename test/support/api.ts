/** What tests need of a client of the API, whether it goes over TLS or straight into the server's code. */

/** JSON of a shape that the test knows. */
// oxlint-disable-next-line typescript/no-explicit-any -- tests look into answers whose shape they have just decided
export type Anything = any;

export interface RequestOptions {
  /** Sent as JSON unless it is text or bytes. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A whole answer. */
export class Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly text: string;

  constructor(status: number, headers: Answer['headers'], text: string) {
    this.status = status;
    this.headers = headers;
    this.text = text;
  }

  get json(): Anything {
    return JSON.parse(this.text);
  }

  /** The texts of the `Warning` headers, without code and quotes. */
  get warnings(): string[] {
    const { warning = [] } = this.headers;
    // Several headers of one name may have been joined by commas on their way.
    const joined = typeof warning === 'string' ? warning : warning.join(', ');
    return [...joined.matchAll(/299 - "((?:[^"\\]|\\.)*)"/g)].map((match) =>
      (match[1] ?? '').replaceAll(/\\(.)/g, '$1'),
    );
  }

  /** Throws, with what the server said, unless the status is the expected one. */
  expect(status: number): this {
    if (this.status !== status) throw new Error(`expected ${status}, got ${this.status}: ${this.text}`);
    return this;
  }
}

export interface WatchEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR';
  readonly object: Anything;
}

/** A watch under way: its events so far, and how it ended. */
export class EventStream {
  readonly status: number;
  readonly headers: Answer['headers'];
  readonly #close: () => void;
  readonly #events: WatchEvent[] = [];
  #taken = 0;
  #rest = '';
  #end: 'clean' | 'broken' | undefined;
  #wake: (() => void)[] = [];

  constructor(status: number, headers: Answer['headers'], close: () => void) {
    this.status = status;
    this.headers = headers;
    this.#close = close;
  }

  /** Everything that has come. */
  get events(): readonly WatchEvent[] {
    return this.#events;
  }

  /** The next event that nobody has taken yet; undefined when the stream has ended. */
  async next(): Promise<WatchEvent | undefined> {
    while (this.#taken === this.#events.length && this.#end === undefined)
      await new Promise<void>((resolve) => this.#wake.push(resolve));
    const event = this.#events[this.#taken];
    if (event) this.#taken++;
    return event;
  }

  /** The next so many events. Throws when the stream ends before. */
  async take(count: number): Promise<WatchEvent[]> {
    const taken: WatchEvent[] = [];
    while (taken.length < count) {
      const event = await this.next();
      if (!event) throw new Error(`the watch ended after ${taken.length} of ${count} events`);
      taken.push(event);
    }
    return taken;
  }

  /** Waits for the end: `clean` when the server finished the stream, `broken` when the connection was lost. */
  async ended(): Promise<'clean' | 'broken'> {
    while (this.#end === undefined) await new Promise<void>((resolve) => this.#wake.push(resolve));
    return this.#end;
  }

  /** Stops watching. */
  close(): void {
    this.#close();
    this.finish('clean');
  }

  /** For clients: text that has come. */
  push(chunk: string): void {
    const lines = (this.#rest + chunk).split('\n');
    this.#rest = lines.pop() ?? '';
    for (const line of lines) if (line !== '') this.#events.push(JSON.parse(line) as WatchEvent);
    this.#notify();
  }

  /** For clients: no more will come. What was cut off within a line is dropped, as real clients do. */
  finish(end: 'clean' | 'broken'): void {
    this.#end ??= end === 'clean' && this.#rest !== '' ? 'broken' : end;
    this.#notify();
  }

  #notify(): void {
    const waiting = this.#wake;
    this.#wake = [];
    for (const wake of waiting) wake();
  }
}

export interface Api {
  request(method: string, path: string, options?: RequestOptions): Promise<Answer>;
  /** Opens a stream of JSON lines. An answer other than 200 is an empty stream with that status. */
  watch(path: string, options?: RequestOptions): Promise<EventStream>;
}

/** A path with a query, encoded. */
export function withQuery(path: string, query: Readonly<Record<string, string>>): string {
  return `${path}?${new URLSearchParams(query).toString()}`;
}

/** The body of a request as bytes, and the content type that goes with it. */
export function encodeBody(options: RequestOptions): {
  bytes: Uint8Array | undefined;
  headers: Record<string, string>;
} {
  const { body, headers = {} } = options;
  if (body === undefined) return { bytes: undefined, headers: { ...headers } };
  const bytes = body instanceof Uint8Array ? body : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
  return { bytes, headers: { 'content-type': 'application/json', ...headers } };
}
