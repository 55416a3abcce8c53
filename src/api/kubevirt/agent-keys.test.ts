import { describe, expect, it } from 'vitest';
import { AGENT_KEYS_ANNOTATION, agentKeysOf, agentKeysText } from './agent-keys.ts';

const key = (letter: string): string => `${letter.repeat(43)}=`;

describe("the keys of a node's agent", () => {
  it('are read as they were written', () => {
    const text = agentKeysText([key('b'), key('a'), key('b')]);
    expect(agentKeysOf({ [AGENT_KEYS_ANNOTATION]: text })).toEqual([key('b'), key('a')]);
  });

  it.each<[string, string | undefined, readonly string[]]>([
    ['none', undefined, []],
    ['nothing', '', []],
    ['what is no key', `x ${key('a')}x ${key('-')} ${key('c')}`, [key('c')]],
    ['more than there can be', 'abcdefghij'.replaceAll(/./g, (each) => `${key(each)} `), 'abcdefgh'.split('').map(key)],
  ])('are few, whatever it says: %s', (_, text, keys) =>
    expect(agentKeysOf(text === undefined ? {} : { [AGENT_KEYS_ANNOTATION]: text })).toEqual(keys),
  );
});
