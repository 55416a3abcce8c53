import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Audience, type Facet } from './audience.ts';
import { type Change, type Stored, stored } from './model.ts';

const node: Facet = { valueOf: ({ text }) => text || undefined };
const name: Facet = { valueOf: ({ key }) => key };

function change(after: string, before?: string, key = 'a'): Change {
  const old: Stored | undefined = before === undefined ? undefined : stored(key, 1, before);
  return { revision: 2, type: 'put', bucket: 'pods', key, stored: stored(key, 2, after), previous: () => old };
}

/** Notes who was called. */
function listeners(audience: Audience, ...interests: readonly (readonly [string, (Facet | undefined)?, string?])[]) {
  const called: string[] = [];
  const ends = interests.map(([who, facet, value = '']) =>
    audience.add(() => void called.push(who), facet && { facet, value }),
  );
  const tell = (what: Change): string => {
    called.length = 0;
    for (const listener of audience.of(what)) listener(what);
    return called.join(' ');
  };
  return { ends, tell };
}

describe('Audience', () => {
  it('finds who is concerned by the value before and after, in the order in which they came', () => {
    const { tell } = listeners(new Audience(), ['n2', node, 'n2'], ['all'], ['n1', node, 'n1'], ['a', name, 'a']);
    expect(tell(change('n1'))).toBe('all n1 a');
    expect(tell(change('n1', 'n1'))).toBe('all n1 a');
    expect(tell(change('n2', 'n1'))).toBe('n2 all n1 a');
    expect(tell(change('', 'n1', 'b'))).toBe('all n1');
    expect(tell(change('n3', '', 'b'))).toBe('all');
  });

  it('forgets who has left, and others who listen to the same do not notice', () => {
    const { ends, tell } = listeners(new Audience(), ['first', node, 'n'], ['second', node, 'n'], ['all']);
    ends[0]?.();
    ends[0]?.();
    expect(tell(change('n'))).toBe('second all');
    ends[1]?.();
    ends[2]?.();
    expect(tell(change('n'))).toBe('');
  });

  it('does not tell who comes while a change is told', () => {
    const audience = new Audience();
    const called: string[] = [];
    const interest = { facet: node, value: 'n' };
    audience.add(() => {
      called.push('first');
      audience.add(() => void called.push('late'), interest);
    }, interest);
    for (const listener of audience.of(change('n'))) listener(change('n'));
    expect(called).toEqual(['first']);
  });

  it('leaves it to each listener to find that an object cannot be read', () => {
    const broken: Facet = {
      valueOf: () => {
        throw new Error('not JSON');
      },
    };
    const { tell } = listeners(new Audience(), ['x', broken, 'x'], ['y', broken, 'y'], ['n', node, 'n']);
    expect(tell(change('other'))).toBe('x y');
  });

  it('reads an object as often for a thousand values as for one', () => {
    const reads = [1, 1000].map((count) => {
      let read = 0;
      const counting: Facet = { valueOf: ({ text }) => (read++, text) };
      const audience = new Audience();
      for (let index = 0; index < count; index++) {
        audience.add(() => undefined, { facet: counting, value: `n${index}` });
      }
      expect(audience.of(change('n0', 'n0'))).toHaveLength(1);
      return read;
    });
    expect(reads[1]).toBe(reads[0]);
  });

  it('tells whoever would find himself concerned, whoever comes and goes', () => {
    const value = fc.constantFrom('', 'x', 'y', 'z');
    const interest = fc.option(fc.record({ facet: fc.constantFrom(node, name), value: fc.constantFrom('x', 'y') }));
    const subscriber = fc.record({ interest, stays: fc.boolean() });
    fc.assert(
      fc.property(fc.array(subscriber), value, fc.option(value), value, (subscribers, after, before, key) => {
        const audience = new Audience();
        const told: number[] = [];
        const ends = subscribers.map((each, index) =>
          audience.add(() => void told.push(index), each.interest ?? undefined),
        );
        subscribers.forEach(({ stays }, index) => (stays ? undefined : ends[index]?.()));
        const what = change(after, before ?? undefined, key);
        for (const listener of audience.of(what)) listener(what);
        const states = [what.stored, what.previous()].filter((state) => state !== undefined);
        const concerned = subscribers.flatMap((each, index) => {
          const wants = each.interest;
          const isConcerned = !wants || states.some((state) => wants.facet.valueOf(state) === wants.value);
          return each.stays && isConcerned ? [index] : [];
        });
        expect(told).toEqual(concerned);
      }),
    );
  });
});
