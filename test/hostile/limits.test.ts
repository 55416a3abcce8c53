import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { REQUESTS_IN_FLIGHT_MAX, REQUESTS_OF_ONE_USER_MAX, WATCHES_MAX } from '../../src/apiserver/http/limits.ts';
import type { ApiRequest, ApiResponse } from '../../src/apiserver/http/message.ts';
import { InProcessApi } from '../support/in-process.ts';

/** More at once than there is room for: who comes too late is told when to come again, and all others are served. */

const ROOT = '/api/v1/namespaces/default/configmaps';

let api: InProcessApi;
beforeEach(async () => {
  api = await InProcessApi.start();
});
afterEach(() => api.stop());

describe('requests at once', () => {
  /** A request whose body comes when it is let. */
  function slowly(name: string, arrival: Promise<void>, commonName = 'admin'): Promise<ApiResponse> {
    const request: ApiRequest = {
      method: 'POST',
      path: ROOT,
      query: new URLSearchParams(),
      headers: { 'content-type': 'application/json' },
      body: async () => {
        await arrival;
        return Buffer.from(JSON.stringify({ metadata: { name } }));
      },
      certificate: { commonName, organizations: ['system:masters'], fingerprint: 'AA' },
      remoteAddress: '127.0.0.1',
      signal: new AbortController().signal,
    };
    return api.core.handle(request);
  }

  it('are bounded, and those under way are all carried out', async () => {
    let arrive = (): void => undefined;
    const arrival = new Promise<void>((resolve) => {
      arrive = resolve;
    });
    const underWay = Array.from({ length: REQUESTS_IN_FLIGHT_MAX }, (_, index) =>
      slowly(`c${index}`, arrival, `admin-${index % 2}`),
    );
    for (const path of [ROOT, '/version', '/metrics']) {
      const refused = await api.request('GET', path);
      expect(refused.expect(429).json).toMatchObject({
        kind: 'Status',
        reason: 'TooManyRequests',
        details: { retryAfterSeconds: 1 },
      });
      expect(refused.headers['retry-after']).toBe('1');
    }
    for (const path of ['/livez', '/readyz']) expect((await api.request('GET', path)).expect(200).text).toBe('ok');
    arrive();
    expect(new Set((await Promise.all(underWay)).map(({ status }) => status))).toEqual(new Set([201]));
    const { items } = (await api.request('GET', `${ROOT}?limit=2000`)).expect(200).json;
    expect(items.length).toBeGreaterThanOrEqual(REQUESTS_IN_FLIGHT_MAX);
  });

  it('of one user leave room for others', async () => {
    let arrive = (): void => undefined;
    const arrival = new Promise<void>((resolve) => {
      arrive = resolve;
    });
    const underWay = Array.from({ length: REQUESTS_OF_ONE_USER_MAX }, (_, index) => slowly(`c${index}`, arrival));
    const [tooMuch, another] = ['admin', 'another'].map((user) => slowly(`of-${user}`, arrival, user));
    expect((await tooMuch)?.status).toBe(429);
    arrive();
    expect((await another)?.status).toBe(201);
    expect(new Set((await Promise.all(underWay)).map(({ status }) => status))).toEqual(new Set([201]));
    expect((await slowly('later', arrival)).status).toBe(201);
  });
});

describe('watches at once', () => {
  it('are bounded, and room is made by those who leave', async () => {
    const { metadata } = (await api.request('GET', ROOT)).json;
    const path = `${ROOT}?watch=1&resourceVersion=${metadata.resourceVersion}`;
    const open: ApiResponse[] = [];
    for (let count = 0; count < WATCHES_MAX; count++) open.push(await api.handle('GET', path));
    expect(new Set(open.map(({ status }) => status))).toEqual(new Set([200]));
    const refused = await api.request('GET', path);
    expect(refused.expect(429).json).toMatchObject({ kind: 'Status', details: { retryAfterSeconds: 5 } });
    // What is no watch has its own room.
    (await api.request('GET', ROOT)).expect(200);
    const leave = async ({ body }: ApiResponse): Promise<unknown> =>
      (body as AsyncIterable<string>)[Symbol.asyncIterator]().return?.();
    await leave(open[0] as ApiResponse);
    const another = await api.handle('GET', path);
    expect(another.status).toBe(200);
    await Promise.all([...open.slice(1), another].map(leave));
  });
});
