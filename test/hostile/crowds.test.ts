import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type ClientHttp2Session, connect, constants } from 'node:http2';
import { describe, expect, it } from 'vitest';
import { KEEP_ALIVE_PROBE_MS } from '../../src/apiserver/http/limits.ts';
import { eventually } from '../support/eventually.ts';
import { HttpClient } from '../support/http-client.ts';
import type { RawConnection } from '../support/raw-connection.ts';
import { newTarget, ROOT } from './target.ts';

/** Many clients at once, clients that leave, are gone or do not read: a real server serves all others. */

const target = newTarget();

async function session(): Promise<ClientHttp2Session> {
  const opened = connect(target.url, { rejectUnauthorized: false, ...target.credentials });
  opened.on('error', () => undefined);
  await once(opened, 'connect');
  return opened;
}

describe('many, and those who leave', () => {
  it('100 connections at once are all served', async () => {
    const connections = await Promise.all(Array.from({ length: 100 }, () => target.raw()));
    await Promise.all(connections.map((each) => each.write(`GET ${ROOT}/small HTTP/1.1\r\nHost: x\r\n\r\n`)));
    for (const each of connections) expect(await each.receive('"key":"value"')).toMatch(/^HTTP\/1\.1 200 /);
    for (const each of connections) each.destroy();
  });

  it('a client that leaves in the middle of a body has asked for nothing', async () => {
    for (let time = 0; time < 20; time++) {
      const connection = await target.raw();
      const body = JSON.stringify({ metadata: { name: `half-${time}` } });
      await connection.write(
        `POST ${ROOT} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${body.length + 1}\r\n\r\n${body}`,
      );
      connection.destroy();
    }
    const client = await session();
    for (let time = 0; time < 20; time++) {
      const stream = client.request(
        { ':method': 'POST', ':path': ROOT, 'content-type': 'application/json' },
        { endStream: false },
      );
      stream.on('error', () => undefined);
      stream.write(JSON.stringify({ metadata: { name: `half-${time}` } }));
      stream.close(constants.NGHTTP2_CANCEL);
    }
    client.destroy();
    const { items } = await target.cluster.get(ROOT);
    expect(items.map((each: { metadata: { name: string } }) => each.metadata.name)).toEqual(
      ['kube-root-ca.crt', 'small'].filter((name) =>
        items.some((each: { metadata: { name: string } }) => each.metadata.name === name),
      ),
    );
  });

  it('clients that leave in the middle of lists and watches leave nothing behind', async () => {
    const metrics = async (): Promise<string> => (await target.cluster.api.request('GET', '/metrics')).expect(200).text;
    // The server's own loops watch, too.
    const watchesBefore = sum(await metrics(), 'apiserver_longrunning_requests');
    await target.cluster.create('/api/v1/namespaces', { metadata: { name: 'large' } });
    const data = { key: 'x'.repeat(500_000) };
    for (let index = 0; index < 20; index++)
      await target.cluster.create('/api/v1/namespaces/large/configmaps', {
        metadata: { name: `large-${index}` },
        data,
      });
    for (let time = 0; time < 20; time++) {
      const connection = await target.raw();
      const query = time % 2 === 0 ? '' : '?watch=1';
      await connection.write(`GET /api/v1/namespaces/large/configmaps${query} HTTP/1.1\r\nHost: x\r\n\r\n`);
      await connection.receive('large-0');
      connection.destroy();
    }
    await eventually(async () => {
      const now = await metrics();
      expect(sum(now, 'apiserver_longrunning_requests')).toBeLessThanOrEqual(watchesBefore);
      // The request that asks is one itself.
      expect(sum(now, 'apiserver_current_inflight_requests')).toBeLessThanOrEqual(1);
    });
  });
});

/** The sum of a metric over all its labels. */
function sum(metrics: string, name: string): number {
  const lines = metrics.split('\n').filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `));
  return lines.reduce((total, line) => total + Number(line.slice(line.lastIndexOf(' '))), 0);
}

describe('peers that are gone without a word', () => {
  /** The timer by which the kernel watches over the server's end of a connection: its kind, and hundredths of a second. */
  function timerOf(connection: RawConnection): { kind: string; ticks: number } | undefined {
    const hex = (port: number | undefined): string => (port ?? 0).toString(16).toUpperCase().padStart(4, '0');
    const { localPort, remotePort } = connection.socket;
    for (const line of readFileSync('/proc/net/tcp', 'utf8').split('\n').slice(1)) {
      const [, local = '', remote = '', , , timer = ''] = line.trim().split(/\s+/);
      if (!local.endsWith(`:${hex(remotePort)}`) || !remote.endsWith(`:${hex(localPort)}`)) continue;
      const [kind = '', ticks = ''] = timer.split(':');
      return { kind, ticks: Number.parseInt(ticks, 16) };
    }
    return undefined;
  }
  const KEEP_ALIVE = '02';

  it.each<[string, () => Promise<RawConnection>]>([
    [
      'HTTP/1.1',
      async () => {
        const connection = await target.raw();
        await connection.write(`GET ${ROOT}?watch=1 HTTP/1.1\r\nHost: x\r\n\r\n`);
        await connection.receive('small');
        return connection;
      },
    ],
    ['HTTP/2', () => target.raw({ ALPNProtocols: ['h2'] })],
  ])('are asked by the kernel whether they are there: %s', async (_name, open) => {
    const connection = await open();
    await eventually(() => {
      const timer = timerOf(connection);
      expect(timer?.kind).toBe(KEEP_ALIVE);
      expect(timer?.ticks).toBeLessThanOrEqual(KEEP_ALIVE_PROBE_MS / 10);
    });
    connection.destroy();
  });
});

describe('watchers that never read', () => {
  const rssBytes = (): number =>
    Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${target.cluster.godwit.pid}/status`, 'utf8'))?.[1]) * 1024;
  const STALLED = 30;
  const CHANGES = 60;
  const CHANGE_BYTES = 700_000;

  it('are cut off, while others go on receiving', async () => {
    await target.cluster.create('/api/v1/namespaces', { metadata: { name: 'busy' } });
    const busy = '/api/v1/namespaces/busy/configmaps';
    const { metadata } = await target.cluster.create(busy, { metadata: { name: 'busy' }, data: { key: '' } });
    const watch = `${busy}?watch=1&resourceVersion=${metadata.resourceVersion}`;
    const beforeBytes = rssBytes();
    const stalled = await Promise.all(
      Array.from({ length: STALLED }, async (_, index) => {
        if (index % 2 === 0) {
          const connection = await target.raw();
          await connection.write(`GET ${watch} HTTP/1.1\r\nHost: x\r\n\r\n`);
          await connection.receive('200 OK');
          connection.socket.pause();
          return {
            gone: () => connection.ended(),
            resume: () => connection.socket.resume(),
            end: () => connection.destroy(),
          };
        }
        const client = await session();
        const stream = client.request({ ':path': watch });
        stream.on('error', () => undefined);
        await once(stream, 'response');
        return {
          gone: () => new Promise((resolve) => stream.on('close', resolve)),
          resume: () => stream.resume(),
          end: () => client.destroy(),
        };
      }),
    );
    const reader = new HttpClient(target.cluster.godwit.access());
    const events = await reader.watch(watch);
    for (let change = 0; change < CHANGES; change++)
      await target.cluster.merge(`${busy}/busy`, { data: { key: `${change}-${'x'.repeat(CHANGE_BYTES)}` } });
    const received = await events.take(CHANGES);
    expect(received.map(({ object }) => Number.parseInt(object.data.key, 10))).toEqual(
      Array.from({ length: CHANGES }, (_, index) => index),
    );
    // Fed from memory without bound, they would hold all changes each.
    expect(rssBytes() - beforeBytes).toBeLessThan((STALLED * CHANGES * CHANGE_BYTES) / 2);
    const gone = Promise.all(stalled.map((each) => each.gone()));
    for (const each of stalled) each.resume();
    await gone;
    events.close();
    reader.close();
    for (const each of stalled) each.end();
  });
});
