/**
 * How requests reach an API server. Three implementations: HTTPS, in process, and one that injects faults; what is
 * written against this port cannot tell them apart.
 */

export interface TransportRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** With its query, percent-encoded. */
  readonly path: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Ends the request, and the body of its answer, at once. */
  readonly signal: AbortSignal;
}

export interface TransportResponse {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** Pieces of the body as they come. Throws TransportError when the connection breaks; must be read or returned. */
  readonly body: AsyncIterable<string>;
}

export interface Transport {
  /** Resolves with the head of the answer. Rejects with TransportError when none came: nobody knows what was done. */
  send(request: TransportRequest): Promise<TransportResponse>;
  close(): void;
}

/** The server could not be reached, or fell silent. Whether it did what was asked is unknown. */
export class TransportError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'TransportError';
  }
}
