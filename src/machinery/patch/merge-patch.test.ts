import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Json, JsonObject } from '../../api/meta.ts';
import { ApiError } from '../../api/status.ts';
import { applyMergePatch, mergeSharing } from './merge-patch.ts';

describe('applyMergePatch', () => {
  // RFC 7396, appendix A, without the patches that are no objects.
  const CASES: readonly [document: Json, patch: Json, expected: Json][] = [
    [{ a: 'b' }, { a: 'c' }, { a: 'c' }],
    [{ a: 'b' }, { b: 'c' }, { a: 'b', b: 'c' }],
    [{ a: 'b' }, { a: null }, {}],
    [{ a: 'b', b: 'c' }, { a: null }, { b: 'c' }],
    [{ a: ['b'] }, { a: 'c' }, { a: 'c' }],
    [{ a: 'c' }, { a: ['b'] }, { a: ['b'] }],
    [{ a: { b: 'c' } }, { a: { b: 'd', c: null } }, { a: { b: 'd' } }],
    [{ a: [{ b: 'c' }] }, { a: [1] }, { a: [1] }],
    [{ e: null }, { a: 1 }, { e: null, a: 1 }],
    [[1, 2], { a: 'b', c: null }, { a: 'b' }],
    [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
    // kube-apiserver's library clears what it adds of nulls, in lists as well, but keeps null items.
    [{}, { a: [{ b: null, c: 1 }, null] }, { a: [{ c: 1 }, null] }],
    [{ a: 1 }, { a: [{ b: null }] }, { a: [{}] }],
    [{ a: {} }, { a: [{ b: null }] }, { a: [{ b: null }] }],
  ];
  it.each(CASES)('%j with %j is %j', (document, patch, expected) => {
    expect(applyMergePatch(document, patch)).toEqual(expected);
  });

  it.each([[null], [[]], ['text'], [5]] as [Json][])('answers 400 to the patch %j', (patch) => {
    expect(() => applyMergePatch({}, patch)).toThrow(ApiError);
  });

  it('treats __proto__ as data', () => {
    const patch = JSON.parse(
      '{"__proto__": {"polluted": true}, "constructor": {"prototype": {"polluted": true}}}',
    ) as Json;
    expect(JSON.stringify(applyMergePatch({}, patch))).toBe(JSON.stringify(patch));
    expect(({} as JsonObject)['polluted']).toBeUndefined();
  });

  // Lists of scalars only: of nulls in the items of lists it depends on what was there whether they stay.
  const { document } = fc.letrec<{ value: Json; document: JsonObject }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 3 },
      fc.constantFrom<Json>(null, true, 1, 'x'),
      fc.array(fc.integer(), { maxLength: 3 }),
      tie('document'),
    ),
    document: fc.dictionary(fc.constantFrom('a', 'b', 'c', '__proto__'), tie('value'), { maxKeys: 4 }),
  }));

  it('shares what the patch does not name, where that is asked for, and says the same', () => {
    fc.assert(
      fc.property(document, document, (given, patch) => {
        const before = JSON.stringify([given, patch]);
        const shared = mergeSharing(given, patch) as JsonObject;
        expect(JSON.stringify(shared)).toBe(JSON.stringify(applyMergePatch(given, patch)));
        for (const key of Object.keys(given)) if (!Object.hasOwn(patch, key)) expect(shared[key]).toBe(given[key]);
        expect(JSON.stringify([given, patch])).toBe(before);
      }),
    );
  });

  it('is idempotent and changes neither argument', () => {
    fc.assert(
      fc.property(document, document, (given, patch) => {
        const before = JSON.stringify([given, patch]);
        const once = applyMergePatch(given, patch);
        expect(applyMergePatch(once, patch)).toEqual(once);
        expect(JSON.stringify([given, patch])).toBe(before);
      }),
    );
  });

  it('leaves the document alone when the patch is empty', () => {
    fc.assert(
      fc.property(document, (given) => {
        expect(applyMergePatch(given, {})).toEqual(given);
      }),
    );
  });

  it('deletes what the patch nulls and sets the scalars it names', () => {
    fc.assert(
      fc.property(document, document, (given, patch) => {
        const merged = applyMergePatch(given, patch) as JsonObject;
        for (const key of Object.keys(patch)) {
          if (patch[key] === null) expect(Object.hasOwn(merged, key)).toBe(false);
          else if (typeof patch[key] !== 'object') expect(merged[key]).toBe(patch[key]);
        }
        for (const key of Object.keys(given)) {
          if (!Object.hasOwn(patch, key)) expect(merged[key]).toEqual(given[key]);
        }
      }),
    );
  });
});
