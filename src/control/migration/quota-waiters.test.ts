import { beforeEach, describe, expect, it } from 'vitest';
import type { SharedInformers } from '../../kube/shared-informers.ts';
import type { ResourceQuota } from '../resources.ts';
import { QuotaWaiters } from './quota-waiters.ts';

interface Change {
  readonly type: 'added' | 'updated' | 'deleted';
  readonly object: ResourceQuota;
  readonly old?: ResourceQuota;
}

/** Each is how much may be, by the wish and by what is counted with, and how much is. */
const quota = (wanted: string, hard?: string, used?: string): ResourceQuota => ({
  apiVersion: 'v1',
  kind: 'ResourceQuota',
  metadata: { name: 'few', namespace: 'default' },
  spec: { hard: { 'count/pods': wanted } },
  status: {
    ...(hard === undefined ? {} : { hard: { 'count/pods': hard } }),
    ...(used === undefined ? {} : { used: { 'count/pods': used } }),
  },
});

let change: (change: Change) => void;
let woken: string[];
let waiters: QuotaWaiters;

beforeEach(() => {
  woken = [];
  const onChange = (listener: typeof change) => (change = listener);
  const informers = { of: () => ({ onChange }) } as unknown as SharedInformers;
  waiters = new QuotaWaiters(informers, (key) => woken.push(key));
  waiters.add('default/move');
  waiters.add('other/move');
});

describe('who waits for a quota', () => {
  it.each<[string, ResourceQuota, ResourceQuota]>([
    ['more is wanted', quota('1', '1', '1'), quota('2', '1', '1')],
    ['more is counted with, which was wanted before', quota('2', '1', '1'), quota('2', '2', '1')],
    ['less is used', quota('1', '1', '1'), quota('1', '1', '0')],
    ['it is counted with no more', quota('1', '1', '1'), { ...quota('1'), status: { hard: {} } }],
  ])('is woken when %s', (_, old, object) => {
    change({ type: 'updated', old, object });
    expect(woken).toEqual(['default/move']);
    expect(waiters.changeCount).toBe(1);
    expect([waiters.has('default/move'), waiters.has('other/move')]).toEqual([false, true]);
  });

  it.each<[string, ResourceQuota, ResourceQuota]>([
    ['less is wanted', quota('2', '2', '1'), quota('1', '2', '1')],
    ['less is counted with', quota('1', '2', '1'), quota('1', '1', '1')],
    ['more is used', quota('2', '2', '1'), quota('2', '2', '2')],
    ['it is counted for the first time', quota('1'), quota('1', '1', '1')],
    ['nothing of it changes', quota('1', '1', '1'), quota('1', '1000m', '1')],
  ])('is left alone when %s', (_, old, object) => {
    change({ type: 'updated', old, object });
    expect([woken, waiters.changeCount]).toEqual([[], 0]);
  });

  it('is woken for a wish that is counted with only after it was refused once more', () => {
    change({ type: 'updated', old: quota('1', '1', '1'), object: quota('2', '1', '1') });
    waiters.add('default/move');
    change({ type: 'updated', old: quota('2', '1', '1'), object: quota('2', '2', '1') });
    expect(woken).toEqual(['default/move', 'default/move']);
  });

  it('is woken when one is gone, and not when there is another', () => {
    change({ type: 'added', object: quota('9', '9', '0') });
    expect(woken).toEqual([]);
    change({ type: 'deleted', object: quota('1', '1', '1') });
    expect(woken).toEqual(['default/move']);
  });
});
