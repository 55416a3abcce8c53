import { promisify } from 'node:util';
import { gzip as gzipCallback } from 'node:zlib';
import { stringify } from 'yaml';
import type { ApiError } from '../../api/status.ts';
import { covers, parseAccept } from './accept.ts';
import type { Follows } from './carrier.ts';
import type { Exchange } from './exchange.ts';
import { GZIP_BYTES_MIN, LIST_CHUNK_BYTES } from './limits.ts';
import type { ApiResponse } from './message.ts';

/** Answers onto the wire, at the pace of whoever reads them, and not for ever. */

const gzip = promisify(gzipCallback);

type Headers = Record<string, string | readonly string[]>;

/** An error as the response that carries it: YAML for those whose Accept header likes that best, else JSON. */
export function errorResponse(error: ApiError, accept?: string): ApiResponse {
  const headers: Record<string, string> = { 'content-type': 'application/json' };
  if (error.details?.retryAfterSeconds !== undefined) headers['retry-after'] = String(error.details.retryAfterSeconds);
  if (error.code === 401) headers['www-authenticate'] = 'Bearer realm="godwit"';
  if (!likesYaml(accept)) return { status: error.code, headers, body: `${JSON.stringify(error.toStatus())}\n` };
  headers['content-type'] = 'application/yaml';
  return { status: error.code, headers, body: stringify(error.toStatus()) };
}

function likesYaml(accept: string | undefined): boolean {
  if (!accept?.includes('yaml')) return false;
  const best = parseAccept(accept).find(
    (range) => covers(range, 'application/json') || covers(range, 'application/yaml'),
  );
  return best !== undefined && !covers(best, 'application/json');
}

/** Sends an answer. Resolves when all of it has been handed over, or nobody is left to read it. */
export async function send(exchange: Exchange, response: ApiResponse): Promise<void> {
  const { body, status } = response;
  const headers: Headers = { 'cache-control': 'no-cache, private', ...response.headers };
  if (typeof body !== 'string' && !(body instanceof Uint8Array)) return stream(exchange, status, headers, body);
  let bytes: Uint8Array = typeof body === 'string' ? Buffer.from(body) : body;
  if (wantsGzip(exchange, bytes.length)) {
    bytes = await gzip(bytes, { level: 1 });
    headers['content-encoding'] = 'gzip';
  }
  headers['content-length'] = String(bytes.length);
  return whole(exchange, status, headers, bytes);
}

/** `gzip`, unless it is what the client will not have: `gzip;q=0`. */
const GZIP_ACCEPTED = /(?:^|,)\s*gzip\s*(?:;\s*q\s*=\s*(?!0(?:\.0*)?\s*(?:,|$))[^,]*)?(?:,|$)/i;

/** Compressing for a peer on this very machine only burns its processor. */
function wantsGzip({ headers, peer }: Exchange, length: number): boolean {
  if (length < GZIP_BYTES_MIN || peer.isLocal) return false;
  const accepted: unknown = headers['accept-encoding'];
  return typeof accepted === 'string' && GZIP_ACCEPTED.test(accepted);
}

async function whole(exchange: Exchange, status: number, headers: Headers, bytes: Uint8Array): Promise<void> {
  const { writable } = exchange.carrier;
  if (writable.destroyed) return;
  const isHead = exchange.method === 'HEAD';
  writeHead(exchange, status, headers, isHead ? 'nothing' : 'body');
  let sent = 0;
  if (!isHead) {
    for (; bytes.length - sent > LIST_CHUNK_BYTES && !writable.destroyed; sent += LIST_CHUNK_BYTES)
      if (!writable.write(bytes.subarray(sent, sent + LIST_CHUNK_BYTES))) await drained(exchange);
    if (writable.destroyed) return;
    writable.end(sent === 0 ? bytes : bytes.subarray(sent));
  }
  lingerOver(exchange);
  expectEnd(exchange);
}

async function stream(
  exchange: Exchange,
  status: number,
  headers: Headers,
  body: AsyncIterable<string | Uint8Array>,
): Promise<void> {
  const { writable } = exchange.carrier;
  const chunks = body[Symbol.asyncIterator]();
  try {
    if (writable.destroyed) return;
    const isHead = exchange.method === 'HEAD';
    writeHead(exchange, status, headers, isHead ? 'nothing' : 'stream');
    lingerOver(exchange);
    if (isHead) return;
    for (;;) {
      const { done, value } = await chunks.next();
      // A server that stops finishes what it has begun; streams without an end end themselves then.
      if (done === true || writable.destroyed) break;
      if (!writable.write(bytesOf(value))) await drained(exchange);
    }
    writable.end();
    expectEnd(exchange);
  } finally {
    // Whoever made the stream frees what it holds here, also when it was never read.
    await chunks.return?.();
  }
}

/** The last text of a stream, and its bytes: all watchers of a change get the same one in a row. */
let last: { readonly text: string; readonly bytes: Uint8Array } = { text: '', bytes: new Uint8Array() };
/** A text that is larger than this is somebody's list, and not worth holding on to. */
const SHARED_LENGTH_MAX = 64 * 1024;

function bytesOf(chunk: string | Uint8Array): Uint8Array {
  if (typeof chunk !== 'string') return chunk;
  if (chunk === last.text) return last.bytes;
  const bytes = Buffer.from(chunk);
  if (chunk.length <= SHARED_LENGTH_MAX) last = { text: chunk, bytes };
  return bytes;
}

/** Resolves when the client has read; one that reads nothing for too long is taken for dead. */
function drained({ carrier, clock, limits }: Exchange): Promise<void> {
  const { writable } = carrier;
  if (writable.destroyed) return Promise.resolve();
  return new Promise((resolve) => {
    const timer = clock.setTimer(() => carrier.cutOff(), limits.writeTimeoutMs);
    const done = (): void => {
      timer.cancel();
      writable.off('drain', done).off('close', done);
      resolve();
    };
    writable.on('drain', done).on('close', done);
  });
}

/** The last of an answer must be read as well, within the same time. */
function expectEnd({ carrier, clock, limits }: Exchange): void {
  const { writable } = carrier;
  if (writable.destroyed || writable.writableFinished) return;
  const timer = clock.setTimer(() => carrier.cutOff(), limits.writeTimeoutMs);
  writable.on('close', () => timer.cancel());
}

/** What of the body nobody wanted is thrown away for a while, so that the client can finish and read its answer. */
function lingerOver({ carrier, clock, limits }: Exchange): void {
  if (carrier.isComplete) return;
  carrier.readable.resume();
  const timer = clock.setTimer(() => {
    if (!carrier.isComplete) carrier.cutOff();
  }, limits.lingerMs);
  carrier.readable.on('close', () => timer.cancel());
}

function writeHead({ carrier }: Exchange, status: number, headers: Headers, follows: Follows): void {
  const { warning } = headers;
  // A header is bytes, each in a character of its own: that is how UTF-8 passes.
  if (Array.isArray(warning)) headers['warning'] = warning.map((each) => Buffer.from(each, 'utf8').toString('latin1'));
  carrier.writeHead(status, headers, follows);
}
