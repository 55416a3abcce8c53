import { describe, expect, it } from 'vitest';
import { parseAddress } from './address.ts';
import { parseAddressRules } from './address-rules.ts';

describe('a list of addresses', () => {
  it.each<readonly [string, string, boolean]>([
    ['sync.example.com', 'sync.example.com:9185', true],
    ['sync.example.com', 'SYNC.example.com:1', true],
    ['sync.example.com:9185', 'sync.example.com', true],
    ['sync.example.com:9185', 'sync.example.com:9186', false],
    ['sync.example.com', 'other.example.com', false],
    ['*.example.com', 'a.b.example.com', true],
    ['*.example.com', 'example.com', false],
    ['*.example.com', 'badexample.com', false],
    ['10.2.0.0/16', '10.2.3.4:9185', true],
    ['10.2.0.0/16:9185', '10.2.3.4:22', false],
    ['10.2.0.0/16', '10.3.3.4', false],
    ['10.2.3.4', '10.2.3.4', true],
    ['10.2.3.4', '10.2.3.5', false],
    ['[fd00::1]:9185', '[fd00:0::1]:9185', true],
    ['fd00::/8', '[fd12::1]:9185', true],
    ['fd00::/8', '[fe80::1]:9185', false],
    ['10.0.0.0/8, west.example.com', 'west.example.com', true],
    ['# nothing but this\nwest.example.com # there', 'west.example.com', true],
    ['0.0.0.0/0', 'name.example.com', false],
    ['', 'west.example.com', false],
  ])('%s: %s is allowed: %s', (text, address, isAllowed) => {
    const rules = parseAddressRules(text);
    expect(rules.broken).toEqual([]);
    expect(rules.allow(parseAddress(address))).toBe(isAllowed);
  });

  it.each([
    '10.2.3',
    '10.2.3.4/33',
    '10.2.3.4/',
    'a b',
    'https://sync.example.com',
    'a:0',
    'a:65536',
    '*',
    '*.',
    '[a]',
  ])('knows no rule %s', (line) => {
    expect(parseAddressRules(`${line}\nwest.example.com`).broken).toEqual([line]);
  });
});
