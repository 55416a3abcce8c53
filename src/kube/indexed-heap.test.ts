import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type HeapItem, IndexedHeap } from './indexed-heap.ts';

interface Item extends HeapItem {
  readonly id: number;
  major: number;
  minor: number;
}

const operation = fc.oneof(
  fc.record({ do: fc.constant('push' as const), major: fc.integer({ min: -3, max: 3 }) }),
  fc.record({ do: fc.constant('pop' as const) }),
  fc.record({ do: fc.constant('remove' as const), which: fc.nat() }),
  fc.record({ do: fc.constant('update' as const), which: fc.nat(), major: fc.integer({ min: -3, max: 3 }) }),
);

describe('an indexed heap', () => {
  it('answers what a sorted list would, whatever is pushed, popped, removed and updated', () => {
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 300, size: 'max' }), (operations) => {
        const heap = new IndexedHeap<Item>();
        let model: Item[] = [];
        let sequence = 0;
        for (const step of operations) {
          const chosen = 'which' in step ? model[step.which % Math.max(1, model.length)] : undefined;
          if (step.do === 'push') {
            const item = { id: sequence, major: step.major, minor: sequence++, position: -1 };
            heap.push(item, item.major, item.minor);
            model.push(item);
          } else if (step.do === 'pop') {
            const popped = heap.pop();
            expect(popped).toBe(model[0]);
            model = model.slice(1);
          } else if (chosen && step.do === 'remove') {
            heap.remove(chosen);
            expect(chosen.position).toBe(-1);
            model = model.filter((item) => item !== chosen);
          } else if (chosen && step.do === 'update') {
            chosen.major = step.major;
            heap.update(chosen, chosen.major, chosen.minor);
          }
          model.sort((a, b) => a.major - b.major || a.minor - b.minor);
          expect(heap.size).toBe(model.length);
          expect(heap.first).toBe(model[0]);
          expect(heap.firstMajor).toBe(model[0]?.major);
        }
      }),
    );
  });

  it('grows and shrinks without losing anybody', () => {
    const heap = new IndexedHeap<Item>();
    const items = Array.from({ length: 5000 }, (_, id) => ({ id, major: (id * 7919) % 5000, minor: id, position: -1 }));
    for (const item of items) heap.push(item, item.major, item.minor);
    const order: number[] = [];
    for (let item = heap.pop(); item; item = heap.pop()) order.push(item.major);
    expect(order).toEqual([...order].sort((a, b) => a - b));
    expect(order).toHaveLength(5000);
  });

  it('refuses an item that is in a heap already, or in another one', () => {
    const heap = new IndexedHeap<Item>();
    const item = { id: 0, major: 0, minor: 0, position: -1 };
    heap.push(item, 0, 0);
    expect(() => heap.push(item, 0, 0)).toThrow('in a heap already');
    expect(() => new IndexedHeap<Item>().remove(item)).toThrow('not in this heap');
    heap.remove(item);
    expect(() => heap.update(item, 1, 1)).toThrow('not in this heap');
  });
});
