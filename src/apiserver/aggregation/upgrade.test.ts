import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { createPki, ROOT, type TestPki, until, upgradeFront, World } from './aggregation.fixture.ts';

const user = { username: 'andi', uid: 'u-1', groups: [] };

let pki: TestPki;
let world: World;

beforeAll(async () => {
  pki = await createPki();
});

beforeEach(async () => {
  world = new World(pki);
  await world.start();
});

afterEach(() => world.stop());

describe('upgrades', () => {
  let front: Awaited<ReturnType<typeof upgradeFront>>;

  beforeEach(async () => {
    front = await upgradeFront((request, socket, head) => world.aggregator.upgrade(request, user, socket, head));
  });

  afterEach(() => front.stop());

  it('carries a WebSocket both ways, with its subprotocol and who asks', async () => {
    await world.register();
    const sockets = new WebSocketServer({ noServer: true, handleProtocols: () => 'v5.channel.k8s.io' });
    world.backend.upgrade = (request, socket, head) => {
      sockets.handleUpgrade(request, socket, head, (connection) => {
        connection.send('hello');
        connection.on('message', (data: Buffer) => connection.send(`echo ${data.toString()}`));
      });
    };
    const url = `ws://127.0.0.1:${front.port}${ROOT}/namespaces/a/vms/b/console?x=1`;
    const client = new WebSocket(url, ['v5.channel.k8s.io'], { headers: { authorization: 'Bearer secret' } });
    const received: string[] = [];
    client.on('message', (data: Buffer) => received.push(data.toString()));
    await new Promise((resolve) => client.on('open', resolve));
    expect(client.protocol).toBe('v5.channel.k8s.io');
    const large = 'x'.repeat(1_000_000);
    client.send(large);
    await until(() => received.length === 2);
    expect(received).toEqual(['hello', `echo ${large}`]);
    const [{ line, headers }] = world.backend.seen as [(typeof world.backend.seen)[number]];
    expect(line).toBe(`UPGRADE ${ROOT}/namespaces/a/vms/b/console?x=1`);
    expect(headers).toMatchObject({ 'x-remote-uid': 'u-1', upgrade: 'websocket' });
    expect(headers).not.toHaveProperty('authorization');
    const closed = new Promise((resolve) => client.on('close', resolve));
    for (const connection of sockets.clients) connection.close(4000, 'bye');
    expect(await closed).toBe(4000);
  });

  it('passes on a refusal', async () => {
    await world.register();
    world.backend.upgrade = (_request, socket) => {
      socket.end('HTTP/1.1 403 Forbidden\r\ncontent-type: text/plain\r\ncontent-length: 2\r\n\r\nno');
    };
    const client = new WebSocket(`ws://127.0.0.1:${front.port}${ROOT}/vms/a/console`);
    const status = await new Promise((resolve) =>
      client.on('unexpected-response', (_request, response: { statusCode: number }) => resolve(response.statusCode)),
    );
    expect(status).toBe(403);
  });

  it('answers 503 when the backend is down', async () => {
    await world.register();
    await world.backend.stop();
    const client = new WebSocket(`ws://127.0.0.1:${front.port}${ROOT}/vms/a/console`);
    const answer = await new Promise<string>((resolve) =>
      client.on('unexpected-response', (_request, response: AsyncIterable<Buffer>) => {
        void (async () => {
          let text = '';
          for await (const chunk of response) text += chunk.toString();
          resolve(text);
        })();
      }),
    );
    expect(JSON.parse(answer)).toMatchObject({ kind: 'Status', code: 503 });
    await world.restartBackend();
  });
});
