import { describe, expect, it } from 'vitest';
import { UserError } from '../failure.ts';
import { answerLines } from './answer.ts';
import { chosen, type Kind, parseSubject } from './subject.ts';

describe('what is asked about', () => {
  it.each<[string, string[], Kind | undefined, string]>([
    ['a name', ['web'], undefined, 'web'],
    ['a kind and a name', ['vm', 'web'], 'vm', 'web'],
    ['both with a slash', ['node/node-1'], 'node', 'node-1'],
    ['a short name of kubectl', ['vmim', 'x'], 'migration', 'x'],
    ['a full one', ['VirtualMachineInstances.kubevirt.io/web'], 'vmi', 'web'],
  ])('%s', (_, words, kind, name) => expect(parseSubject(words)).toEqual({ kind, name }));

  it('is no other kind', () =>
    expect(() => parseSubject(['pod', 'x'])).toThrow('is none of vm, vmi, migration and node'));

  it.each<[string, Kind | undefined, Kind[], Kind]>([
    ['the only one', undefined, ['node'], 'node'],
    ['the machine rather than its guest', undefined, ['vm', 'vmi'], 'vm'],
    ['the guest, if that is said', 'vmi', ['vm', 'vmi'], 'vmi'],
    ['what is said', 'node', ['vm', 'node'], 'node'],
  ])('%s', (_, kind, found, expected) => expect(chosen({ kind, name: 'x' }, found, 'shop')).toBe(expected));

  it.each<[string, Kind | undefined, Kind[], string]>([
    ['nothing', undefined, [], 'there is no virtual machine, migration or node x in namespace shop'],
    ['nothing of the kind', 'migration', ['vm'], 'there is no migration x in namespace shop'],
    ['no such node', 'node', [], "there is no node x; 'godwit status' shows all there are"],
    ['two', undefined, ['vm', 'node'], "say which is meant: 'godwit why vm x' or 'godwit why node x'"],
  ])('%s', (_, kind, found, message) => {
    expect(() => chosen({ kind, name: 'x' }, found, 'shop')).toThrow(UserError);
    expect(() => chosen({ kind, name: 'x' }, found, 'shop')).toThrow(message);
  });
});

it('an answer has its parts below each other', () => {
  const answer = { subject: 'node x', state: 'A.', why: ['B.', 'C.'], next: 'D.', actions: ['e', 'f'] };
  expect(answerLines(answer, (text) => text)).toEqual([
    'Node x',
    'State    A.',
    'Why      B.',
    '         C.',
    'Next     D.',
    'You can  e',
    '         f',
  ]);
});
