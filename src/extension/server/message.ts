import type { Duplex } from 'node:stream';
import { ApiError } from '../../api/status.ts';

/** Requests and answers of the extension's server, whatever carries them. */

/** Names in lower case; one value for each time that the header was sent. */
export type RequestHeaders = { readonly [name: string]: readonly string[] | undefined };

export interface ExtensionRequest {
  readonly method: string;
  /** Without the query, percent-encoded as it came. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: RequestHeaders;
  /** The common name on a client certificate of the front proxy's authority; undefined without such a certificate. */
  readonly clientName: string | undefined;
  /** The whole body. Rejects with 413 where it is too large. */
  body(): Promise<Uint8Array>;
  /** Aborted when nobody waits for the answer any more. */
  readonly signal: AbortSignal;
}

export interface ExtensionResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | AsyncIterable<Uint8Array>;
}

/** What becomes of a request for an upgrade: another connection that this one is joined with, or a plain answer. */
export type UpgradeAnswer =
  | {
      readonly kind: 'joined';
      /** Of the 101 that the client gets. */
      readonly headers: Readonly<Record<string, string | readonly string[]>>;
      readonly socket: Duplex;
      /** What the other side has already sent. */
      readonly head: Uint8Array;
    }
  | { readonly kind: 'refused'; readonly response: ExtensionResponse };

/** The first value of a header. */
export function headerOf({ headers }: Pick<ExtensionRequest, 'headers'>, name: string): string | undefined {
  return headers[name]?.[0];
}

export function jsonResponse(status: number, value: unknown): ExtensionResponse {
  return { status, headers: { 'content-type': 'application/json' }, body: `${JSON.stringify(value)}\n` };
}

/** Anything thrown, as clients of Kubernetes understand it. */
export function errorResponse(error: unknown): ExtensionResponse {
  const failure = ApiError.from(error);
  return jsonResponse(failure.code, failure.toStatus());
}
