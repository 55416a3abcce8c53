import type { IncomingMessage } from 'node:http';
import type { Http2ServerRequest } from 'node:http2';
import type { PeerCertificate, TLSSocket } from 'node:tls';
import { ApiError, badRequest, entityTooLarge } from '../../api/status.ts';
import type { Clock } from '../../env/ports.ts';
import type { HttpLimits } from './limits.ts';
import type { ApiRequest } from './message.ts';

/** Requests as they arrive, on either version of HTTP. */

export type Incoming = IncomingMessage | Http2ServerRequest;

/** The request, or why it cannot be one. Its body is read only when asked for, and once. */
export function toRequest(
  incoming: Incoming,
  signal: AbortSignal,
  clock: Clock,
  limits: HttpLimits,
): ApiRequest | ApiError {
  const url = incoming.url ?? '/';
  if (url.length > limits.urlLengthMax)
    return new ApiError(414, 'BadRequest', `the URL is longer than ${limits.urlLengthMax} characters`);
  const mark = url.indexOf('?');
  let body: Promise<Uint8Array> | undefined;
  return {
    method: incoming.method ?? 'GET',
    path: mark < 0 ? url : url.slice(0, mark),
    query: new URLSearchParams(mark < 0 ? '' : url.slice(mark + 1)),
    headers: incoming.headers as ApiRequest['headers'],
    body: () => (body ??= readBody(incoming, clock, limits)),
    ...peerOf(incoming),
    remoteAddress: incoming.socket.remoteAddress ?? '',
    signal,
  };
}

type Peer = Pick<ApiRequest, 'certificate' | 'isCertificateRefused'>;

/** By connection: parsing the peer's certificate costs more than most requests. */
const peers = new WeakMap<object, Peer>();

function peerOf(incoming: Incoming): Peer {
  const connection = ('stream' in incoming ? incoming.stream.session : undefined) ?? incoming.socket;
  let peer = peers.get(connection);
  if (!peer) peers.set(connection, (peer = readPeer(incoming.socket as TLSSocket)));
  return peer;
}

function readPeer(socket: TLSSocket): Peer {
  const shown = socket.getPeerCertificate();
  const isShown = Object.keys(shown).length > 0;
  const certificate = isShown && socket.authorized ? subjectOf(shown) : undefined;
  if (certificate) return { certificate };
  return isShown ? { isCertificateRefused: true } : {};
}

/** Whom a certificate names. Undefined for more than one common name: who reads which of them is anyone's guess. */
function subjectOf(certificate: PeerCertificate): ApiRequest['certificate'] {
  const subject = certificate.subject as { CN?: string | string[]; O?: string | string[] } | undefined;
  if (typeof subject?.CN !== 'string' || subject.CN === '') return undefined;
  const organizations = subject.O === undefined ? [] : Array.isArray(subject.O) ? subject.O : [subject.O];
  return { commonName: subject.CN, organizations, fingerprint: certificate.fingerprint256 };
}

/** The whole body. Leaves the connection alone when it refuses one, so that the refusal can still be sent. */
function readBody(incoming: Incoming, clock: Clock, limits: HttpLimits): Promise<Uint8Array> {
  const { bodyBytesMax, bodyTimeoutMs } = limits;
  if (Number(incoming.headers['content-length'] ?? 0) > bodyBytesMax)
    return Promise.reject(entityTooLarge(bodyBytesMax));
  if (incoming.readableEnded) return Promise.resolve(new Uint8Array());
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    const settle = (): void => {
      timer.cancel();
      incoming.off('data', take).off('end', done).off('error', broken).off('close', broken);
    };
    const refuse = (error: ApiError): void => {
      settle();
      incoming.pause();
      reject(error);
    };
    const take = (chunk: Buffer): void => {
      length += chunk.length;
      if (length > bodyBytesMax) refuse(entityTooLarge(bodyBytesMax));
      else chunks.push(chunk);
    };
    const done = (): void => {
      settle();
      resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks, length));
    };
    const broken = (error?: Error): void => refuse(badRequest('the body ended early', error));
    const timer = clock.setTimer(
      () => refuse(new ApiError(408, 'Timeout', `the body did not arrive within ${bodyTimeoutMs / 1000} s`)),
      bodyTimeoutMs,
    );
    incoming.on('data', take).on('end', done).on('error', broken).on('close', broken);
  });
}
