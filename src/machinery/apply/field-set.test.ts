import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Json } from '../../api/meta.ts';
import { ApiError } from '../../api/status.ts';
import {
  type FieldSet,
  NOTHING,
  difference,
  fieldSetOf,
  has,
  intersection,
  isEmpty,
  leaves,
  parseFieldSet,
  pathsOf,
  recursiveDifference,
  serializeFieldSet,
  showPath,
  union,
} from './field-set.ts';
import { canonicalElement, fieldElement, keyElement, showElement, sortElements, valueElement } from './path-element.ts';

/** A set from dotted field names. */
function fields(...paths: string[]): FieldSet {
  return fieldSetOf(paths.map((path) => path.split('.').map(fieldElement)));
}

function shown(set: FieldSet): string[] {
  return pathsOf(set).map(showPath);
}

describe('path elements', () => {
  it('spells keys and values canonically, whoever wrote them', () => {
    expect(canonicalElement('k:{ "protocol": "TCP", "port": 80 }')).toBe('k:{"port":80,"protocol":"TCP"}');
    expect(canonicalElement(String.raw`v:"\u0061"`)).toBe('v:"a"');
    expect(canonicalElement('v:{"b":1,"a":[{"d":1,"c":2}]}')).toBe('v:{"a":[{"c":2,"d":1}],"b":1}');
    expect(canonicalElement('i:+03')).toBe('i:3');
    expect(canonicalElement('f:a:b')).toBe('f:a:b');
    expect(canonicalElement('f:')).toBe('f:');
  });

  it('ignores elements of kinds that it does not know (TestPathElementIgnoreUnknown)', () => {
    expect(canonicalElement('r:Hello')).toBeUndefined();
  });

  it.each(['no-colon', 'i:', 'i:index', 'v:', 'k:not json', 'k:[1]', 'k:5', '', 'f'])(
    'refuses %j (TestNewPathElementError)',
    (element) => {
      expect(() => canonicalElement(element)).toThrow(SyntaxError);
    },
  );

  it('shows elements as messages have them', () => {
    const key = keyElement([
      ['name', 'a"b'],
      ['port', 80],
    ]);
    expect([fieldElement('spec'), key, valueElement('x'), valueElement(5), 'i:3'].map(showElement)).toEqual([
      '.spec',
      String.raw`[name="a\"b",port=80]`,
      '[="x"]',
      '[=5]',
      '[3]',
    ]);
  });

  it('sorts by what elements hold', () => {
    const ordered = [
      '.',
      'f:a',
      'f:b',
      'k:{"name":"a"}',
      'k:{"name":"a","port":9}',
      'k:{"name":"a","port":10}',
      'k:{"name":"a!"}',
      'k:{"port":1}',
      'v:9',
      'v:10',
      'v:"a"',
      'v:false',
      'v:true',
      'v:[1]',
      'v:{"a":1}',
      'v:null',
      'i:2',
      'i:10',
    ];
    expect(sortElements(ordered.toReversed())).toEqual(ordered);
    expect(sortElements(ordered)).toBe(ordered);
  });
});

describe('field sets', () => {
  it('reads and writes FieldsV1 (TestFieldsRoundTrip)', () => {
    const wire = {
      'f:metadata': { 'f:name': {}, 'f:labels': { '.': {}, 'f:app': {} } },
      'f:spec': { 'k:{"name":"a"}': { '.': {}, 'f:image': {} }, 'v:"x"': {} },
    };
    const set = parseFieldSet(wire);
    expect(serializeFieldSet(set)).toEqual(wire);
    expect(shown(set)).toEqual([
      '.metadata.labels',
      '.metadata.name',
      '.metadata.labels.app',
      '.spec[name="a"]',
      '.spec[="x"]',
      '.spec[name="a"].image',
    ]);
  });

  it('brings foreign trees into its form', () => {
    const set = parseFieldSet({
      '.': {},
      'f:b': null,
      'f:a': { '.': {} },
      'f:c': { 'x:future': {} },
      'k:{"b":1,"a":2}': { 'f:x': {} },
      'k:{ "a":2, "b":1 }': {},
    });
    expect(JSON.stringify(serializeFieldSet(set))).toBe(
      '{"f:a":{},"f:b":{},"f:c":{},"k:{\\"a\\":2,\\"b\\":1}":{".":{},"f:x":{}}}',
    );
  });

  it.each([[[]], ['text'], [5], [{ 'f:a': 5 }], [{ 'f:a': { b: {} } }], [{ 'k:x': {} }]] as [Json][])(
    'refuses %j with 400 (TestFieldsToSetError)',
    (tree) => {
      expect(() => parseFieldSet(tree)).toThrow(ApiError);
    },
  );

  it('tells members from the way to them', () => {
    const set = fields('a.b.c', 'a.b', 'd');
    expect(has(set, ['f:a', 'f:b', 'f:c'])).toBe(true);
    expect(has(set, ['f:a', 'f:b'])).toBe(true);
    expect(has(set, ['f:a'])).toBe(false);
    expect(has(set, ['f:d', 'f:e'])).toBe(false);
    expect(has(set, [])).toBe(false);
  });

  it('subtracts path by path, or with everything below', () => {
    const set = fields('a', 'a.b', 'a.b.c', 'd.e', 'd.f');
    expect(shown(difference(set, fields('a.b', 'd.e')))).toEqual(['.a', '.a.b.c', '.d.f']);
    expect(shown(recursiveDifference(set, fields('a.b', 'd')))).toEqual(['.a']);
    expect(shown(recursiveDifference(set, fields('a')))).toEqual(['.d.e', '.d.f']);
  });

  it('finds leaves', () => {
    expect(shown(leaves(fields('a', 'a.b', 'a.b.c', 'd.e', 'd')))).toEqual(['.a.b.c', '.d.e']);
  });

  it('answers its argument when nothing changes', () => {
    const set = fields('a.b', 'c');
    expect(difference(set, fields('a', 'x'))).toBe(set);
    expect(recursiveDifference(set, fields('x'))).toBe(set);
    expect(union(set, fields('c'))).toBe(set);
    expect(union(set, NOTHING)).toBe(set);
    expect(serializeFieldSet(set)).toBe(set);
  });
});

describe('field set algebra, against sets of strings', () => {
  const element = fc.constantFrom('f:a', 'f:b', 'f:constructor', 'k:{"n":1}', 'v:"x"');
  const path = fc.array(element, { minLength: 1, maxLength: 4 });
  const paths = fc.array(path, { maxLength: 10 });

  function model(set: FieldSet): Set<string> {
    return new Set(pathsOf(set).map((each) => JSON.stringify(each)));
  }

  /** The one form of a set: no node without members, no `.` alone. */
  function checkForm(node: FieldSet, isRoot = true): void {
    const keys = Object.keys(node);
    if (isRoot) expect(keys).not.toContain('.');
    else expect(keys).not.toEqual(['.']);
    for (const key of keys) if (key !== '.') checkForm(node[key] as FieldSet, false);
  }

  it('agrees on union, intersection, difference and membership', () => {
    fc.assert(
      fc.property(paths, paths, path, (pathsA, pathsB, probe) => {
        const [a, b] = [fieldSetOf(pathsA), fieldSetOf(pathsB)];
        const [modelA, modelB] = [model(a), model(b)];
        expect(modelA).toEqual(new Set(pathsA.map((each) => JSON.stringify(each))));
        expect(model(union(a, b))).toEqual(new Set([...modelA, ...modelB]));
        expect(model(intersection(a, b))).toEqual(new Set([...modelA].filter((each) => modelB.has(each))));
        expect(model(difference(a, b))).toEqual(new Set([...modelA].filter((each) => !modelB.has(each))));
        const isBelowB = (each: string[]): boolean => each.some((_, end) => has(b, each.slice(0, end + 1)));
        expect(pathsOf(recursiveDifference(a, b))).toEqual(pathsOf(a).filter((each) => !isBelowB(each)));
        expect(has(a, probe)).toBe(modelA.has(JSON.stringify(probe)));
        for (const set of [union(a, b), intersection(a, b), difference(a, b), recursiveDifference(a, b)])
          checkForm(set);
      }),
      { numRuns: 500 },
    );
  });

  it('obeys the laws of sets', () => {
    fc.assert(
      fc.property(paths, paths, paths, (pathsA, pathsB, pathsC) => {
        const [a, b, c] = [fieldSetOf(pathsA), fieldSetOf(pathsB), fieldSetOf(pathsC)];
        expect(union(a, b)).toEqual(union(b, a));
        expect(union(union(a, b), c)).toEqual(union(a, union(b, c)));
        expect(intersection(a, union(b, c))).toEqual(union(intersection(a, b), intersection(a, c)));
        expect(union(difference(a, b), intersection(a, b))).toEqual(a);
        expect(isEmpty(intersection(difference(a, b), b))).toBe(true);
        expect(isEmpty(difference(a, a))).toBe(true);
      }),
    );
  });

  it('survives the wire, in one order whatever the history', () => {
    fc.assert(
      fc.property(paths, (all) => {
        const wire = JSON.stringify(serializeFieldSet(fieldSetOf(all)));
        expect(JSON.stringify(serializeFieldSet(fieldSetOf(all.toReversed())))).toBe(wire);
        expect(parseFieldSet(JSON.parse(wire) as Json)).toEqual(fieldSetOf(all));
      }),
    );
  });

  it('keeps the leaves', () => {
    fc.assert(
      fc.property(paths, (all) => {
        const set = fieldSetOf(all);
        const isPrefix = (a: string[], b: string[]): boolean =>
          a.length < b.length && a.every((each, index) => each === b[index]);
        const members = pathsOf(set);
        expect(model(leaves(set))).toEqual(
          new Set(members.filter((a) => !members.some((b) => isPrefix(a, b))).map((each) => JSON.stringify(each))),
        );
      }),
    );
  });
});
