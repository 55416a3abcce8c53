import { errorMessage } from '../../api/error-message.ts';
import { formatMicroTime } from '../../api/meta.ts';
import type { Status } from '../../api/status.ts';
import type { Env, Timer } from '../../env/ports.ts';
import type { ApiRequest, RequestInfo, UserInfo } from '../http/message.ts';

/**
 * The audit log: one audit.k8s.io/v1 Event per request, at level Metadata. Bodies are never looked at, and what errors
 * say about those that hold secrets or tokens is left out; what may be secret in a URL is struck out.
 *
 * Writing is buffered and never holds up a request. When the sink cannot keep up, events are dropped and counted:
 * an audit log that stops the cluster helps nobody, one that lies about its gaps even less.
 */

/** Where the lines go. One write at a time. */
export interface AuditSink {
  /** Appends whole lines. */
  write(lines: string): Promise<void>;
  close(): Promise<void>;
}

/** A request and how it ended. */
export interface AuditedRequest {
  readonly request: ApiRequest;
  readonly info: RequestInfo;
  readonly user: UserInfo;
  /** Who it really was, where `user` is impersonated. */
  readonly impersonator?: UserInfo;
  readonly receivedMs: number;
  /** Long-running requests are logged when they start, too. */
  readonly stage?: 'ResponseStarted' | 'ResponseComplete';
  readonly code: number;
  /** What was answered to a request that failed. */
  readonly failure?: Pick<Status, 'reason' | 'message'>;
  readonly decision: 'allow' | 'forbid';
  readonly reason?: string;
}

const FLUSH_BYTES = 64 * 1024;
const FLUSH_DELAY_MS = 100;
/** About ten thousand events: seconds of the busiest traffic. */
const PENDING_BYTES_MAX = 16 * 1024 * 1024;
/** Clients choose these, so they are cut. */
const URI_LENGTH_MAX = 4096;
const USER_AGENT_LENGTH_MAX = 512;
const MESSAGE_LENGTH_MAX = 1024;

const SECRET_PARAMETERS: readonly string[] = ['token', 'access_token', 'id_token', 'password', 'secret'];

/** Resources whose bodies hold secrets, and the codes of answers that speak of bodies. */
const SECRET_RESOURCES: ReadonlySet<string> = new Set(['secrets', 'tokenreviews', 'serviceaccounts/token']);
const BODY_CODES: ReadonlySet<number> = new Set([400, 409, 422]);

export class AuditLog {
  readonly #env: Env;
  readonly #sink: AuditSink;
  #lines: string[] = [];
  #pendingBytes = 0;
  #dropped = 0;
  #timer: Timer | undefined;
  #writing: Promise<void> | undefined;

  constructor(env: Env, sink: AuditSink) {
    this.#env = env;
    this.#sink = sink;
  }

  /** How many events were lost because the sink was too slow or failed. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Notes a request. Returns at once. */
  record(entry: AuditedRequest): void {
    const line = `${JSON.stringify(this.#event(entry))}\n`;
    if (this.#pendingBytes + line.length > PENDING_BYTES_MAX) return this.#drop(1, 'the audit log is too slow');
    this.#lines.push(line);
    this.#pendingBytes += line.length;
    if (this.#pendingBytes >= FLUSH_BYTES) this.#flush();
    else this.#timer ??= this.#env.clock.setTimer(() => this.#flush(), FLUSH_DELAY_MS);
  }

  /** Writes what is pending and closes the sink. */
  async stop(): Promise<void> {
    while (this.#lines.length > 0 || this.#writing) {
      this.#flush();
      await this.#writing;
    }
    this.#timer?.cancel();
    await this.#sink.close();
  }

  #flush(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    // A write under way takes along what has come meanwhile, and often nothing is left.
    if (this.#lines.length === 0) return;
    // One write at a time; what comes meanwhile goes with the next.
    this.#writing ??= this.#write();
  }

  /** Writes until nothing is left. There has to be something: it must not end before it is noted as under way. */
  async #write(): Promise<void> {
    while (this.#lines.length > 0) {
      const lines = this.#lines;
      this.#lines = [];
      const text = lines.join('');
      try {
        await this.#sink.write(text);
      } catch (error) {
        this.#drop(lines.length, errorMessage(error));
      }
      this.#pendingBytes -= text.length;
    }
    this.#writing = undefined;
  }

  #drop(count: number, cause: string): void {
    // The first one and then every thousandth: a log about a log must not flood either.
    if (this.#dropped === 0 || Math.floor(this.#dropped / 1000) !== Math.floor((this.#dropped + count) / 1000)) {
      this.#env.log.error('audit events dropped', { dropped: this.#dropped + count, cause });
    }
    this.#dropped += count;
  }

  #event(entry: AuditedRequest): object {
    const { request, info, code, failure } = entry;
    const real = entry.impersonator ?? entry.user;
    return {
      kind: 'Event',
      apiVersion: 'audit.k8s.io/v1',
      level: 'Metadata',
      auditID: this.#env.random.uuid(),
      stage: entry.stage ?? 'ResponseComplete',
      requestURI: uriOf(request),
      verb: info.verb,
      user: real,
      ...(entry.impersonator ? { impersonatedUser: entry.user } : {}),
      sourceIPs: [request.remoteAddress],
      userAgent: request.headers['user-agent']?.slice(0, USER_AGENT_LENGTH_MAX),
      ...(info.isResource ? { objectRef: objectRefOf(info) } : {}),
      responseStatus: {
        metadata: {},
        ...(failure ? { status: 'Failure', reason: failure.reason, ...messageOf(entry, failure) } : {}),
        code,
      },
      requestReceivedTimestamp: formatMicroTime(entry.receivedMs),
      stageTimestamp: formatMicroTime(this.#env.clock.now()),
      annotations: {
        'authorization.k8s.io/decision': entry.decision,
        'authorization.k8s.io/reason': entry.reason ?? '',
      },
    };
  }
}

/** Why it failed; not where a message about the body would repeat what must not be written down. */
function messageOf({ info, code }: AuditedRequest, { message }: Pick<Status, 'message'>): { message?: string } {
  const isSecret = SECRET_RESOURCES.has(
    info.subresource === '' ? info.resource : `${info.resource}/${info.subresource}`,
  );
  if (message === undefined || (isSecret && BODY_CODES.has(code))) return {};
  return { message: message.slice(0, MESSAGE_LENGTH_MAX) };
}

/** Absent fields are left out, as on the wire. */
function objectRefOf(info: RequestInfo): object {
  const fields = {
    resource: info.resource,
    namespace: info.namespace,
    name: info.name,
    apiGroup: info.group,
    apiVersion: info.version,
    subresource: info.subresource,
  };
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== ''));
}

function uriOf(request: ApiRequest): string {
  let { query } = request;
  if (SECRET_PARAMETERS.some((name) => query.has(name))) {
    query = new URLSearchParams(query);
    for (const name of SECRET_PARAMETERS) if (query.has(name)) query.set(name, 'REDACTED');
  }
  const text = query.toString();
  return `${request.path}${text === '' ? '' : `?${text}`}`.slice(0, URI_LENGTH_MAX);
}
