import { describe, expect, it } from 'vitest';
import {
  InProcessTransport,
  type LocalHandler,
  type LocalRequest,
  type LocalResponse,
} from './in-process-transport.ts';
import { settle } from './scripted-transport.fixture.ts';
import { TransportError, type TransportResponse } from './transport.ts';

const IDENTITY = { user: 'system:kube-scheduler', groups: ['system:masters'] };
const never = new AbortController().signal;

function transport(handle: LocalHandler): InProcessTransport {
  return new InProcessTransport(handle, IDENTITY);
}

const answering = (body: LocalResponse['body'], headers: LocalResponse['headers'] = {}): InProcessTransport =>
  transport(async () => ({ status: 200, headers, body }));

async function textOf(response: TransportResponse): Promise<string> {
  let text = '';
  for await (const piece of response.body) text += piece;
  return text;
}

const GET = { method: 'GET', path: '/', headers: {}, signal: never } as const;

describe('in process', () => {
  it('a request arrives as it would over the wire', async () => {
    let seen: LocalRequest | undefined;
    const local = transport(async (request) => {
      seen = request;
      return { status: 201, headers: {}, body: '' };
    });
    const headers = { 'content-type': 'application/json' };
    const request = {
      method: 'POST',
      path: '/api/v1/pods?a=b%20c&d',
      headers,
      body: '{"a":"ä"}',
      signal: never,
    } as const;
    expect((await local.send(request)).status).toBe(201);
    expect(seen).toMatchObject({ method: 'POST', path: '/api/v1/pods', headers, remoteAddress: '127.0.0.1' });
    expect([...(seen?.query ?? [])]).toEqual([
      ['a', 'b c'],
      ['d', ''],
    ]);
    expect(Buffer.from((await seen?.body()) ?? []).toString()).toBe('{"a":"ä"}');
    expect(seen?.certificate).toMatchObject({ commonName: IDENTITY.user, organizations: IDENTITY.groups });
  });

  it('an answer comes back as text, however it is made', async () => {
    async function* pieces(...all: (string | Uint8Array)[]): AsyncGenerator<string | Uint8Array> {
      yield* all;
    }
    const bytes = Buffer.from('größer');
    expect(await textOf(await answering('größer').send(GET))).toBe('größer');
    expect(await textOf(await answering(bytes).send(GET))).toBe('größer');
    expect(await textOf(await answering(pieces('größ', Buffer.from('er'))).send(GET))).toBe('größer');
    for (let cut = 1; cut < bytes.length; cut++) {
      const cutting = answering(pieces(bytes.subarray(0, cut), bytes.subarray(cut)));
      expect(await textOf(await cutting.send(GET))).toBe('größer');
    }
    expect((await answering('', { a: 'b', warning: ['one', 'two'] }).send(GET)).headers).toEqual({
      a: 'b',
      warning: 'one, two',
    });
  });

  it('a handler that fails is a server that does not answer', async () => {
    const failing = transport(() => Promise.reject(new Error('a bug')));
    await expect(failing.send(GET)).rejects.toBeInstanceOf(TransportError);
  });

  it('an answer that the server breaks off is a broken connection', async () => {
    async function* body(): AsyncGenerator<string> {
      yield 'one';
      throw new Error('too slow');
    }
    const response = await answering(body()).send(GET);
    await expect(textOf(response)).rejects.toBeInstanceOf(TransportError);
  });

  it('a request that is given up ends at once; what it did is done', async () => {
    let answer: (response: LocalResponse) => void = () => undefined;
    let isBodyEnded = false;
    async function* body(): AsyncGenerator<string> {
      try {
        yield 'one';
        yield 'two';
      } finally {
        isBodyEnded = true;
      }
    }
    let count = 0;
    const local = transport(() => {
      count++;
      return new Promise((resolve) => (answer = resolve));
    });
    const stop = new AbortController();
    const sending = local.send({ ...GET, signal: stop.signal });
    stop.abort();
    await expect(sending).rejects.toThrow('the request was cancelled');
    answer({ status: 200, headers: {}, body: body() });
    await settle();
    expect(isBodyEnded).toBe(true);
    await expect(local.send({ ...GET, signal: stop.signal })).rejects.toThrow('the request was cancelled');
    expect(count).toBe(1);
    local.close();
  });
});
