import { expect, it } from 'vitest';
import { parseTaints } from './parse-taints.ts';

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
