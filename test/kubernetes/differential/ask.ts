import { setTimeout as sleep } from 'node:timers/promises';
import { Answer, type Anything, type Api } from '../../support/api.ts';
import { ConnectionLost } from '../../support/http-client.ts';
import { Normaliser } from './normalise.ts';
import type { Group, Request } from './request.ts';

/** What is compared of the headers. */
const HEADERS = ['content-type', 'warning', 'retry-after', 'cache-control', 'location', 'allow'];
/** How long something may take to be noticed, and how often we look. */
const PATIENCE_MS = 20_000;
const INTERVAL_MS = 100;

/** An answer as it is compared. */
export interface Normalised {
  readonly status: number;
  readonly headers: unknown;
  readonly body: unknown;
}

interface Raw {
  readonly status: number;
  readonly headers: Answer['headers'];
  readonly body: Anything;
}

/**
 * Puts a group's requests to one server, one after the other, and then removes what they have made. Throws where a request that sets the
 * scene is refused, and where something does not come that was waited for: with that, all that follows could be alike for the wrong reason.
 */
export async function ask(api: Api, group: Group, namespace: string): Promise<Map<Request, Normalised>> {
  const normaliser = new Normaliser(namespace);
  const saved = new Map<string, Anything>();
  const made: string[] = [];
  const answers = new Map<Request, Normalised>();
  let left: string[];
  try {
    for (const request of group.requests) {
      const filled = fill(request, namespace, saved);
      const raw = await settled(api, filled);
      if (!request.compared && !request.until && !isDone(raw)) throw unexpected(filled, raw, 'was refused');
      if (request.method === 'POST' && raw.status === 201) made.push(...pathOfMade(filled.path, raw.body));
      if (request.save !== undefined) saved.set(request.save, raw.body);
      const answer = normalised(request, raw, normaliser);
      if (request.compared) answers.set(request, answer);
    }
  } finally {
    left = await removeAll(api, made.toReversed());
  }
  if (left.length > 0) throw new Error(`not all was removed that was made:\n${left.join('\n')}`);
  return answers;
}

/** Answers what was refused. */
async function removeAll(api: Api, paths: readonly string[]): Promise<string[]> {
  const refusals: string[] = [];
  for (const path of paths) {
    const answer = await api.request('DELETE', `${path}?gracePeriodSeconds=0`);
    // It may be gone by now, or was only rehearsed.
    if (!isDone(answer) && answer.status !== 404) refusals.push(`${path}: ${answer.status} ${answer.text}`);
  }
  return refusals;
}

function isDone({ status }: { readonly status: number }): boolean {
  return status >= 200 && status < 300;
}

function unexpected({ name, method, path }: Request, { status, body }: Raw, what: string): Error {
  return new Error(`'${name}' ${what}: ${method} ${path}: ${status} ${JSON.stringify(body)}`);
}

async function settled(api: Api, request: Request): Promise<Raw> {
  const { until = () => true } = request;
  for (let waitedMs = 0; ; waitedMs += INTERVAL_MS) {
    const raw = await once(api, request);
    if (until(raw)) return raw;
    if (waitedMs >= PATIENCE_MS) throw unexpected(request, raw, 'has waited in vain');
    await sleep(INTERVAL_MS);
  }
}

async function once(api: Api, request: Request): Promise<Raw> {
  const { method, path, body, headers, events } = request;
  if (events !== undefined) return watched(api, request, events);
  const unanswered = new AbortController();
  const answer = await Promise.race([
    api.request(method, path, { body, headers }).catch(cutOff),
    sleep(3 * PATIENCE_MS, undefined, { signal: unanswered.signal, ref: false }),
  ]);
  unanswered.abort();
  if (!answer) throw new Error(`${method} ${path} was not answered`);
  return { status: answer.status, headers: answer.headers, body: parsed(answer.text) };
}

/** A server that breaks off in the middle of an answer has answered as well. */
function cutOff(error: unknown): Answer {
  if (error instanceof ConnectionLost) return new Answer(0, {}, error.message);
  throw error;
}

/** The first events of a watch, or all until it ends. One that is refused has none. */
async function watched(api: Api, request: Request, count: number): Promise<Raw> {
  const { path, headers } = request;
  const stream = await api.watch(path, { headers });
  const tooLate = new AbortController();
  const timer = setTimeout(() => {
    tooLate.abort();
    stream.close();
  }, PATIENCE_MS);
  const events: Anything[] = [];
  const most = count === 0 ? Infinity : count;
  while (events.length < most) {
    const event = await stream.next();
    if (!event) break;
    events.push(event);
  }
  clearTimeout(timer);
  stream.close();
  const raw = { status: stream.status, headers: stream.headers, body: events };
  if (tooLate.signal.aborted || (isDone(raw) && events.length < count))
    throw unexpected(request, raw, `has not brought ${count === 0 ? 'its end' : `${count} events`}`);
  return raw;
}

function parsed(text: string): Anything {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function normalised({ view }: Request, { status, headers, body }: Raw, normaliser: Normaliser): Normalised {
  const seen = view && status < 300 ? view(body) : body;
  const kept = HEADERS.flatMap((name) => {
    const value = headers[name];
    return value === undefined ? [] : [[name, value]];
  });
  return { status, headers: normaliser.value(Object.fromEntries(kept)), body: normaliser.value(seen) };
}

/** Where an object is that was made; nowhere where the answer is no object that is kept, such as a review. */
function pathOfMade(path: string, { metadata }: Anything): string[] {
  const [bare = ''] = path.split('?');
  return metadata?.uid === undefined ? [] : [`${bare}/${metadata.name}`];
}

/** The request with everything in its place. */
function fill(request: Request, namespace: string, saved: ReadonlyMap<string, Anything>): Request {
  const text = (value: string): string =>
    value
      .replaceAll('$ns', namespace)
      .replaceAll(/\{\{([^}]+)\}\}/g, (_, place: string) => String(find(saved, place.split('.'))));
  const deep = (value: Anything): Anything => {
    if (typeof value === 'string') return text(value);
    if (Array.isArray(value)) return value.map(deep);
    if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return value;
    return Object.fromEntries(Object.entries(value).map(([key, member]) => [text(key), deep(member)]));
  };
  const { path, body, headers } = request;
  return { ...request, path: text(path), body: deep(body), ...(headers && { headers: deep(headers) }) };
}

function find(saved: ReadonlyMap<string, Anything>, [name = '', ...rest]: readonly string[]): Anything {
  let value = saved.get(name);
  for (const key of rest) value = value?.[key];
  return value;
}
