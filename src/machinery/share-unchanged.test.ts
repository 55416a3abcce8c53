import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { clone } from './clone.ts';
import { shareUnchanged } from './share-unchanged.ts';

describe('what two documents have in common', () => {
  it('is the same in memory afterwards, and nothing else is', () => {
    const old = { spec: { a: { b: 1 }, list: [{ x: 1 }, { x: 2 }] }, status: { phase: 'Running' } };
    const next = { ...clone(old), status: { phase: 'Failed' } };
    next.spec.list[1] = { x: 3 };
    shareUnchanged(next, old);
    expect(next).toEqual({
      spec: { a: { b: 1 }, list: [{ x: 1 }, { x: 3 }] },
      status: { phase: 'Failed' },
    });
    expect(next.spec).not.toBe(old.spec);
    expect(next.spec.a).toBe(old.spec.a);
    expect(next.spec.list).not.toBe(old.spec.list);
    expect(next.spec.list[0]).toBe(old.spec.list[0]);
  });

  it.each<[string, object, object]>([
    ['a field that is gone', { a: { x: 1 } }, { a: { x: 1, y: 2 } }],
    ['a field that is new', { a: { x: 1, y: 2 } }, { a: { x: 1 } }],
    ['an item more', { a: [{ x: 1 }, { x: 2 }] }, { a: [{ x: 1 }] }],
    ['a list in the place of a map', { a: ['x'] }, { a: { 0: 'x' } }],
    ['a field that inherits its name', { a: { constructor: 1 } }, { a: {} }],
    ['null', { a: { x: null } }, { a: { x: {} } }],
  ])('is not all that holds %s', (_, document, old) => {
    const [before, oldBefore] = [clone(document), clone(old)];
    shareUnchanged(document, old);
    expect(document).toEqual(before);
    expect(old).toEqual(oldBefore);
    expect((document as { a: unknown }).a).not.toBe((old as { a: unknown }).a);
  });

  it('keeps a field of any name', () => {
    const document = JSON.parse('{"a":{"__proto__":{"x":1},"b":2}}') as { a: object };
    shareUnchanged(document, JSON.parse('{"a":{"__proto__":{"x":1},"b":3}}') as object);
    expect(JSON.stringify(document)).toBe('{"a":{"__proto__":{"x":1},"b":2}}');
  });

  it('never says anything else than it did', () => {
    const tree = fc.jsonValue({ maxDepth: 4 });
    fc.assert(
      fc.property(tree, tree, (one, other) => {
        const [document, old] = [
          { one: clone(one), same: clone(one), list: [clone(other)] },
          { one: other, same: one, list: [one, other] },
        ];
        const before = JSON.stringify(document);
        shareUnchanged(document, old);
        expect(JSON.stringify(document)).toBe(before);
        if (typeof one === 'object' && one !== null) expect(document.same).toBe(old.same);
      }),
    );
  });
});
