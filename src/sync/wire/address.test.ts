import { expect, it } from 'vitest';
import { hostAndPort, parseAddress } from './address.ts';

it.each([
  ['10.0.0.1:9185', '10.0.0.1:9185'],
  ['sync.example.com:443', 'sync.example.com:443'],
  ['https://sync.example.com:443', 'sync.example.com:443'],
  ['https://sync.example.com:443/', 'sync.example.com:443'],
  ['sync', 'sync:9185'],
  ['[fd00::1]:1234', '[fd00::1]:1234'],
  ['[::ffff:10.0.0.1]:1', '[::ffff:10.0.0.1]:1'],
])('%s is %s', (text, authority) => expect(parseAddress(text).authority).toBe(authority));

it.each([
  '',
  'host:',
  'host:0',
  'host:65536',
  'http://host:1',
  'user@host:1',
  'host:1/path',
  'host:1?query',
  '10.0.0:1',
  '[zz]:1',
  '[10.0.0.1]:1',
  'fd00::1:9185',
  '-host:1',
  'ho st:1',
  'host\n:1',
  `${'a'.repeat(300)}:1`,
])('%j is none', (text) => expect(() => parseAddress(text)).toThrow(/is no address/));

it.each([
  ['10.0.0.1:9185', '10.0.0.1:9185'],
  ['https://Sync.Example:9185/', 'sync.example:9185'],
  ['[::1]:9185', '[::1]:9185'],
  ['[0:0::1]:9185', '[::1]:9185'],
  // The same port that is dialed where none is given.
  ['sync.example', 'sync.example:9185'],
  ['https://sync.example', 'sync.example:9185'],
  ['not an address', 'not an address'],
])('%s is spelled %s', (text, expected) => expect(hostAndPort(text)).toBe(expected));
