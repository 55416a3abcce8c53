import { describe, expect, it } from 'vitest';
import { createErrors, objectOf, statusErrors } from '../test-kinds.ts';
import { approvalErrors, certificateSigningRequestDefinition as requests } from './certificate-signing-request.ts';

const spec = { signerName: 'example.com/signer', usages: ['client auth', 'digital signature'], request: 'x' };
const approved = { type: 'Approved', status: 'True' };

describe('a CertificateSigningRequest', () => {
  it.each<[object, string[]]>([
    [{}, []],
    [{ usages: [] }, ['spec.usages: Required value']],
    [{ usages: ['client auth', 'client auth'] }, ['spec.usages[1]: Duplicate value: "client auth"']],
    [{ signerName: '' }, ['spec.signerName: Required value']],
    [
      { signerName: 'kubernetes.io/legacy-unknown' },
      [
        'spec.signerName: Invalid value: "kubernetes.io/legacy-unknown": the legacy signerName is not allowed via this API version',
      ],
    ],
    [
      { signerName: 'signer' },
      [
        'spec.signerName: Invalid value: "signer": must be a fully qualified domain and path of the form \'example.com/signer-name\'',
      ],
    ],
    [
      { signerName: 'example/signer' },
      ['spec.signerName: Invalid value: "example": should be a domain with at least two segments separated by dots'],
    ],
    [
      { expirationSeconds: 599 },
      ['spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 600 seconds (10 minutes)'],
    ],
  ])('with %j', (change, errors) => {
    expect(createErrors(requests, { spec: { ...spec, ...change } })).toEqual(errors);
  });

  it('knows its usages', () => {
    expect(createErrors(requests, { spec: { ...spec, usages: ['cooking'] } })[0]).toMatch(
      /^spec\.usages\[0\]: Unsupported value: "cooking": supported values: "any", "cert sign"/,
    );
  });

  it('keeps its spec', () => {
    const old = objectOf(requests, { spec });
    const changed = objectOf(requests, { spec: { ...spec, username: 'system:admin' } });
    requests.strategy?.prepareForUpdate?.(changed, old);
    expect(changed.spec).toEqual(spec);
  });

  it('is decided through approval only, for good', () => {
    expect(statusErrors(requests, { conditions: [approved] })).toEqual([
      'status.conditions: Forbidden: updates may not add a condition of type "Approved"',
    ]);
    expect(statusErrors(requests, {}, { conditions: [approved] })).toEqual([
      'status.conditions: Forbidden: updates may not remove a condition of type "Approved"',
    ]);
    expect(statusErrors(requests, { conditions: [{ ...approved, reason: 'x' }] }, { conditions: [approved] })).toEqual([
      'status.conditions: Forbidden: updates may not modify a condition of type "Approved"',
    ]);
    const old = objectOf(requests, { status: {} });
    const update = (status: object): string[] =>
      approvalErrors({ ...old, status }, old).map((error) => `${error.field}: ${error.message}`);
    expect(update({ conditions: [approved] })).toEqual([]);
    expect(update({ certificate: 'x' })).toEqual([
      'status.certificate: Forbidden: updates may not set certificate content',
    ]);
  });

  it('is issued through the status, once', () => {
    expect(statusErrors(requests, { conditions: [approved], certificate: 'x' }, { conditions: [approved] })).toEqual(
      [],
    );
    expect(statusErrors(requests, { certificate: 'y' }, { certificate: 'x' })).toEqual([
      'status.certificate: Forbidden: updates may not modify existing certificate content',
    ]);
  });

  it('is not both approved and denied', () => {
    const object = objectOf(requests, {
      spec,
      status: { conditions: [approved, { type: 'Denied', status: 'False' }] },
    });
    const fields = requests.strategy?.validate?.(object).map((error) => error.field);
    expect(fields).toEqual(['status.conditions[1].status', 'status.conditions']);
  });
});
