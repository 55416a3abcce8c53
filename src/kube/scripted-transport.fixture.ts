import type { KubeObject } from '../api/meta.ts';
import { type Transport, TransportError, type TransportRequest, type TransportResponse } from './transport.ts';

/** A server for tests that answers what the test says, request by request. */

export interface ScriptedAnswer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** An object is sent as JSON. */
  readonly body?: unknown;
}

export type Script = (request: TransportRequest) => ScriptedAnswer | Promise<ScriptedAnswer>;

export class ScriptedTransport implements Transport {
  readonly requests: TransportRequest[] = [];
  script: Script;

  constructor(script: Script = () => ({ status: 500 })) {
    this.script = script;
  }

  /** The paths asked for, and what of the query tells them apart. */
  get paths(): string[] {
    return this.requests.map(({ path }) => path.replace(/&?timeoutSeconds=\d+/, ''));
  }

  async send(request: TransportRequest): Promise<TransportResponse> {
    this.requests.push(request);
    const { status = 200, headers = {}, body } = await this.script(request);
    if (body instanceof ScriptedWatch) body.attach(request.signal);
    return { status, headers, body: body instanceof ScriptedWatch ? body : once(body) };
  }

  close(): void {
    // Nothing is open.
  }
}

async function* once(body: unknown): AsyncGenerator<string> {
  if (body !== undefined) yield typeof body === 'string' ? body : JSON.stringify(body);
}

/** The body of a watch: what the test sends, until it ends or the request is cancelled. */
export class ScriptedWatch implements AsyncIterableIterator<string> {
  isClosed = false;
  readonly #pieces: string[] = [];
  #end: 'clean' | 'broken' | undefined;
  #wake: (() => void) | undefined;

  attach(signal: AbortSignal): void {
    signal.addEventListener('abort', () => {
      this.isClosed = true;
      this.end();
    });
  }

  send(...events: readonly { readonly type: string; readonly object: object }[]): void {
    for (const event of events) this.#pieces.push(`${JSON.stringify(event)}\n`);
    this.#wake?.();
  }

  sendText(text: string): void {
    this.#pieces.push(text);
    this.#wake?.();
  }

  end(how: 'clean' | 'broken' = 'clean'): void {
    this.#end ??= how;
    this.#wake?.();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<string>> {
    for (;;) {
      const piece = this.#pieces.shift();
      if (piece !== undefined) return { done: false, value: piece };
      if (this.#end === 'broken') throw new TransportError('the connection broke');
      if (this.#end === 'clean') return { done: true, value: undefined };
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }

  async return(): Promise<IteratorResult<string>> {
    this.isClosed = true;
    return { done: true, value: undefined };
  }
}

/** A small object of one namespace. */
export function thing(
  name: string,
  version: number,
  extra: { uid?: string; labels?: Record<string, string> } = {},
): KubeObject {
  const { uid = `uid-${name}`, labels } = extra;
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, namespace: 'default', uid, resourceVersion: String(version), ...(labels ? { labels } : {}) },
  };
}

export function bookmark(version: number, isEnd = false): { type: string; object: object } {
  const annotations = isEnd ? { annotations: { 'k8s.io/initial-events-end': 'true' } } : {};
  return { type: 'BOOKMARK', object: { metadata: { resourceVersion: String(version), ...annotations } } };
}

export function failure(code: number, reason: string, details?: object): ScriptedAnswer {
  return {
    status: code,
    body: {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message: `${code}`,
      code,
      reason,
      details,
    },
  };
}

/** Lets everything go on that does not wait for time to pass. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
}
