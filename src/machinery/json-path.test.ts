import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Json } from '../api/meta.ts';
import { compileJsonPath } from './json-path.ts';

const value: Json = {
  spec: { replicas: 3, names: ['a', 'b', 'c'], 'odd key': 1, empty: null, flag: false },
  metadata: { annotations: { 'example.com/x': 'dotted' } },
  status: {
    conditions: [
      { type: 'Ready', status: 'True', weight: 1 },
      { type: 'Synced', status: 'False', weight: 5, reason: 'Late' },
      'not an object',
    ],
  },
};

const found: [path: string, results: Json[]][] = [
  ['.spec.replicas', [3]],
  ['{.spec.replicas}', [3]],
  ['$.spec.replicas', [3]],
  ['{$.spec.replicas}', [3]],
  ["['spec']['replicas']", [3]],
  ['.spec["odd key"]', [1]],
  ['.metadata.annotations.example\\.com/x', ['dotted']],
  ["$['metadata'].annotations['example.com/x']", ['dotted']],
  ['.spec.names[0]', ['a']],
  ['.spec.names[-1]', ['c']],
  ['.spec.names[3]', []],
  ['.spec.names[1:]', ['b', 'c']],
  ['.spec.names[:2]', ['a', 'b']],
  ['.spec.names[1:2]', ['b']],
  ['.spec.names[*]', ['a', 'b', 'c']],
  ['.metadata.annotations.*', ['dotted']],
  ['.spec.empty', [null]],
  ['.spec.flag', [false]],
  ['.spec.missing', []],
  ['.spec.replicas.deeper', []],
  ['.spec.names.length', []],
  ['.constructor', []],
  ['.__proto__', []],
  ['.status.conditions[?(@.type=="Ready")].status', ['True']],
  [".status.conditions[?(@.type == 'Synced')].reason", ['Late']],
  ['.status.conditions[?(@.type!="Ready")].status', ['False']],
  ['.status.conditions[?(@.weight>1)].type', ['Synced']],
  ['.status.conditions[?(@.weight>=1)].type', ['Ready', 'Synced']],
  ['.status.conditions[?(@.weight<5)].type', ['Ready']],
  ['.status.conditions[?(@.weight<=0)].type', []],
  ['.status.conditions[?(@.weight=="1")].type', []],
  ['.status.conditions[?(@.type<"S")].type', ['Ready']],
  ['.status.conditions[?(@.reason)].type', ['Synced']],
  ['.status.conditions[?(@.type=="Unknown")].status', []],
  ['.spec.names[?(@=="b")]', ['b']],
  ['.status.conditions[*].type', ['Ready', 'Synced']],
];

const refused: [path: string, reason: string][] = [
  ['', 'it has to begin with . or ['],
  ['spec', 'it has to begin with . or ['],
  ['{.spec', 'unclosed brace'],
  ['.spec.', 'a field name is missing'],
  ['.spec..replicas', 'recursive descent is not supported'],
  ['.spec.names[', 'a bracket is not closed'],
  ['.spec.names[x]', '"x" is no index'],
  ['.spec.names[]', '"" is no index'],
  ["['spec", 'a quote is not closed'],
  ["['spec\\", 'a quote is not closed'],
  ["['spec'x", '"]" is missing'],
  ['.spec]', 'unexpected "]"'],
  ['.spec names', 'unexpected " "'],
  ['.c[?(@.type==Ready)]', 'a filter compares paths from @, texts in quotes, numbers and booleans'],
  ['.c[?(@.type=="Ready"]', '")" is missing'],
  ['.c[?@.type]', '"?(" is missing'],
];

describe('compileJsonPath', () => {
  it.each(found)('finds %s', (path, results) => {
    expect(compileJsonPath(path)(value)).toEqual(results);
  });

  it.each(refused)('refuses %j', (path, reason) => {
    expect(() => compileJsonPath(path)).toThrow(reason);
  });

  it('leads to the root by a lone dot', () => {
    expect(compileJsonPath('.')(value)).toEqual([value]);
  });

  it('refuses filters that are nested without end', () => {
    const nested = '.a[?(@'.repeat(20) + ')]'.repeat(20);
    expect(() => compileJsonPath(nested)).toThrow('nested too deep');
  });

  it('either compiles or throws an Error with the path, whatever the text', () => {
    const piece = fc.constantFrom(
      '.',
      '[',
      ']',
      '*',
      '?(',
      '@',
      ')',
      '==',
      '"',
      "'",
      '\\',
      '{',
      '}',
      '$',
      'a',
      '0',
      ':',
    );
    const text = fc.oneof(
      fc.string(),
      fc.array(piece).map((pieces) => pieces.join('')),
    );
    fc.assert(
      fc.property(text, fc.jsonValue(), (path, json) => {
        let find: ReturnType<typeof compileJsonPath>;
        try {
          find = compileJsonPath(path);
        } catch (error) {
          expect((error as Error).message).toContain('invalid JSONPath');
          return;
        }
        expect(Array.isArray(find(json as Json))).toBe(true);
      }),
    );
  });
});
