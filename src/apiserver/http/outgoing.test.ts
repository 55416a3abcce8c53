import { once } from 'node:events';
import { PassThrough, Readable } from 'node:stream';
import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { realClock } from '../../env/real.ts';
import { BodyMemory } from './body-memory.ts';
import type { AnswerHeaders } from './carrier.ts';
import { Exchange } from './exchange.ts';
import { GZIP_BYTES_MIN, HTTP_LIMITS } from './limits.ts';
import type { ApiResponse } from './message.ts';
import { send } from './outgoing.ts';

/** What reaches a client that is, or is not, on this machine. */
async function answer(
  body: ApiResponse['body'],
  acceptEncoding: string | undefined,
  isLocal = false,
): Promise<{ headers: AnswerHeaders; bytes: Buffer }> {
  const writable = new PassThrough();
  let headers: AnswerHeaders = {};
  const exchange = new Exchange({
    carrier: {
      method: 'GET',
      url: '/',
      headers: { 'accept-encoding': acceptEncoding },
      readable: Readable.from([]),
      writable,
      isComplete: true,
      writeHead: (_status, sent) => {
        headers = sent;
      },
      cutOff: () => writable.destroy(),
    },
    peer: { remoteAddress: '192.0.2.1', isLocal },
    clock: realClock,
    limits: HTTP_LIMITS,
    memory: new BodyMemory(1),
    onClose: () => undefined,
  });
  const chunks: Buffer[] = [];
  writable.on('data', (chunk: Buffer) => chunks.push(chunk));
  const ended = once(writable, 'end');
  await send(exchange, { status: 200, headers: { 'content-type': 'application/json' }, body });
  await ended;
  return { headers, bytes: Buffer.concat(chunks) };
}

const large = JSON.stringify({ data: 'x'.repeat(GZIP_BYTES_MIN) });

describe('compression', () => {
  it.each(['gzip', 'deflate, gzip', 'gzip;q=0.5, br', 'GZIP , *;q=0'])(
    'is given to who accepts %j',
    async (accepted) => {
      const { headers, bytes } = await answer(large, accepted);
      expect(headers).toMatchObject({ 'content-encoding': 'gzip', 'content-length': String(bytes.length) });
      expect(bytes.length).toBeLessThan(large.length / 10);
      expect(gunzipSync(bytes).toString()).toBe(large);
    },
  );

  it.each<[string, string, string | undefined, boolean]>([
    ['asks for none', large, undefined, false],
    ['asks for another', large, 'br, xgzip', false],
    ['will not have it', large, 'br, gzip;q=0', false],
    ['is on this machine', large, 'gzip', true],
    ['gets little', '{}', 'gzip', false],
  ])('is not given to who %s', async (_who, body, accepted, isLocal) => {
    const { headers, bytes } = await answer(body, accepted, isLocal);
    expect(headers['content-encoding']).toBeUndefined();
    expect(bytes.toString()).toBe(body);
  });
});
