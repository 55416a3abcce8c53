import { Agent, request as httpsRequest } from 'node:https';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Answer, type Api, encodeBody, EventStream, type RequestOptions } from '../support/api.ts';
import { Godwit } from '../support/godwit.ts';
import { ConnectionLost, HttpClient } from '../support/http-client.ts';
import { configMap } from '../support/objects.ts';

/** The same over both protocols of the one port. What is said is tested in process; here is how it travels. */

const PATH = '/api/v1/namespaces/default/configmaps';

let godwit: Godwit;
let agent: Agent;
let second: HttpClient;

beforeAll(async () => {
  godwit = await Godwit.start();
  const access = godwit.access();
  agent = new Agent({ ca: access.ca, cert: access.certificate, key: access.key, keepAlive: true, maxSockets: 1 });
  second = new HttpClient(access);
});
afterAll(async () => {
  second.close();
  agent.destroy();
  await godwit.remove();
});

/** HTTP/1.1, over one connection that is kept. */
const first: Api = {
  request: (method, path, options) => plain(method, path, options ?? {}),
  watch: (path, options) => plainWatch(path, options ?? {}),
};

function plain(method: string, path: string, options: RequestOptions): Promise<Answer> {
  const { bytes, headers } = encodeBody(options);
  return new Promise((resolve, reject) => {
    const request = httpsRequest(new URL(path, godwit.access().url), { method, headers, agent }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => (text += chunk));
      response.on('end', () => {
        if (response.complete) resolve(new Answer(response.statusCode ?? 0, response.headers, text));
        else reject(new ConnectionLost());
      });
    });
    request.on('error', (error) => reject(new ConnectionLost(error)));
    request.end(bytes);
  });
}

function plainWatch(path: string, { headers }: RequestOptions): Promise<EventStream> {
  const { ca, certificate: cert, key, url } = godwit.access();
  return new Promise((resolve, reject) => {
    // A connection of its own: this one is busy until the watch ends.
    const request = httpsRequest(
      new URL(path, url),
      { headers: { ...headers }, ca, cert, key, agent: false },
      (response) => {
        const stream = new EventStream(response.statusCode ?? 0, response.headers, () => request.destroy());
        response.setEncoding('utf8');
        response.on('data', (chunk: string) => stream.push(chunk));
        response.on('end', () => stream.finish(response.complete ? 'clean' : 'broken'));
        response.on('close', () => stream.finish('broken'));
        resolve(stream);
      },
    );
    request.on('error', (error) => reject(new ConnectionLost(error)));
    request.end();
  });
}

describe.each([
  ['HTTP/1.1', () => first],
  ['HTTP/2', () => second],
])('%s', (protocol, client) => {
  const suffix = protocol.endsWith('2') ? 'two' : 'one';

  it('carries writes and answers', async () => {
    const made = (
      await client().request('POST', PATH, { body: configMap(suffix, { data: { text: 'grüße, 世界' } }) })
    ).expect(201);
    expect(made.headers).toMatchObject({ 'content-type': 'application/json', 'cache-control': 'no-cache, private' });
    expect(Number(made.headers['content-length'])).toBe(Buffer.byteLength(made.text));
    const read = (await client().request('GET', `${PATH}/${suffix}`)).expect(200);
    expect(read.json).toEqual(made.json);
    expect(read.json.data.text).toBe('grüße, 世界');
    const patch = {
      headers: { 'content-type': 'application/merge-patch+json' },
      body: { data: { text: null, more: '1' } },
    };
    expect((await client().request('PATCH', `${PATH}/${suffix}`, patch)).expect(200).json.data).toEqual({ more: '1' });
    (await client().request('DELETE', `${PATH}/${suffix}`)).expect(200);
  });

  it('answers HEAD with the head alone', async () => {
    for (const path of ['/api/v1/namespaces/default', '/api/v1/namespaces', '/api/v1/namespaces/missing', '/version']) {
      const get = await client().request('GET', path);
      const head = await client().request('HEAD', path);
      expect([path, head.status, head.text, head.headers['content-type'], head.headers['content-length']]).toEqual([
        path,
        get.status,
        '',
        get.headers['content-type'],
        get.headers['content-length'],
      ]);
    }
  });

  it('brings warnings over, whatever letters they are in', async () => {
    const body = { metadata: { name: 'warned' }, größe: 1, spec: 2 };
    const answer = (await client().request('POST', `${PATH}?dryRun=All`, { body })).expect(201);
    // Headers are bytes; Node shows each as a character of its own.
    const texts = answer.warnings.map((text) => Buffer.from(text, 'latin1').toString('utf8'));
    expect(texts).toEqual(['unknown field "größe"', 'unknown field "spec"']);
  });

  it('streams large lists whole', async () => {
    const data = { text: 'x'.repeat(300_000) };
    for (let index = 0; index < 8; index++)
      (await client().request('POST', PATH, { body: configMap(`large-${suffix}-${index}`, { data }) })).expect(201);
    const list = (await client().request('GET', PATH)).expect(200);
    const names = list.json.items.map((item: { metadata: { name: string } }) => item.metadata.name);
    expect(names.filter((name: string) => name.startsWith(`large-${suffix}`))).toHaveLength(8);
    expect(list.headers['content-length']).toBeUndefined();
    (await client().request('HEAD', PATH)).expect(200);
    (await client().request('DELETE', PATH)).expect(200);
  });

  it('takes one large object after the other', async () => {
    // Each answer is as large as its request, so that one is often still being written when the next comes in.
    const data = { text: 'x'.repeat(300_000) };
    (await client().request('POST', PATH, { body: configMap(`echo-${suffix}`) })).expect(201);
    for (let index = 0; index < 30; index++) {
      const body = configMap(`echo-${suffix}`, { data: { ...data, index: String(index) } });
      expect((await client().request('PUT', `${PATH}/echo-${suffix}`, { body })).expect(200).json.data.index).toBe(
        String(index),
      );
    }
    (await client().request('DELETE', `${PATH}/echo-${suffix}`)).expect(200);
  });

  it('goes on over the same connection after every kind of answer', async () => {
    for (let round = 0; round < 3; round++) {
      expect((await client().request('GET', `${PATH}/missing`)).status).toBe(404);
      expect((await client().request('POST', PATH, { body: '{"broken"' })).status).toBe(400);
      expect(
        (await client().request('POST', PATH, { body: 'x', headers: { 'content-type': 'text/plain' } })).status,
      ).toBe(415);
      expect((await client().request('PUT', '/version', { body: {} })).status).toBe(405);
      expect((await client().request('GET', '/healthz')).text).toBe('ok');
    }
  });

  it('carries watches to their clean end', async () => {
    const selector = `fieldSelector=metadata.name%3Dwatched-${suffix}`;
    const stream = await client().watch(`${PATH}?watch=1&timeoutSeconds=2&${selector}`);
    expect([stream.status, stream.headers['content-type'], stream.headers['content-length']]).toEqual([
      200,
      'application/json',
      undefined,
    ]);
    (await second.request('POST', PATH, { body: configMap(`watched-${suffix}`) })).expect(201);
    expect((await stream.take(1))[0]).toMatchObject({
      type: 'ADDED',
      object: { metadata: { name: `watched-${suffix}` } },
    });
    expect(await stream.ended()).toBe('clean');
    (await second.request('DELETE', `${PATH}/watched-${suffix}`)).expect(200);
  });
});
