import type { Random } from '../env/ports.ts';
import { readLines } from '../kube/lines.ts';
import type { Transport, TransportRequest, TransportResponse } from '../kube/transport.ts';

/** Transports with bugs: they do what no fault does, and no client can notice. */

/** Takes a request for done that was never sent, now and then. */
export function swallowing(
  inner: Transport,
  random: Random,
  options: { readonly chance: number; readonly isSwallowed: (request: TransportRequest) => boolean },
): Transport {
  return {
    send: (request) =>
      options.isSwallowed(request) && random.number() < options.chance
        ? Promise.resolve(success(request))
        : inner.send(request),
    close: () => inner.close(),
  };
}

/** Says that objects are not there which are, now and then. */
export function denying(
  inner: Transport,
  random: Random,
  options: { readonly chance: number; readonly isDenied: (request: TransportRequest) => boolean },
): Transport {
  return {
    send: (request) =>
      request.method === 'GET' && options.isDenied(request) && random.number() < options.chance
        ? Promise.resolve(notFound())
        : inner.send(request),
    close: () => inner.close(),
  };
}

/** Answers with objects of which nothing is left, now and then. */
export function hollowing(
  inner: Transport,
  random: Random,
  options: { readonly chance: number; readonly isHollow: (request: TransportRequest) => boolean },
): Transport {
  return {
    send: (request) =>
      request.method === 'GET' && options.isHollow(request) && random.number() < options.chance
        ? Promise.resolve({ status: 200, headers: { 'content-type': 'application/json' }, body: pieces(['{}']) })
        : inner.send(request),
    close: () => inner.close(),
  };
}

/** Takes what it reads for something else, where the path has this. */
export function misreading(inner: Transport, misread: (text: string) => string, path = ''): Transport {
  return {
    send: async (request) => {
      const response = await inner.send(request);
      return request.method === 'GET' && request.path.includes(path)
        ? { ...response, body: each(response.body, misread) }
        : response;
    },
    close: () => inner.close(),
  };
}

async function* each(body: AsyncIterable<string>, change: (line: string) => string): AsyncGenerator<string> {
  for await (const line of readLines(body)) yield `${change(line)}\n`;
}

/** Writes something else than it was told to, now and then. */
export function miswriting(
  inner: Transport,
  random: Random,
  options: { readonly chance: number; readonly miswrite: (body: string, path: string) => string },
): Transport {
  return {
    send: (request) => {
      const { body, path } = request;
      const spoilt = body === undefined ? undefined : options.miswrite(body, path);
      const isSpoilt = spoilt !== undefined && spoilt !== body && random.number() < options.chance;
      return inner.send(isSpoilt ? { ...request, body: spoilt } : request);
    },
    close: () => inner.close(),
  };
}

/** Deletes at once what was to be deleted with some grace. */
export function hasty(inner: Transport): Transport {
  return {
    send: (request) => inner.send(request.method === 'DELETE' ? { ...request, body: withoutGrace(request) } : request),
    close: () => inner.close(),
  };
}

function withoutGrace({ body = '{}' }: TransportRequest): string {
  return JSON.stringify({ ...(JSON.parse(body) as object), gracePeriodSeconds: 0 });
}

function notFound(): TransportResponse {
  const body = '{"kind":"Status","status":"Failure","reason":"NotFound","message":"not found","code":404}';
  return { status: 404, headers: { 'content-type': 'application/json' }, body: pieces([body]) };
}

/** What would be answered, as far as can be told from what was asked. */
function success({ method, body }: TransportRequest): TransportResponse {
  const text = method === 'PUT' && body !== undefined ? body : '{"kind":"Status","metadata":{}}';
  return { status: 200, headers: { 'content-type': 'application/json' }, body: pieces([text]) };
}

async function* pieces(texts: readonly string[]): AsyncGenerator<string> {
  yield* texts;
}

/** Loses events of watches, now and then, without breaking them off. */
export function forgetful(
  inner: Transport,
  random: Random,
  options: { readonly chance: number; readonly isForgotten: (request: TransportRequest, line: string) => boolean },
): Transport {
  const { chance, isForgotten } = options;
  return {
    send: async (request) => {
      const response = await inner.send(request);
      if (!/[?&]watch=true/.test(request.path) || response.status !== 200) return response;
      const isLost = (line: string): boolean => isForgotten(request, line) && random.number() < chance;
      return { ...response, body: without(response.body, isLost) };
    },
    close: () => inner.close(),
  };
}

async function* without(body: AsyncIterable<string>, isLost: (line: string) => boolean): AsyncGenerator<string> {
  for await (const line of readLines(body)) if (!isLost(line)) yield `${line}\n`;
}
