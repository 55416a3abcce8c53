import { describe, expect, it } from 'vitest';
import { denial, readReview } from './review.ts';

const V1 = { version: 'v1', uid: 'u', isMutating: false } as const;
const read = (review: unknown, expected: Partial<Parameters<typeof readReview>[1]> = {}) =>
  readReview(Buffer.from(typeof review === 'string' ? review : JSON.stringify(review)), { ...V1, ...expected });
const reviewed = (response: unknown, more: object = {}) => ({
  apiVersion: 'admission.k8s.io/v1',
  kind: 'AdmissionReview',
  response,
  ...more,
});
const patch = Buffer.from('[]').toString('base64');

describe('readReview', () => {
  it.each([
    ['no JSON', 'oops', /^couldn't get version\/kind; json parse error/],
    ['no response', { ...reviewed(null) }, 'webhook response was absent'],
    ['a list', [], 'webhook response was absent'],
    ['another uid', reviewed({ uid: 'x', allowed: true }), 'expected response.uid="u", got "x"'],
    ['no uid', reviewed({ allowed: true }), 'expected response.uid="u", got ""'],
    [
      'another version',
      reviewed({ uid: 'u' }, { apiVersion: 'admission.k8s.io/v1beta1' }),
      'expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got admission.k8s.io/v1beta1, Kind=AdmissionReview',
    ],
    ['a patch', reviewed({ uid: 'u', patch }), 'validating webhook may not return response.patch'],
    [
      'a patch type',
      reviewed({ uid: 'u', patchType: 'JSONPatch' }),
      'validating webhook may not return response.patchType',
    ],
    ['a hostile key', '{"response":{"uid":"u","__proto__":{"allowed":true}}}', /"__proto__" is not accepted/],
  ])('refuses %s', (_, review, message) => {
    expect(() => read(review)).toThrow(message);
  });

  it.each([
    ['a patch without a type', { patch }, 'webhook returned response.patch but not response.patchType'],
    [
      'a type without a patch',
      { patchType: 'JSONPatch' },
      'webhook returned response.patchType but not response.patch',
    ],
    ['an unknown type', { patch, patchType: 'Merge' }, 'unsupported patch type "Merge"'],
    ['no base64', { patch: '[{]', patchType: 'JSONPatch' }, 'response.patch is not base64'],
  ])('refuses of a mutating webhook %s', (_, fields, message) => {
    expect(() => read(reviewed({ uid: 'u', allowed: true, ...fields }), { isMutating: true })).toThrow(message);
  });

  it('decodes a patch', () => {
    const fields = { uid: 'u', allowed: true, patch, patchType: 'JSONPatch' };
    expect(Buffer.from(read(reviewed(fields), { isMutating: true }).patch ?? []).toString()).toBe('[]');
  });

  it('forgives v1beta1 what v1 does not', () => {
    const review = { response: { allowed: true, patch } };
    const beta = { version: 'v1beta1', isMutating: true } as const;
    expect(read(review, beta)).toMatchObject({ allowed: true });
    expect(read(review, { version: 'v1beta1' }).patch).toBeUndefined();
  });

  it.each([undefined, null, 'true', 1, {}])('takes allowed %j for a no', (allowed) => {
    expect(read(reviewed({ uid: 'u', allowed })).allowed).toBe(false);
  });

  it('keeps only the known fields of a status, and only of their types', () => {
    const status = {
      code: 429,
      message: 'later',
      reason: 'TooManyRequests',
      extra: 'x',
      details: {
        name: 'p',
        kind: 7,
        retryAfterSeconds: 5,
        causes: [{ reason: 'R', message: 'm', field: 'f', other: 1 }, 'text'],
      },
    };
    expect(read(reviewed({ uid: 'u', status, warnings: ['w', 1] }))).toEqual({
      allowed: false,
      patch: undefined,
      warnings: ['w'],
      result: {
        code: 429,
        message: 'later',
        reason: 'TooManyRequests',
        details: { name: 'p', retryAfterSeconds: 5, causes: [{ reason: 'R', message: 'm', field: 'f' }, {}] },
      },
    });
  });
});

describe('denial', () => {
  const result = { code: 0, message: '', reason: '', details: undefined };
  it.each([
    ['nothing', undefined, 400, '', 'admission webhook "w" denied the request without explanation'],
    ['a message', { ...result, message: 'no' }, 400, '', 'admission webhook "w" denied the request: no'],
    ['a reason', { ...result, reason: 'Why' }, 400, 'Why', 'admission webhook "w" denied the request: Why'],
    [
      'a code',
      { ...result, code: 429, reason: 'TooManyRequests', message: 'later' },
      429,
      'TooManyRequests',
      'admission webhook "w" denied the request: later',
    ],
    [
      'a success code',
      { ...result, code: 200, message: 'no' },
      400,
      '',
      'admission webhook "w" denied the request: no',
    ],
    [
      'no code at all',
      { ...result, code: 1e9, message: 'no' },
      400,
      '',
      'admission webhook "w" denied the request: no',
    ],
  ])('with %s', (_, given, code, reason, message) => {
    const error = denial('w', given);
    expect([error.code, error.reason, error.message]).toEqual([code, reason, message]);
  });
});
