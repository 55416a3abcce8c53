import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../api/meta.ts';
import { mergeDifference } from './merge-difference.ts';
import { applyMergePatch } from './merge-patch.ts';

const objects = fc
  .dictionary(
    fc.constantFrom('a', 'b', 'c', '__proto__', 'constructor'),
    fc.letrec((tie) => ({
      value: fc.oneof(
        { depthSize: 'small' },
        fc.constantFrom<unknown>(0, 1, 'x', true, null),
        fc.array(tie('value'), { maxLength: 2 }),
        fc.dictionary(fc.constantFrom('a', 'b', 'c'), tie('value'), { maxKeys: 3, noNullPrototype: true }),
      ),
    })).value,
    { maxKeys: 4, noNullPrototype: true },
  )
  .map((value) => JSON.parse(JSON.stringify(value)) as JsonObject);

describe('mergeDifference', () => {
  it.each<[JsonObject, JsonObject, JsonObject | undefined]>([
    [{ a: 1 }, { a: 1 }, {}],
    [{ a: 1 }, {}, { a: null }],
    [{ a: 1, b: { c: 1, d: 2 } }, { a: 1, b: { c: 1, d: 3 } }, { b: { d: 3 } }],
    [{ a: [1, 2] }, { a: [1] }, { a: [1] }],
    [{ a: { b: 1 } }, { a: 'x' }, { a: 'x' }],
    [{ a: 'x' }, { a: { b: 1 } }, { a: { b: 1 } }],
    [{}, { a: {} }, { a: {} }],
    [{ a: null }, { a: null }, {}],
    [{}, { a: null }, undefined],
    [{}, { a: { b: null } }, undefined],
    [{}, { a: [{ b: null }] }, undefined],
  ])('from %j to %j is %j', (before, after, patch) => expect(mergeDifference(before, after)).toEqual(patch));

  it('leads to what was wanted wherever there is one', () => {
    fc.assert(
      fc.property(objects, objects, (before, after) => {
        const patch = mergeDifference(before, after);
        if (patch === undefined) expect(JSON.stringify(after)).toContain('null');
        else expect(applyMergePatch(before, patch)).toEqual(after);
      }),
    );
  });
});
