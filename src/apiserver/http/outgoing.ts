import type { ServerResponse } from 'node:http';
import { constants, type Http2ServerResponse } from 'node:http2';
import { promisify } from 'node:util';
import { gzip as gzipCallback } from 'node:zlib';
import type { ApiError } from '../../api/status.ts';
import type { Clock } from '../../env/ports.ts';
import type { Incoming } from './incoming.ts';
import { GZIP_BYTES_MIN, type HttpLimits, LIST_CHUNK_BYTES } from './limits.ts';
import type { ApiResponse } from './message.ts';

/** Answers onto the wire, at the pace of whoever reads them, and not for ever. */

const gzip = promisify(gzipCallback);

export type Outgoing = ServerResponse | Http2ServerResponse;

interface Exchange {
  readonly incoming: Incoming;
  readonly outgoing: Outgoing;
  readonly clock: Clock;
  readonly limits: HttpLimits;
  /** Aborted when the client has gone, or the server stops. */
  readonly gone: AbortSignal;
}

type Headers = Record<string, string | readonly string[]>;

/** An error as the response that carries it. */
export function errorResponse(error: ApiError): ApiResponse {
  const headers: Record<string, string> = { 'content-type': 'application/json' };
  if (error.details?.retryAfterSeconds !== undefined) headers['retry-after'] = String(error.details.retryAfterSeconds);
  if (error.code === 401) headers['www-authenticate'] = 'Bearer realm="godwit"';
  return { status: error.code, headers, body: `${JSON.stringify(error.toStatus())}\n` };
}

/** Sends an answer. Resolves when it is on its way, or nobody is left to read it. */
export async function send(exchange: Exchange, response: ApiResponse): Promise<void> {
  const { body, status } = response;
  const headers: Headers = { 'cache-control': 'no-cache, private', ...response.headers };
  if (typeof body !== 'string' && !(body instanceof Uint8Array)) return stream(exchange, status, headers, body);
  let bytes: Uint8Array = typeof body === 'string' ? Buffer.from(body) : body;
  if (wantsGzip(exchange.incoming, bytes.length)) {
    bytes = await gzip(bytes, { level: 1 });
    headers['content-encoding'] = 'gzip';
  }
  headers['content-length'] = String(bytes.length);
  return whole(exchange, status, headers, bytes);
}

/** Compressing for a peer on this very machine only burns its processor. */
function wantsGzip(incoming: Incoming, length: number): boolean {
  if (length < GZIP_BYTES_MIN) return false;
  const accepted = incoming.headers['accept-encoding'];
  return typeof accepted === 'string' && /\bgzip\b/.test(accepted) && !isLoopback(incoming.socket.remoteAddress);
}

function isLoopback(address: string | undefined): boolean {
  return (
    address !== undefined && (address.startsWith('127.') || address === '::1' || address.startsWith('::ffff:127.'))
  );
}

async function whole(exchange: Exchange, status: number, headers: Headers, bytes: Uint8Array): Promise<void> {
  const { incoming } = exchange;
  // Both responses have these methods; their types only agree on less.
  const outgoing = exchange.outgoing as ServerResponse;
  if (isDestroyed(outgoing)) return;
  writeHead(outgoing, status, headers);
  let sent = 0;
  if (incoming.method !== 'HEAD') {
    for (; bytes.length - sent > LIST_CHUNK_BYTES && !isDestroyed(outgoing); sent += LIST_CHUNK_BYTES)
      if (!outgoing.write(bytes.subarray(sent, sent + LIST_CHUNK_BYTES))) await progress(exchange, 'drain');
  }
  if (isDestroyed(outgoing)) return;
  outgoing.end(incoming.method === 'HEAD' ? undefined : bytes.subarray(sent));
  lingerOver(exchange);
  await progress(exchange, 'finish');
}

async function stream(
  exchange: Exchange,
  status: number,
  headers: Headers,
  body: AsyncIterable<string | Uint8Array>,
): Promise<void> {
  const { incoming, gone } = exchange;
  const outgoing = exchange.outgoing as ServerResponse;
  const chunks = body[Symbol.asyncIterator]();
  try {
    if (isDestroyed(outgoing)) return;
    writeHead(outgoing, status, headers);
    // Clients wait for the headers of a watch before its first event.
    if ('flushHeaders' in outgoing) outgoing.flushHeaders();
    lingerOver(exchange);
    while (incoming.method !== 'HEAD') {
      const { done, value } = await chunks.next();
      if (done === true || gone.aborted) break;
      if (!outgoing.write(value)) await progress(exchange, 'drain');
    }
    outgoing.end();
  } finally {
    // Whoever made the stream frees what it holds here, also when it was never read.
    await chunks.return?.();
  }
  await progress(exchange, 'finish');
}

/** Resolves when the client has read; one that reads nothing for too long is taken for dead. */
function progress(exchange: Exchange, event: 'drain' | 'finish'): Promise<void> {
  const { clock, limits } = exchange;
  const outgoing = exchange.outgoing as ServerResponse;
  if (isDestroyed(outgoing) || (event === 'finish' && outgoing.writableFinished)) return Promise.resolve();
  return new Promise((resolve) => {
    const timer = clock.setTimer(() => cutOff(exchange), limits.writeTimeoutMs);
    const done = (): void => {
      timer.cancel();
      outgoing.off(event, done).off('close', done);
      resolve();
    };
    outgoing.on(event, done).on('close', done);
  });
}

/** What of the body nobody wanted is thrown away for a while, so that the client can finish and read its answer. */
function lingerOver(exchange: Exchange): void {
  const { incoming, clock, limits } = exchange;
  if (incoming.complete || ('stream' in incoming && incoming.stream.endAfterHeaders)) return;
  incoming.resume();
  const timer = clock.setTimer(() => {
    if (!incoming.complete) cutOff(exchange);
  }, limits.lingerMs);
  incoming.on('close', () => timer.cancel());
}

function isDestroyed(outgoing: Outgoing): boolean {
  return 'stream' in outgoing ? outgoing.stream.destroyed : outgoing.destroyed;
}

/** Ends a stream, or the connection that is nothing but one. */
function cutOff({ incoming, outgoing }: Exchange): void {
  if ('stream' in incoming) incoming.stream.close(constants.NGHTTP2_CANCEL);
  else incoming.socket.destroy();
  outgoing.destroy();
}

function writeHead(outgoing: ServerResponse, status: number, headers: Headers): void {
  const { warning } = headers;
  // A header is bytes, each in a character of its own: that is how UTF-8 passes.
  if (Array.isArray(warning)) headers['warning'] = warning.map((each) => Buffer.from(each, 'utf8').toString('latin1'));
  outgoing.writeHead(status, headers as Record<string, string | string[]>);
}
