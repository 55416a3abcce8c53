import { once } from 'node:events';
import { connect, type TLSSocket } from 'node:tls';

/**
 * HTTP/2 for a load generator that shares the machine with what it measures: requests are written as bytes, and of
 * answers only what a figure needs is looked at. Node's own client would cost as much as the server under test.
 */

export interface Credentials {
  readonly host: string;
  readonly port: number;
  readonly ca: string;
  readonly certificate: string;
  readonly key: string;
}

const FRAME = { data: 0, headers: 1, reset: 3, settings: 4, ping: 6, goAway: 7, windowUpdate: 8 } as const;
const END_STREAM = 1;
const END_HEADERS = 4;
const ACK = 1;
const FRAME_HEADER_BYTES = 9;
/** So large that no answer of a benchmark ever waits for this side. */
const WINDOW_BYTES = 2 ** 31 - 1;
const INITIAL_WINDOW_BYTES = 65_535;
/** The least a server accepts without having said so. */
const FRAME_BYTES_MAX = 16_384;

interface Exchange {
  readonly what: string;
  readonly resolve: (bytes: number) => void;
  readonly reject: (error: Error) => void;
  /** Takes the body as it comes; without it, only its length is counted. */
  readonly onData: ((bytes: Buffer) => void) | undefined;
  /** Told of the end of a watch, whose promise resolves with the headers; undefined for what is no watch. */
  readonly onEnd: (() => void) | undefined;
  isRefused: boolean;
  bytes: number;
}

/** One connection with any number of requests at once. */
export class LoadConnection {
  readonly #socket: TLSSocket;
  readonly #authority: string;
  readonly #exchanges = new Map<number, Exchange>();
  #nextStream = 1;
  #sendWindow = INITIAL_WINDOW_BYTES;
  #blocked: Buffer[] = [];
  #rest: Buffer = Buffer.alloc(0);

  private constructor(socket: TLSSocket, authority: string) {
    this.#socket = socket;
    this.#authority = authority;
    socket.on('data', (chunk: Buffer) => this.#receive(chunk));
    socket.on('error', (error) => this.#fail(error));
    socket.on('close', () => this.#fail(new Error('the server closed the connection')));
  }

  static async open(credentials: Credentials): Promise<LoadConnection> {
    const { host, port, ca, certificate, key } = credentials;
    const socket = connect({ host, port, ca, cert: certificate, key, ALPNProtocols: ['h2'] });
    await once(socket, 'secureConnect');
    socket.setNoDelay(true);
    const settings = Buffer.alloc(18);
    // No header table, so that every answer's status stands in its own bytes; no push; no limit to what comes.
    for (const [index, [id, value]] of (
      [
        [1, 0],
        [2, 0],
        [4, WINDOW_BYTES],
      ] as const
    ).entries()) {
      settings.writeUInt16BE(id, index * 6);
      settings.writeUInt32BE(value, index * 6 + 2);
    }
    const increment = Buffer.alloc(4);
    increment.writeUInt32BE(WINDOW_BYTES - INITIAL_WINDOW_BYTES);
    socket.write(
      Buffer.concat([
        Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
        frame(FRAME.settings, 0, 0, settings),
        frame(FRAME.windowUpdate, 0, 0, increment),
      ]),
    );
    return new LoadConnection(socket, `${host}:${port}`);
  }

  /** One request; resolves with the length of the answer's body, rejects for any status but 2xx. */
  request(method: string, path: string, body?: string, onData?: (bytes: Buffer) => void): Promise<number> {
    return this.#start(method, path, body, onData);
  }

  /** The whole body, as text. */
  async text(method: string, path: string, body?: string): Promise<string> {
    const chunks: Buffer[] = [];
    await this.request(method, path, body, (bytes) => chunks.push(Buffer.from(bytes)));
    return Buffer.concat(chunks).toString('utf8');
  }

  /** A watch; resolves once the server has accepted it. Servers end them whenever they like. */
  watch(path: string, onData: (bytes: Buffer) => void, onEnd = (): void => undefined): Promise<number> {
    return this.#start('GET', path, undefined, onData, onEnd);
  }

  close(): void {
    this.#exchanges.clear();
    this.#socket.destroy();
  }

  #start(
    method: string,
    path: string,
    body: string | undefined,
    onData: ((bytes: Buffer) => void) | undefined,
    onEnd?: () => void,
  ): Promise<number> {
    return new Promise((resolve, reject) => {
      const stream = this.#nextStream;
      this.#nextStream += 2;
      const what = `${method} ${path}`;
      this.#exchanges.set(stream, { what, resolve, reject, onData, onEnd, isRefused: false, bytes: 0 });
      const headers = encodeHeaders(method, path, this.#authority, body !== undefined);
      if (body === undefined) {
        this.#socket.write(frame(FRAME.headers, END_HEADERS | END_STREAM, stream, headers));
        return;
      }
      this.#socket.cork();
      this.#socket.write(frame(FRAME.headers, END_HEADERS, stream, headers));
      this.#send(frame(FRAME.data, END_STREAM, stream, Buffer.from(body)));
      process.nextTick(() => this.#socket.uncork());
    });
  }

  #send(data: Buffer): void {
    if (data.length > FRAME_BYTES_MAX) throw new Error('a benchmark sends small bodies only');
    if (this.#blocked.length > 0 || this.#sendWindow < data.length) this.#blocked.push(data);
    else {
      this.#sendWindow -= data.length - FRAME_HEADER_BYTES;
      this.#socket.write(data);
    }
  }

  #receive(chunk: Buffer): void {
    let bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    let at = 0;
    while (bytes.length - at >= FRAME_HEADER_BYTES) {
      const end = at + FRAME_HEADER_BYTES + bytes.readUIntBE(at, 3);
      if (bytes.length < end) break;
      const stream = bytes.readUInt32BE(at + 5);
      this.#onFrame(bytes[at + 3] as number, bytes[at + 4] as number, stream, bytes, at + FRAME_HEADER_BYTES, end);
      at = end;
    }
    bytes = at === 0 ? bytes : bytes.subarray(at);
    this.#rest = bytes;
  }

  #onFrame(type: number, flags: number, stream: number, bytes: Buffer, start: number, end: number): void {
    const exchange = this.#exchanges.get(stream);
    if (type === FRAME.data && exchange) {
      exchange.bytes += end - start;
      if (exchange.isRefused) this.#end(stream, exchange, bytes.toString('utf8', start, Math.min(end, start + 300)));
      else if (end > start) exchange.onData?.(bytes.subarray(start, end));
    } else if (type === FRAME.headers && exchange) {
      exchange.isRefused = !isSuccess(bytes, start);
      if (exchange.onEnd && !exchange.isRefused) exchange.resolve(0);
    } else if (type === FRAME.windowUpdate && stream === 0) {
      this.#sendWindow += bytes.readUInt32BE(start);
      for (let next = this.#blocked.splice(0); next.length > 0; next = next.slice(1)) this.#send(next[0] as Buffer);
    } else if (type === FRAME.settings && (flags & ACK) === 0) {
      this.#socket.write(frame(FRAME.settings, ACK, 0, Buffer.alloc(0)));
    } else if (type === FRAME.ping && (flags & ACK) === 0) {
      this.#socket.write(frame(FRAME.ping, ACK, 0, bytes.subarray(start, end)));
    } else if (type === FRAME.reset && exchange) {
      this.#end(stream, exchange, `reset with code ${bytes.readUInt32BE(start)}`);
    } else if (type === FRAME.goAway) {
      this.#fail(new Error('the server is going away'));
    }
    if ((type === FRAME.data || type === FRAME.headers) && (flags & END_STREAM) !== 0 && exchange)
      this.#end(stream, exchange, exchange.isRefused ? 'no reason was given' : undefined);
  }

  #end(stream: number, exchange: Exchange, failure: string | undefined): void {
    this.#exchanges.delete(stream);
    if (failure === undefined) exchange.resolve(exchange.bytes);
    else exchange.reject(new Error(`${exchange.what}: ${failure}`));
    if (!exchange.isRefused) exchange.onEnd?.();
  }

  #fail(error: Error): void {
    for (const exchange of this.#exchanges.values()) exchange.reject(error);
    this.#exchanges.clear();
  }
}

function frame(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const bytes = Buffer.allocUnsafe(FRAME_HEADER_BYTES + payload.length);
  bytes.writeUIntBE(payload.length, 0, 3);
  bytes[3] = type;
  bytes[4] = flags;
  bytes.writeUInt32BE(stream, 5);
  payload.copy(bytes, FRAME_HEADER_BYTES);
  return bytes;
}

/** Header fields as literals that nobody has to remember (RFC 7541, 6.2.2), with names from the static table. */
function encodeHeaders(method: string, path: string, authority: string, hasBody: boolean): Buffer {
  const parts = [Buffer.from([0x02]), literal(method), Buffer.from([0x87, 0x04]), literal(path)];
  parts.push(Buffer.from([0x01]), literal(authority));
  if (hasBody) parts.push(Buffer.from([0x0f, 0x10]), literal('application/json'));
  return Buffer.concat(parts);
}

function literal(text: string): Buffer {
  const length = Buffer.byteLength(text);
  if (length >= 127 + 128) throw new Error('a benchmark uses short paths only');
  return Buffer.concat([Buffer.from(length < 127 ? [length] : [127, length - 127]), Buffer.from(text)]);
}

/** Whether a header block begins with a status of 2xx: from the static table, or a literal with that name. */
function isSuccess(bytes: Buffer, start: number): boolean {
  let at = start;
  // Says that there is no header table, which the settings have asked for.
  while (bytes[at] === 0x20) at++;
  const first = bytes[at] as number;
  if ((first & 0x80) !== 0) return first >= 0x88 && first <= 0x8a;
  const isCoded = ((bytes[at + 1] as number) & 0x80) !== 0;
  const value = bytes[at + 2] as number;
  // In the Huffman code of HPACK, the figure 2 is the five bits 00010.
  return isCoded ? value >> 3 === 0b00010 : value === 0x32;
}
