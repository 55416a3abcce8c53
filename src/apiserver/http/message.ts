import type { FieldRequirement } from '../../machinery/selectors.ts';

/** HTTP messages, whatever carries them: a TLS socket, or a call inside this process. */

/** Who is asking, as authentication found it. */
export interface UserInfo {
  readonly username: string;
  readonly uid?: string;
  readonly groups: readonly string[];
  readonly extra?: { readonly [key: string]: readonly string[] };
}

export interface ApiRequest {
  readonly method: string;
  /** Without the query, percent-encoded as it came. */
  readonly path: string;
  readonly query: URLSearchParams;
  /** Names in lower case. */
  readonly headers: { readonly [name: string]: string | undefined };
  /** Reads the whole body; throws 413 past the limit. */
  body(): Promise<Uint8Array>;
  /** The verified client certificate's subject, if the connection has one. */
  readonly certificate?: {
    readonly commonName: string;
    readonly organizations: readonly string[];
    readonly fingerprint: string;
  };
  /** True where the client has shown a certificate that does not hold: expired, of another authority, for another use. */
  readonly isCertificateRefused?: boolean;
  readonly remoteAddress: string;
  /** Aborted when the client goes away or the server stops. */
  readonly signal: AbortSignal;
}

export interface ApiResponse {
  readonly status: number;
  readonly headers: { readonly [name: string]: string | readonly string[] };
  /** An iterable is streamed, each chunk flushed; it is ended (`return`) when the client goes away. */
  readonly body: string | Uint8Array | AsyncIterable<string | Uint8Array>;
}

/** What a request asks for, parsed from its method and path. */
export interface RequestInfo {
  /** `get`, `list`, `watch`, `create`, ...; empty for a method that is none of these; for a path that is no resource, the method in lower case. */
  readonly verb: string;
  readonly isResource: boolean;
  readonly path: string;
  readonly group: string;
  readonly version: string;
  readonly namespace: string;
  /** The plural; empty for a path that is no resource. */
  readonly resource: string;
  readonly subresource: string;
  readonly name: string;
  /** What follows the subresource (proxy paths), without the leading slash. */
  readonly rest: string;
  /** What a list or a watch selects by fields; absent where it does not. */
  readonly fieldRequirements?: readonly FieldRequirement[];
}
