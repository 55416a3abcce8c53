import { describe, expect, it } from 'vitest';
import { serviceUnavailable } from '../../api/status.ts';
import { silentLogger } from '../../env/test.ts';
import type { Agents } from './agents.ts';
import { logOptions, nodesWithAgents, SerialLogs } from './serial-log.ts';

/** Agents whose logs are these texts; undefined for one that cannot be reached. Some say when theirs ended. */
function agents(
  logs: Readonly<Record<string, string | undefined>>,
  asked: string[] = [],
  modified: Readonly<Record<string, string>> = {},
): Agents {
  return {
    async send(node, { path }) {
      asked.push(`${node} ${path}`);
      const text = logs[node];
      if (text === undefined) throw serviceUnavailable(`${node} is off`);
      const tail = new URL(path, 'https://agent').searchParams.get('tailLines');
      const lines = text.split(/(?<=\n)/);
      const shown = tail === null ? lines : lines.slice(Math.max(0, lines.length - Number(tail)));
      async function* body(): AsyncGenerator<Uint8Array> {
        for (const line of shown) yield Buffer.from(line);
      }
      const time = modified[node];
      const headers: Record<string, string> = time === undefined ? {} : { 'last-modified': time };
      return { status: text === '' ? 404 : 200, headers, body: body() };
    },
    upgrade: () => Promise.reject(new Error('not asked for')),
  };
}

async function read(of: Agents, current: string | undefined, others: string[], query = ''): Promise<string> {
  const logs = new SerialLogs(of, silentLogger);
  const place = { namespace: 'shop', name: 'box', current, others };
  const pieces: Uint8Array[] = [];
  const options = logOptions(new URLSearchParams(query));
  for await (const piece of await logs.open(place, options, new AbortController().signal)) pieces.push(piece);
  return Buffer.concat(pieces).toString('utf8');
}

describe('a log', () => {
  const texts = { a: '1\n2\n', b: '3\n', c: '4\n5' };

  it.each([
    ['', '1\n2\n3\n4\n5'],
    ['tailLines=4', '2\n3\n4\n5'],
    ['tailLines=2', '4\n5'],
    ['tailLines=1', '5'],
    ['tailLines=0', ''],
    ['tailLines=99', '1\n2\n3\n4\n5'],
    ['limitBytes=3', '1\n2'],
    ['limitBytes=5&tailLines=3', '3\n4\n5'],
  ])('with %j is %j', async (query, expected) =>
    expect(await read(agents(texts), 'c', ['a', 'b'], query)).toBe(expected),
  );

  it('leaves out what cannot be reached, unless the guest is there', async () => {
    expect(await read(agents({ ...texts, b: undefined }), 'c', ['a', 'b'])).toBe('1\n2\n4\n5');
    await expect(read(agents({ a: '1\n' }), 'c', ['a'])).rejects.toThrow('c is off');
  });

  it('is there when the guest is nowhere', async () =>
    expect(await read(agents(texts), undefined, ['a', 'b'], 'tailLines=2')).toBe('2\n3\n'));

  it('is in the order in which it was said, where nodes say when', async () => {
    const modified = { a: 'Sun, 15 Nov 2026 12:00:00 GMT', b: 'Sat, 14 Nov 2026 12:00:00 GMT' };
    expect(await read(agents(texts, [], modified), 'c', ['a', 'b'])).toBe('3\n1\n2\n4\n5');
    expect(await read(agents(texts, [], modified), undefined, ['a', 'b'], 'tailLines=1')).toBe('2\n');
  });

  it('is followed where the guest is, and only there', async () => {
    const asked: string[] = [];
    await read(agents(texts, asked), 'c', ['a'], 'follow');
    expect(asked).toEqual([
      'a /v1/namespaces/shop/virtualmachineinstances/box/log',
      'c /v1/namespaces/shop/virtualmachineinstances/box/log?follow=true',
    ]);
  });
});

it('understands what kubectl would ask for', () => {
  const options = (query: string): object => logOptions(new URLSearchParams(query));
  expect(options('follow=false&limitBytes=')).toEqual({ follow: false, tailLines: undefined, limitBytes: undefined });
  expect(() => options('tailLines=-1')).toThrow('tailLines must be a whole number');
});

it('asks nodes that have agents', () => {
  const node = (name: string, labels?: Record<string, string>, ready?: 'True' | 'False' | 'Unknown') => ({
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, ...(labels ? { labels } : {}) },
    status: { conditions: ready ? [{ type: 'Ready', status: ready }] : [] },
  });
  const all = [
    node('b', { 'kubevirt.io/schedulable': 'false' }),
    node('x'),
    node('a', { 'kubevirt.io/schedulable': 'true' }, 'True'),
    node('c', { 'kubevirt.io/schedulable': 'true' }, 'Unknown'),
  ];
  expect(nodesWithAgents(all)).toEqual(['a', 'b']);
});
