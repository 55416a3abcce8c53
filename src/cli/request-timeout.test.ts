import { describe, expect, it } from 'vitest';
import { ManualClock } from '../env/test.ts';
import { unlessAborted } from '../kube/abort.ts';
import type { Transport, TransportRequest, TransportResponse } from '../kube/transport.ts';
import { HurriedTransport } from './request-timeout.ts';

const ANSWER: TransportResponse = { status: 200, headers: {}, body: (async function* () {})() };

/** Requests through a transport that answers when it is told to. */
function scene() {
  const clock = new ManualClock();
  const sent: TransportRequest[] = [];
  let answer: () => void = () => undefined;
  const slow: Transport = {
    send: (request) => {
      sent.push(request);
      return unlessAborted(
        new Promise((resolve) => {
          answer = () => resolve(ANSWER);
        }),
        request.signal,
      );
    },
    close: () => undefined,
  };
  const caller = new AbortController();
  const request = { method: 'GET', path: '/', headers: {}, signal: caller.signal } as const;
  return { clock, sent, caller, answer: () => answer(), send: new HurriedTransport(slow, clock, 5000).send(request) };
}

describe('a request with a time limit', () => {
  it('is given up when no answer has begun', async () => {
    const { clock, send } = scene();
    clock.advance(5000);
    await expect(send).rejects.toThrow('no answer within the 5 s of --request-timeout');
  });

  it('goes on for as long as it takes once one has, until its caller has enough', async () => {
    const { clock, sent, caller, answer, send } = scene();
    clock.advance(4000);
    answer();
    expect(await send).toBe(ANSWER);
    clock.advance(60_000);
    expect(sent[0]?.signal.aborted).toBe(false);
    caller.abort();
    expect(sent[0]?.signal.aborted).toBe(true);
  });

  it('ends for its own reason when its caller has enough', async () => {
    const { caller, send } = scene();
    caller.abort();
    await expect(send).rejects.toThrow('the request was cancelled');
  });
});
