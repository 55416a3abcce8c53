import { type ClientHttp2Session, connect, constants } from 'node:http2';
import { Answer, type Api, encodeBody, EventStream, type RequestOptions } from './api.ts';
import type { Access } from './godwit.ts';

/** The connection ended before the answer was whole: nobody knows whether the request was carried out. */
export class ConnectionLost extends Error {
  constructor(cause?: unknown) {
    super('the connection was lost', { cause });
    this.name = 'ConnectionLost';
  }
}

export interface HttpClientOptions extends Pick<Access, 'url' | 'ca'> {
  /** How to show who we are; without both, the client is anonymous. */
  readonly certificate?: string;
  readonly key?: string;
  readonly token?: string;
}

/** Longer than a server may take for anything: who waits in vain for an answer is told for which. */
const ANSWER_MS = 100_000;

/** A small client over one HTTP/2 connection, which it makes anew when it was lost. */
export class HttpClient implements Api {
  readonly #options: HttpClientOptions;
  #session: ClientHttp2Session | undefined;

  constructor(options: HttpClientOptions) {
    this.#options = options;
  }

  /** Rejects with ConnectionLost when the answer does not come whole. */
  async request(method: string, path: string, options: RequestOptions = {}): Promise<Answer> {
    const stream = this.#send(method, path, options);
    return new Promise((resolve, reject) => {
      let status = 0;
      let headers: Answer['headers'] = {};
      let isWhole = false;
      const chunks: Buffer[] = [];
      const timer = setTimeout(() => reject(new Error(`${method} ${path} was not answered`)), ANSWER_MS);
      stream.on('response', (received) => {
        status = Number(received[constants.HTTP2_HEADER_STATUS]);
        headers = received as Answer['headers'];
      });
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('end', () => {
        isWhole = status !== 0;
      });
      // An error is followed by a close, which has the last word.
      let failure: unknown;
      stream.on('error', (error) => (failure = error));
      stream.on('close', () => {
        clearTimeout(timer);
        const isReset = stream.rstCode !== constants.NGHTTP2_NO_ERROR;
        if (isWhole && !isReset) resolve(new Answer(status, headers, Buffer.concat(chunks).toString('utf8')));
        else reject(new ConnectionLost(failure));
      });
    });
  }

  async watch(path: string, options: RequestOptions = {}): Promise<EventStream> {
    const stream = this.#send('GET', path, options);
    stream.setEncoding('utf8');
    return new Promise((resolve, reject) => {
      let events: EventStream | undefined;
      let failure: unknown;
      const timer = setTimeout(() => reject(new Error(`${path} was not answered`)), ANSWER_MS);
      stream.on('response', (received) => {
        clearTimeout(timer);
        const status = Number(received[constants.HTTP2_HEADER_STATUS]);
        const opened = new EventStream(status, received as Answer['headers'], () =>
          stream.close(constants.NGHTTP2_CANCEL),
        );
        events = opened;
        if (status === 200) stream.on('data', (chunk: string) => opened.push(chunk));
        else stream.resume();
        resolve(opened);
      });
      stream.on('end', () => {
        // A stream that is torn down ends as well; only the closing code tells.
        if (stream.rstCode === constants.NGHTTP2_NO_ERROR && !stream.aborted && !stream.destroyed)
          events?.finish('clean');
      });
      stream.on('error', (error) => (failure = error));
      stream.on('close', () => {
        clearTimeout(timer);
        events?.finish('broken');
        if (!events) reject(new ConnectionLost(failure));
      });
    });
  }

  /** Ends the connection and everything on it. */
  close(): void {
    this.#session?.destroy();
    this.#session = undefined;
  }

  #send(method: string, path: string, options: RequestOptions): ReturnType<ClientHttp2Session['request']> {
    const { bytes, headers } = encodeBody(options);
    const { token } = this.#options;
    const stream = this.#connected().request(
      {
        ':method': method,
        ':path': path,
        'user-agent': 'test',
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...headers,
      },
      { endStream: bytes === undefined },
    );
    if (bytes) stream.end(bytes);
    return stream;
  }

  #connected(): ClientHttp2Session {
    const known = this.#session;
    if (known && !known.closed && !known.destroyed) return known;
    const { url, ca, certificate, key } = this.#options;
    const session = connect(url, {
      ca,
      ...(certificate === undefined ? {} : { cert: certificate, key }),
      settings: { initialWindowSize: 1024 * 1024 },
    });
    // The streams of a session that fails fail with it, and tell their callers.
    session.on('error', () => undefined);
    const forget = (): void => {
      if (this.#session === session) this.#session = undefined;
    };
    session.on('goaway', forget);
    session.on('close', forget);
    this.#session = session;
    return session;
  }
}
