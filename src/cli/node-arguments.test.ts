import { expect, it } from 'vitest';
import { parseNodeName, parseTaints } from './node-arguments.ts';

it.each([
  ['node-1', 'node-1'],
  ['Worker-1.Example.COM', 'worker-1.example.com'],
  ['a'.repeat(63), 'a'.repeat(63)],
])('a node is called %s', (text, name) => {
  expect(parseNodeName(text)).toBe(name);
});

it.each(['', 'node_1', '-node', 'node 1', 'a'.repeat(64)])('%j is no name of a node', (text) => {
  expect(() => parseNodeName(text)).toThrow('such as node-1: the Node is called so');
});

it.each([
  ['godwit.dev/guests-only=true:NoSchedule', [{ key: 'godwit.dev/guests-only', value: 'true', effect: 'NoSchedule' }]],
  ['a=:NoExecute', [{ key: 'a', effect: 'NoExecute' }]],
  [
    'a:NoSchedule,b=c:PreferNoSchedule',
    [
      { key: 'a', effect: 'NoSchedule' },
      { key: 'b', value: 'c', effect: 'PreferNoSchedule' },
    ],
  ],
])('%s is taken', (text, taints) => {
  expect(parseTaints(text)).toEqual(taints);
});

it.each(['', 'a', 'a=b', 'a:Never', ':NoSchedule', 'a=b:NoSchedule,', 'a/b/c:NoSchedule', 'a=b c:NoSchedule'])(
  '%j is refused, with an example',
  (text) => {
    expect(() => parseTaints(text)).toThrow('for example godwit.dev/guests-only=true:NoSchedule');
  },
);

it('nothing is said twice: API servers refuse a node that has it so', () => {
  expect(() => parseTaints('a=b:NoSchedule,a=c:NoSchedule')).toThrow('each key once for each effect');
  expect(parseTaints('a:NoSchedule,a:NoExecute')).toHaveLength(2);
});
