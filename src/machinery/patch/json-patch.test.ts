import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Json } from '../../api/meta.ts';
import { ApiError } from '../../api/status.ts';
import { clone } from '../clone.ts';
import { JSON_PATCH_OPERATIONS_MAX, applyJsonPatch } from './json-patch.ts';

function errorOf(document: Json, patch: Json): ApiError {
  try {
    applyJsonPatch(document, patch);
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
  throw new Error('the patch applied');
}

interface Case {
  readonly name: string;
  readonly document: Json;
  readonly patch: Json;
  readonly expected: Json;
}

const APPLIES: readonly Case[] = [
  // RFC 6902, appendix A.
  {
    name: 'A.1 adding an object member',
    document: { foo: 'bar' },
    patch: [{ op: 'add', path: '/baz', value: 'qux' }],
    expected: { baz: 'qux', foo: 'bar' },
  },
  {
    name: 'A.2 adding an array element',
    document: { foo: ['bar', 'baz'] },
    patch: [{ op: 'add', path: '/foo/1', value: 'qux' }],
    expected: { foo: ['bar', 'qux', 'baz'] },
  },
  {
    name: 'A.3 removing an object member',
    document: { baz: 'qux', foo: 'bar' },
    patch: [{ op: 'remove', path: '/baz' }],
    expected: { foo: 'bar' },
  },
  {
    name: 'A.4 removing an array element',
    document: { foo: ['bar', 'qux', 'baz'] },
    patch: [{ op: 'remove', path: '/foo/1' }],
    expected: { foo: ['bar', 'baz'] },
  },
  {
    name: 'A.5 replacing a value',
    document: { baz: 'qux', foo: 'bar' },
    patch: [{ op: 'replace', path: '/baz', value: 'boo' }],
    expected: { baz: 'boo', foo: 'bar' },
  },
  {
    name: 'A.6 moving a value',
    document: { foo: { bar: 'baz', waldo: 'fred' }, qux: { corge: 'grault' } },
    patch: [{ op: 'move', from: '/foo/waldo', path: '/qux/thud' }],
    expected: { foo: { bar: 'baz' }, qux: { corge: 'grault', thud: 'fred' } },
  },
  {
    name: 'A.7 moving an array element',
    document: { foo: ['all', 'grass', 'cows', 'eat'] },
    patch: [{ op: 'move', from: '/foo/1', path: '/foo/3' }],
    expected: { foo: ['all', 'cows', 'eat', 'grass'] },
  },
  {
    name: 'A.8 testing a value: success',
    document: { baz: 'qux', foo: ['a', 2, 'c'] },
    patch: [
      { op: 'test', path: '/baz', value: 'qux' },
      { op: 'test', path: '/foo/1', value: 2 },
    ],
    expected: { baz: 'qux', foo: ['a', 2, 'c'] },
  },
  {
    name: 'A.10 adding a nested member object',
    document: { foo: 'bar' },
    patch: [{ op: 'add', path: '/child', value: { grandchild: {} } }],
    expected: { foo: 'bar', child: { grandchild: {} } },
  },
  {
    name: 'A.11 ignoring unrecognized elements',
    document: { foo: 'bar' },
    patch: [{ op: 'add', path: '/baz', value: 'qux', xyz: 123 }],
    expected: { foo: 'bar', baz: 'qux' },
  },
  {
    name: 'A.14 ~ escape ordering',
    document: { '/': 9, '~1': 10 },
    patch: [{ op: 'test', path: '/~01', value: 10 }],
    expected: { '/': 9, '~1': 10 },
  },
  {
    name: 'A.16 adding an array value',
    document: { foo: ['bar'] },
    patch: [{ op: 'add', path: '/foo/-', value: ['abc', 'def'] }],
    expected: { foo: ['bar', ['abc', 'def']] },
  },
  // What kube-apiserver's library does beyond the RFC.
  {
    name: 'replace of a missing field adds it',
    document: { metadata: {} },
    patch: [{ op: 'replace', path: '/metadata/labels', value: { a: 'b' } }],
    expected: { metadata: { labels: { a: 'b' } } },
  },
  {
    name: 'negative indexes count from the end',
    document: { a: [1, 2, 3] },
    patch: [
      { op: 'remove', path: '/a/-1' },
      { op: 'replace', path: '/a/-2', value: 9 },
      { op: 'add', path: '/a/-1', value: 4 },
    ],
    expected: { a: [9, 2, 4] },
  },
  {
    name: 'copy of a missing field adds null',
    document: { a: {} },
    patch: [{ op: 'copy', from: '/a/x', path: '/b' }],
    expected: { a: {}, b: null },
  },
  { name: 'add without a value adds null', document: {}, patch: [{ op: 'add', path: '/a' }], expected: { a: null } },
  {
    name: 'a missing field is null to test',
    document: { a: null },
    patch: [
      { op: 'test', path: '/a', value: null },
      { op: 'test', path: '/b', value: null },
    ],
    expected: { a: null },
  },
  {
    name: 'the whole document can be tested and replaced',
    document: { a: 1 },
    patch: [
      { op: 'test', path: '', value: { a: 1 } },
      { op: 'replace', path: '', value: { b: 2 } },
    ],
    expected: { b: 2 },
  },
  {
    name: 'what stands before the first slash is ignored',
    document: { b: 1 },
    patch: [{ op: 'remove', path: 'a/b' }],
    expected: {},
  },
  { name: 'a null patch does nothing', document: { a: 1 }, patch: null, expected: { a: 1 } },
  {
    name: 'later operations do not write through to copied or added values',
    document: { a: { x: 1 } },
    patch: [
      { op: 'copy', from: '/a', path: '/b' },
      { op: 'add', path: '/b/y', value: 2 },
    ],
    expected: { a: { x: 1 }, b: { x: 1, y: 2 } },
  },
];

describe('applyJsonPatch', () => {
  it.each(APPLIES)('$name', ({ document, patch, expected }) => {
    expect(applyJsonPatch(document, patch)).toEqual(expected);
  });

  const REJECTED: readonly [string, Json, Json][] = [
    ['a test that fails', { a: 1 }, [{ op: 'test', path: '/a', value: 2 }]],
    ['a test of the whole document that fails', { a: 1 }, [{ op: 'test', path: '', value: {} }]],
    ['a test without a value', { a: 1 }, [{ op: 'test', path: '/b' }]],
    ['remove of a missing field', {}, [{ op: 'remove', path: '/a' }]],
    ['remove of a missing index', { a: [] }, [{ op: 'remove', path: '/a/0' }]],
    ['add below a missing field', {}, [{ op: 'add', path: '/a/b', value: 1 }]],
    ['add below a scalar', { a: 1 }, [{ op: 'add', path: '/a/b', value: 1 }]],
    ['add past the end of a list', { a: [1] }, [{ op: 'add', path: '/a/2', value: 1 }]],
    ['replace at the end of a list', { a: [1] }, [{ op: 'replace', path: '/a/-', value: 1 }]],
    ['an index that is no number', { a: [1] }, [{ op: 'replace', path: '/a/1e0', value: 1 }]],
    ['move of a missing field', {}, [{ op: 'move', from: '/a', path: '/b' }]],
    ['move into itself', { a: { b: 1 } }, [{ op: 'move', from: '/a', path: '/a/b' }]],
    ['move without from', { a: 1 }, [{ op: 'move', path: '/b' }]],
    ['add of the whole document', {}, [{ op: 'add', path: '', value: {} }]],
    ['replacing the document by a scalar', {}, [{ op: 'replace', path: '', value: 5 }]],
    ['an unknown operation', {}, [{ op: 'increment', path: '/a' }]],
    ['an operation without op', {}, [{ path: '/a' }]],
    ['an operation without path', {}, [{ op: 'remove' }]],
    ['a prototype is not there', {}, [{ op: 'remove', path: '/__proto__' }]],
    ['a prototype is not walked', {}, [{ op: 'add', path: '/constructor/prototype/polluted', value: 1 }]],
  ];
  it.each(REJECTED)('rejects %s with 422', (_name, document, patch) => {
    const error = errorOf(document, patch);
    expect(error.toStatus()).toMatchObject({
      code: 422,
      reason: 'Invalid',
      message: 'the server rejected our request due to an error in our request',
    });
  });

  const MALFORMED: readonly [string, Json][] = [
    ['an object', { op: 'add', path: '/a', value: 1 }],
    ['a list of scalars', ['add']],
    ['an operation that is null', [null]],
    ['a path that is a number', [{ op: 'add', path: 1, value: 1 }]],
    ['an op that is a list', [{ op: [], path: '/a', value: 1 }]],
  ];
  it.each(MALFORMED)('answers 400 to %s', (_name, patch) => {
    expect(errorOf({}, patch)).toMatchObject({ code: 400, reason: 'BadRequest' });
  });

  it('limits the number of operations', () => {
    const patch = Array.from({ length: JSON_PATCH_OPERATIONS_MAX + 1 }, () => ({ op: 'test', path: '', value: {} }));
    const error = errorOf({}, patch);
    expect(error).toMatchObject({ code: 413, reason: 'RequestEntityTooLarge' });
    expect(error.message).toContain('The allowed maximum operations in a JSON patch is 10000, got 10001');
    expect(applyJsonPatch({}, patch.slice(1))).toEqual({});
  });

  it('limits what copies add, so that a small patch cannot double itself into a bomb', () => {
    const patch = Array.from({ length: 40 }, () => ({ op: 'copy', from: '/a', path: '/a/-' }));
    expect(errorOf({ a: ['x'.repeat(100)] }, patch)).toMatchObject({ code: 422 });
  });

  it('limits how deep moves can nest', () => {
    const level: Json[] = [
      { op: 'add', path: '/b', value: {} },
      { op: 'move', from: '/a', path: '/b/c' },
      { op: 'move', from: '/b', path: '/a' },
    ];
    expect(errorOf({ a: {} }, Array.from({ length: 3000 }, () => level).flat())).toMatchObject({ code: 422 });
  });

  it('treats __proto__ as data', () => {
    const document = JSON.parse('{"__proto__": {"a": 1}}') as Json;
    const patched = applyJsonPatch(document, [
      { op: 'add', path: '/__proto__/b', value: 2 },
      { op: 'add', path: '/x', value: {} },
      { op: 'copy', from: '/__proto__', path: '/x/__proto__' },
    ]);
    expect(JSON.stringify(patched)).toBe('{"__proto__":{"a":1,"b":2},"x":{"__proto__":{"a":1,"b":2}}}');
    expect(({} as Record<string, unknown>)['b']).toBeUndefined();
  });

  const segment = fc.constantFrom('a', 'b', '0', '1', '-', '-1', '__proto__', '', '~1', '01');
  const pointer = fc.array(segment, { maxLength: 4 }).map((segments) => segments.map((each) => `/${each}`).join(''));
  const document = fc.jsonValue({ maxDepth: 4 }) as fc.Arbitrary<Json>;
  const operation = fc.record(
    {
      op: fc.constantFrom('add', 'remove', 'replace', 'move', 'copy', 'test', 'nonsense'),
      path: pointer,
      from: pointer,
      value: document,
    },
    { requiredKeys: ['op', 'path'] },
  ) as fc.Arbitrary<Json>;

  it('changes neither argument and throws nothing but ApiError, whatever comes', () => {
    const keyed = fc.dictionary(fc.constantFrom('a', 'b', '__proto__'), document) as fc.Arbitrary<Json>;
    fc.assert(
      fc.property(
        fc.oneof(document, keyed),
        fc.oneof(fc.array(operation, { maxLength: 8 }), document),
        (given, patch) => {
          const [givenBefore, patchBefore] = [JSON.stringify(given), JSON.stringify(patch)];
          try {
            applyJsonPatch(given, patch as Json);
          } catch (error) {
            expect(error).toBeInstanceOf(ApiError);
          }
          expect([JSON.stringify(given), JSON.stringify(patch)]).toEqual([givenBefore, patchBefore]);
        },
      ),
      { numRuns: 2000 },
    );
  });

  it('undoes an add with a remove, and a test of what was added passes', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), document), fc.string(), document, (given, key, value) => {
        fc.pre(!Object.hasOwn(given, key));
        const path = `/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`;
        const added = applyJsonPatch(given, [
          { op: 'add', path, value },
          { op: 'test', path, value },
        ]);
        expect(applyJsonPatch(added, [{ op: 'remove', path }])).toEqual(clone(given));
      }),
    );
  });
});
