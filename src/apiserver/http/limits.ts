/** Every bound of the HTTP face in one place, each with its reason. */

/** kube-apiserver's own limit for resource bodies; etcd would refuse larger objects anyway. */
export const BODY_BYTES_MAX = 3 * 1024 * 1024;
/** All bodies under way together: a thousand of the largest at once would be more than most machines have. */
const BODIES_BYTES_MAX = 256 * 1024 * 1024;
/** Longest path plus query: generous for label selectors, small enough to parse without care. */
const URL_LENGTH_MAX = 32 * 1024;
/** Requests in flight at once, watches and proxies not counted; past it clients are told to come back. */
export const REQUESTS_IN_FLIGHT_MAX = 1024;
/** Of those, what one user may have: whoever is asked on the way, such as a webhook, has questions of his own. */
export const REQUESTS_OF_ONE_USER_MAX = 768;
/** Watches at once: each costs a buffer, and 1 000 nodes with ten informers each must fit. */
export const WATCHES_MAX = 20_000;
/** What a watcher may leave unread before it is cut off; it then resumes from where it was. */
export const WATCH_BUFFER_BYTES_MAX = 4 * 1024 * 1024;
/** How long a client may take to send its headers, or its body, before the connection is ended. */
const HEADERS_TIMEOUT_MS = 15_000;
const BODY_TIMEOUT_MS = 30_000;
/** How long an idle connection is kept. */
const IDLE_TIMEOUT_MS = 10 * 60_000;
/** How long a response may stay unread before the connection is ended: a half-open peer never reads. */
const WRITE_TIMEOUT_MS = 60_000;
/** Streams on one HTTP/2 connection: client-go multiplexes all its watches over one. */
const STREAMS_PER_CONNECTION_MAX = 2048;
/** The default of 64 KiB throttles large lists to one window per round trip. */
export const WINDOW_BYTES = 1024 * 1024;
/** Connections at once. */
const CONNECTIONS_MAX = 10_000;
/** Smaller answers are not worth compressing. */
export const GZIP_BYTES_MIN = 128 * 1024;
/** A chunk of a streamed list: large enough to amortise a write, small enough not to hold the loop. */
export const LIST_CHUNK_BYTES = 256 * 1024;
/** Objects in one answer to an unlimited list; past it a client has to page. */
export const LIST_ITEMS_MAX = 500_000;
/** How long a client may go on sending a body whose answer it already has: closing at once would lose the answer. */
const LINGER_MS = 2_000;
/** How long the last answers may take once the server stops. */
export const STOP_TIMEOUT_MS = 2_000;
/** How often the kernel asks a silent peer whether it is still there: a half-open one never answers. */
export const KEEP_ALIVE_PROBE_MS = 30_000;

/** What the HTTP server grants each connection; tests grant less. */
export interface HttpLimits {
  readonly bodyBytesMax: number;
  readonly bodiesBytesMax: number;
  readonly urlLengthMax: number;
  readonly headersTimeoutMs: number;
  readonly bodyTimeoutMs: number;
  readonly idleTimeoutMs: number;
  readonly writeTimeoutMs: number;
  readonly lingerMs: number;
  readonly streamsPerConnectionMax: number;
  readonly connectionsMax: number;
}

export const HTTP_LIMITS: HttpLimits = {
  bodyBytesMax: BODY_BYTES_MAX,
  bodiesBytesMax: BODIES_BYTES_MAX,
  urlLengthMax: URL_LENGTH_MAX,
  headersTimeoutMs: HEADERS_TIMEOUT_MS,
  bodyTimeoutMs: BODY_TIMEOUT_MS,
  idleTimeoutMs: IDLE_TIMEOUT_MS,
  writeTimeoutMs: WRITE_TIMEOUT_MS,
  lingerMs: LINGER_MS,
  streamsPerConnectionMax: STREAMS_PER_CONNECTION_MAX,
  connectionsMax: CONNECTIONS_MAX,
};
