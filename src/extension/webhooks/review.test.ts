import { describe, expect, it } from 'vitest';
import { forbidden, invalid } from '../../api/field-error.ts';
import { readReview, reviewOf, verdictOf } from './review.ts';

const encode = (value: unknown): Uint8Array => Buffer.from(JSON.stringify(value));
const REQUEST = { uid: 'u1', resource: { group: 'kubevirt.io', version: 'v1', resource: 'virtualmachines' } };
const REVIEW = { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request: REQUEST };

describe('a question', () => {
  it('is read', () => expect(readReview(encode(REVIEW))).toEqual({ ...REQUEST, userInfo: {} }));

  it.each([
    [{ ...REVIEW, apiVersion: 'admission.k8s.io/v1beta1' }],
    [{ ...REVIEW, request: null }],
    [{ ...REVIEW, request: { uid: 'u1' } }],
    [null],
    [[]],
  ])('is none where it is %j', (body) => expect(() => readReview(encode(body))).toThrow(/AdmissionReview/));

  it('that is no JSON is refused', () =>
    expect(() => readReview(Buffer.from('{"apiVersion"'))).toThrow('no AdmissionReview'));

  it.each(['__proto__', '\\u005F_proto__', '__pr\\u006Fto__'])('with the key %s is refused', (key) => {
    const text = JSON.stringify(REVIEW).replace('"uid"', `"${key}":{"isAdmin":true},"uid"`);
    expect(() => readReview(Buffer.from(text))).toThrow('__proto__');
  });
});

describe('an answer', () => {
  const response = (verdict: Parameters<typeof reviewOf>[1]): object =>
    (reviewOf('u1', verdict) as { response: object }).response;

  it('may be yes, with warnings and changes', () => {
    expect(response({ allowed: true })).toEqual({ uid: 'u1', allowed: true });
    expect(response({ allowed: true, patch: [] })).toEqual({ uid: 'u1', allowed: true });
    expect(response({ allowed: true, warnings: ['w'], patch: [{ op: 'remove', path: '/x' }] })).toEqual({
      uid: 'u1',
      allowed: true,
      warnings: ['w'],
      patchType: 'JSONPatch',
      patch: Buffer.from('[{"op":"remove","path":"/x"}]').toString('base64'),
    });
  });

  it('may be no, with every reason in the details and ten of them in the message', () => {
    const errors = Array.from({ length: 12 }, (_, index) => invalid(`spec.f${index}`, index, 'bad'));
    const verdict = verdictOf([forbidden('', 'never'), ...errors], ['unheard']);
    expect(verdict).toMatchObject({ allowed: false, status: { code: 422, reason: 'Invalid' } });
    if (verdict.allowed) throw new Error('it was let pass');
    expect(verdict.status.details?.causes).toHaveLength(13);
    expect(verdict.status.message).toMatch(/^Forbidden: never, spec\.f0: Invalid value: 0: bad, /);
    expect(verdict.status.message).toMatch(/, and 3 more validation errors$/);
  });
});
