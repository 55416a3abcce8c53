import { mkdirSync, mkdtempSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import type { Connection } from './ports.ts';
import { realConnector } from './real-connector.ts';

describe('the real connector', () => {
  const path = join(mkdtempSync(join(tmpdir(), 'connector-')), 'socket');
  let server: Server | undefined;
  afterEach(() => void server?.close());

  async function connect(
    data: (bytes: Uint8Array) => void,
    to = path,
  ): Promise<{
    connection: Connection;
    ended: Promise<Error | undefined>;
  }> {
    let closed: (error?: Error) => void = () => undefined;
    const ended = new Promise<Error | undefined>((resolve) => (closed = resolve));
    return { connection: await realConnector.connectUnix(to, { data, closed }), ended };
  }

  it('carries bytes both ways, also those that come with the connection', async () => {
    server = createServer((socket) => {
      socket.write('hello ');
      socket.on('data', (bytes) => socket.end(bytes));
    });
    await new Promise<void>((resolve) => server?.listen(path, resolve));
    let heard = '';
    const { connection, ended } = await connect((bytes) => (heard += Buffer.from(bytes).toString()));
    connection.write('world');
    expect(await ended).toBeUndefined();
    expect(heard).toBe('hello world');
    connection.write('nobody reads this');
  });

  it('finds a socket in a directory with a long name', async () => {
    const directory = join(dirname(path), 'x'.repeat(120));
    mkdirSync(directory);
    server = createServer((socket) => socket.end('found'));
    const near = process.cwd();
    process.chdir(directory);
    await new Promise<void>((resolve) => server?.listen('socket', resolve));
    process.chdir(near);
    let heard = '';
    const { ended } = await connect((bytes) => (heard += Buffer.from(bytes).toString()), join(directory, 'socket'));
    await ended;
    expect(heard).toBe('found');
  });

  it('rejects where nobody listens', async () => {
    const handlers = { data: () => undefined, closed: () => expect.unreachable() };
    await expect(realConnector.connectUnix(`${path}-other`, handlers)).rejects.toThrow('ENOENT');
  });

  it('says that it was closed by this side, too', async () => {
    server = createServer(() => undefined);
    await new Promise<void>((resolve) => server?.listen(path, resolve));
    const { connection, ended } = await connect(() => undefined);
    connection.close();
    expect(await ended).toBeUndefined();
  });
});
