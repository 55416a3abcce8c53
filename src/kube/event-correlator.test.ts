import { describe, expect, it } from 'vitest';
import { type CoreEvent, EventCorrelator, newEvent } from './event-correlator.ts';
import { LruMap } from './lru-map.ts';

const startMs = Date.UTC(2026, 0, 1);
let names = 0;

function seen(
  change: Partial<CoreEvent['involvedObject'] & Pick<CoreEvent, 'type' | 'reason' | 'message'>> = {},
  atMs = startMs,
): CoreEvent {
  const { type = 'Normal', reason = 'Migrating', message = 'on its way', ...reference } = change;
  const involvedObject = { apiVersion: 'v1', kind: 'Pod', namespace: 'shop', name: 'web', uid: 'u1', ...reference };
  return newEvent({ involvedObject, type, reason, message, source: { component: 'test' } }, `web.${names++}`, atMs);
}

describe('correlating events', () => {
  it('counts an event that repeats, under its first name and time', () => {
    const correlator = new EventCorrelator();
    const first = correlator.correlate(seen(), startMs);
    const second = correlator.correlate(seen({}, startMs + 5000), startMs + 5000);
    expect(first?.event).toMatchObject({ count: 1, firstTimestamp: '2026-01-01T00:00:00Z' });
    expect(second?.key).toBe(first?.key);
    expect(second?.event).toMatchObject({
      metadata: first?.event.metadata,
      count: 2,
      firstTimestamp: '2026-01-01T00:00:00Z',
      lastTimestamp: '2026-01-01T00:00:05Z',
    });
  });

  it.each([
    { uid: 'u2' },
    { name: 'db' },
    { namespace: 'other' },
    { kind: 'Node' },
    { apiVersion: 'v2' },
    { fieldPath: 'spec.containers{web}' },
    { type: 'Warning' as const },
    { reason: 'Migrated' },
    { message: 'arrived' },
  ])('tells events apart that differ in %j', (change) => {
    const correlator = new EventCorrelator();
    const first = correlator.correlate(seen(), startMs);
    const second = correlator.correlate(seen(change), startMs);
    expect(second?.key).not.toBe(first?.key);
    expect(second?.event.count).toBe(1);
  });

  it('does not mistake one text for another by gluing them together', () => {
    const correlator = new EventCorrelator();
    const first = correlator.correlate(seen({ reason: 'a', message: 'bc' }), startMs);
    const second = correlator.correlate(seen({ reason: 'ab', message: 'c' }), startMs);
    expect(second?.key).not.toBe(first?.key);
  });

  // As client-go's EventAggregator: the tenth different message within ten minutes, and all that follow, are one event.
  it('makes one event of many that differ only in their message', () => {
    const correlator = new EventCorrelator();
    const told = Array.from({ length: 14 }, (_, index) =>
      correlator.correlate(seen({ message: `try ${index}` }, startMs + index * 1000), startMs + index * 1000),
    );
    expect(told.slice(0, 9).map((each) => each?.event.message)).toEqual(
      Array.from({ length: 9 }, (_, index) => `try ${index}`),
    );
    expect(told.slice(9).map((each) => each?.event.message)).toEqual(
      Array.from({ length: 5 }, (_, index) => `(combined from similar events): try ${index + 9}`),
    );
    expect(told.slice(9).map((each) => each?.event.count)).toEqual([1, 2, 3, 4, 5]);
    expect(new Set(told.slice(9).map((each) => each?.event.metadata.name)).size).toBe(1);
    expect(told[13]?.event.firstTimestamp).toBe('2026-01-01T00:00:09Z');
  });

  it('begins anew when there was no similar event for ten minutes', () => {
    const correlator = new EventCorrelator();
    for (let index = 0; index < 10; index++) correlator.correlate(seen({ message: `try ${index}` }), startMs);
    const laterMs = startMs + 600_001;
    expect(correlator.correlate(seen({ message: 'again' }, laterMs), laterMs)?.event.message).toBe('again');
  });

  it('lets no object have more than 25 at once, and then one each five minutes', () => {
    const correlator = new EventCorrelator();
    const isTold = (atMs: number, uid = 'u1'): boolean => correlator.correlate(seen({ uid }, atMs), atMs) !== undefined;
    expect(Array.from({ length: 30 }, () => isTold(startMs)).filter(Boolean)).toHaveLength(25);
    expect(isTold(startMs, 'u2')).toBe(true);
    expect(isTold(startMs + 299_000)).toBe(false);
    expect(isTold(startMs + 301_000)).toBe(true);
    expect(isTold(startMs + 301_000)).toBe(false);
  });

  it('goes on counting what it does not tell', () => {
    const correlator = new EventCorrelator();
    for (let index = 0; index < 100; index++) correlator.correlate(seen(), startMs);
    const laterMs = startMs + 301_000;
    expect(correlator.correlate(seen({}, laterMs), laterMs)?.event.count).toBe(101);
  });

  it('puts events about objects without a namespace into the default one', () => {
    expect(seen({ namespace: undefined }).metadata.namespace).toBe('default');
    expect(seen({ namespace: '' }).metadata.namespace).toBe('default');
  });
});

describe('a map that forgets', () => {
  it('forgets what was not used the longest', () => {
    const map = new LruMap<string, number>(2);
    map.set('a', 1);
    map.set('b', 2);
    expect(map.get('a')).toBe(1);
    map.set('c', 3);
    expect([map.get('a'), map.get('b'), map.get('c'), map.size]).toEqual([1, undefined, 3, 2]);
    map.set('a', 4);
    expect([map.get('a'), map.size]).toEqual([4, 2]);
  });
});
