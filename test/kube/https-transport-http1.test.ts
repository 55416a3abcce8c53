import type { IncomingMessage, ServerResponse } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import { ManualClock } from '../../src/env/test.ts';
import { TransportError } from '../../src/kube/transport.ts';
import { eventually } from '../support/eventually.ts';
import { cleanUp, cleanups, pki, request, textOf, transportTo } from './https-scene.ts';
import { closed, http1Server, Http2TestServer, listen } from './tls-server.ts';

/** The same where a server, or a proxy before it, speaks nothing newer. */

afterEach(cleanUp);

describe('a server that speaks only HTTP/1.1', () => {
  async function start(handle: (incoming: IncomingMessage, outgoing: ServerResponse, body: string) => void) {
    const server = http1Server(pki);
    const received: string[] = [];
    server.on('request', (incoming, outgoing) => {
      let body = '';
      incoming.on('data', (piece) => (body += String(piece)));
      incoming.on('end', () => {
        received.push(`${incoming.method} ${incoming.url}`);
        handle(incoming, outgoing, body);
      });
    });
    const port = await listen(server);
    cleanups.push(async () => {
      server.closeAllConnections();
      await closed(server);
    });
    return { server, port, received };
  }

  it('is spoken to in its language', async () => {
    const { port, received } = await start((incoming, outgoing, body) => {
      outgoing.writeHead(201, { 'x-thing': 'yes' });
      outgoing.end(`${incoming.headers.authorization} ${String(incoming.headers['impersonate-group'])} ${body}`);
    });
    const { transport } = transportTo(port, {
      credential: { authorization: 'Bearer secret' },
      impersonation: { 'impersonate-group': ['a', 'b'] },
    });
    for (let count = 0; count < 3; count++) {
      const response = await transport.send(request('POST', '/api', { body: 'größer' }));
      expect([response.status, response.headers['x-thing'], await textOf(response)]).toEqual([
        201,
        'yes',
        'Bearer secret a, b größer',
      ]);
    }
    expect(received).toEqual(['POST /api', 'POST /api', 'POST /api']);
  });

  it('can break, be silent, be cancelled and be closed', async () => {
    const clock = new ManualClock();
    const { server, port, received } = await start((incoming, outgoing) => {
      if (incoming.url === '/break') return outgoing.destroy();
      if (incoming.url === '/slow') return undefined;
      outgoing.writeHead(200, incoming.url === '/cut' ? { 'content-length': '100' } : {});
      outgoing.write('one\n');
      if (incoming.url === '/cut') setImmediate(() => outgoing.destroy());
      return undefined;
    });
    const { transport } = transportTo(port, {}, clock);
    await expect(transport.send(request('POST', '/break'))).rejects.toThrow(
      'the connection broke before an answer came',
    );
    await expect(textOf(await transport.send(request('GET', '/cut')))).rejects.toBeInstanceOf(TransportError);
    const stop = new AbortController();
    const slow = transport.send(request('GET', '/slow', { signal: stop.signal }));
    const late = transport.send(request('GET', '/slow'));
    const watch = await transport.send(request('GET', '/watch'));
    const other = await transport.send(request('GET', '/watch', { signal: stop.signal }));
    for (const promise of [slow, late]) promise.catch(() => undefined);
    await eventually(() => expect(received).toHaveLength(6));
    stop.abort();
    await expect(slow).rejects.toThrow('cancelled');
    await expect(textOf(other)).rejects.toThrow('cancelled');
    const pieces = watch.body[Symbol.asyncIterator]();
    await pieces.next();
    clock.advance(65_000);
    await expect(late).rejects.toThrow('no answer within 65 s');
    clock.advance(115_000);
    await expect(pieces.next()).rejects.toThrow('the server no longer answers');
    const last = await transport.send(request('GET', '/watch'));
    transport.close();
    await expect(textOf(last)).rejects.toThrow('the transport was closed');
    expect(server.listening).toBe(true);
  });

  it('can turn into one that speaks HTTP/2', async () => {
    const { server, port } = await start((_incoming, outgoing) => void outgoing.end('{}'));
    const { transport } = transportTo(port);
    expect(await textOf(await transport.send(request()))).toBe('{}');
    server.closeAllConnections();
    await closed(server);
    const modern = new Http2TestServer(pki);
    await modern.listen(port);
    cleanups.push(() => modern.close());
    await eventually(async () => {
      expect((await transport.send(request())).status).toBe(200);
      expect(modern.received.length).toBeGreaterThan(0);
    });
  });
});
