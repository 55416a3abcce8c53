import { describe, expect, it } from 'vitest';
import type { Json, KubeObject } from '../api/meta.ts';
import { applyMergePatch } from '../machinery/patch/merge-patch.ts';
import { statusPatch } from './status-patch.ts';

const object: KubeObject = {
  apiVersion: 'v1',
  kind: 'Thing',
  metadata: { name: 'a', uid: 'u', resourceVersion: '7' },
  status: { word: 'old', map: { a: '1', b: '2' }, list: [1, 2], others: 'stay' },
};

describe('the patch of a status', () => {
  it('is none where all is as it should be', () => {
    expect(statusPatch(object, { word: 'old', map: { b: '2', a: '1' }, absent: undefined })).toBeUndefined();
  });
  it('names the version that was looked at, and nothing that stays', () => {
    expect(statusPatch(object, { word: 'new', list: [1, 2] })).toEqual({
      metadata: { uid: 'u', resourceVersion: '7' },
      status: { word: 'new' },
    });
  });
  it('leaves the status as it should be, gone fields and all', () => {
    const next = { word: undefined, map: { a: '1', c: { d: 'e' } }, list: [] };
    const patch = statusPatch(object, next);
    const patched = applyMergePatch(object as unknown as Json, patch as Json) as unknown as KubeObject;
    expect(patched['status']).toEqual({ map: { a: '1', c: { d: 'e' } }, list: [], others: 'stay' });
  });
});
