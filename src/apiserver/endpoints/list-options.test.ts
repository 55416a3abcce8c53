import { describe, expect, it } from 'vitest';
import { ApiError } from '../../api/status.ts';
import type { Store } from '../storage/store.ts';
import { listOptionsOf, refuseFuture, watchOptionsOf } from './list-options.ts';

const list = (query: string): ReturnType<typeof listOptionsOf> => listOptionsOf(new URLSearchParams(query));

describe('the options of lists', () => {
  it.each([
    ['limit=5', 5],
    ['limit=0', undefined],
    ['limit=', undefined],
    // Kubernetes takes what is less than one for no limit.
    ['limit=-1', undefined],
  ])('%s', (query, limit) => expect(list(query).limit).toBe(limit));

  it.each([
    ['limit=x', 'strconv.ParseInt: parsing "x": invalid syntax'],
    [
      'resourceVersion=x',
      'invalid resource version: resourceVersion: Invalid value: "x": strconv.ParseUint: parsing "x": invalid syntax',
    ],
  ])('refuses %s in the words of kube-apiserver', (query, message) => expect(() => list(query)).toThrow(message));

  it('asks for patience with a version that is still to come', () => {
    const future = (): void => refuseFuture({ revision: 7 } as Store, 9);
    expect(future).toThrow(ApiError);
    expect(future).toThrow('Timeout: Too large resource version: 9, current: 7');
  });
});

describe('the options of watches', () => {
  it.each([
    ['timeoutSeconds=3', 3000],
    ['timeoutSeconds=-3', undefined],
  ])('%s', (query, timeoutMs) => expect(watchOptionsOf(new URLSearchParams(query)).timeoutMs).toBe(timeoutMs));
});
