import { child, duplicate, type FieldError, forbidden, invalid, notSupported, required } from '../../field-error.ts';
import { humanDuration } from '../../human-duration.ts';
import type { KubeObject } from '../../meta.ts';
import type { ResourceDefinition } from '../../resource.ts';
import { bytes, int32, list, listMap, map, message, str, time } from '../../schema.ts';
import { ageColumn, column, NONE, nameColumn } from '../columns.ts';
import { type Fields, has, numberAt, objectAt, objectsAt, textAt, textsAt } from '../core/fields.ts';
import { builtin, objectSchema } from '../meta.ts';
import { isSame } from '../validation.ts';
import { signerNameErrors } from './signer-name.ts';

const CERTIFICATES = 'io.k8s.api.certificates.v1';
const EXPIRATION_SECONDS_MIN = 600;

const certificateSigningRequestSpec = message(
  `${CERTIFICATES}.CertificateSigningRequestSpec`,
  'The certificate that is wanted, and who wants it.',
  {
    request: [1, bytes(), 'The signing request, in PEM.'],
    signerName: [7, str(), 'Who shall sign it.'],
    expirationSeconds: [
      8,
      int32({ pointer: true }),
      'How long the certificate shall be valid; the signer may choose otherwise.',
    ],
    usages: [5, list(str()), 'What the key is to be used for.'],
    username: [2, str(), 'Who asked; set by the server.'],
    uid: [3, str(), 'The UID of who asked; set by the server.'],
    groups: [4, list(str()), 'The groups of who asked; set by the server.'],
    extra: [6, map(list(str())), 'What else is known of who asked; set by the server.'],
  },
  { required: ['request', 'signerName'] },
);

const certificateSigningRequestCondition = message(
  `${CERTIFICATES}.CertificateSigningRequestCondition`,
  'A decision about the request.',
  {
    type: [1, str(), 'Approved, Denied or Failed.'],
    status: [6, str(), 'True for these three types.'],
    reason: [2, str(), 'One word for the cause.'],
    message: [3, str(), 'The cause in words.'],
    lastUpdateTime: [4, time(), 'When this was last written.'],
    lastTransitionTime: [5, time(), 'When the status last changed.'],
  },
  { required: ['type', 'status'] },
);

const certificateSigningRequestStatus = message(
  `${CERTIFICATES}.CertificateSigningRequestStatus`,
  'The decisions and the certificate.',
  {
    conditions: [
      1,
      listMap(['type'], certificateSigningRequestCondition, {
        'x-kubernetes-patch-strategy': undefined,
        'x-kubernetes-patch-merge-key': undefined,
      }),
      'Aspects of the current state, one of each type.',
    ],
    certificate: [2, bytes(), 'The certificate, in PEM, once it is issued.'],
  },
);

const certificateSigningRequest = objectSchema(
  `${CERTIFICATES}.CertificateSigningRequest`,
  'Asks for a certificate, which an approver allows and a signer issues.',
  {
    spec: [2, certificateSigningRequestSpec, 'What is asked for.'],
    status: [3, certificateSigningRequestStatus, 'What was observed.'],
  },
  { required: ['spec'] },
);

const USAGES: readonly string[] = [
  'any',
  'cert sign',
  'client auth',
  'code signing',
  'content commitment',
  'crl sign',
  'data encipherment',
  'decipher only',
  'digital signature',
  'email protection',
  'encipher only',
  'ipsec end system',
  'ipsec tunnel',
  'ipsec user',
  'key agreement',
  'key encipherment',
  'microsoft sgc',
  'netscape sgc',
  'ocsp signing',
  's/mime',
  'server auth',
  'signing',
  'timestamping',
];

function usagesErrors(spec: Fields | undefined): FieldError[] {
  const usages = textsAt(spec, 'usages');
  if (usages.length === 0) return [required('spec.usages')];
  return usages.flatMap((usage, index) => {
    const path = child('spec.usages', index);
    if (!USAGES.includes(usage)) return [notSupported(path, usage, USAGES)];
    return usages.indexOf(usage) < index ? [duplicate(path, usage)] : [];
  });
}

function conditionsErrors(status: Fields | undefined): FieldError[] {
  const errors: FieldError[] = [];
  const seen = new Set<string>();
  objectsAt(status, 'conditions').forEach((each, index) => {
    const path = child('status.conditions', index);
    const type = textAt(each, 'type');
    const allowed = ['Approved', 'Denied', 'Failed'].includes(type) ? ['True'] : ['False', 'True', 'Unknown'];
    const value = textAt(each, 'status');
    if (has(each, 'type') && type === '') errors.push(required(child(path, 'type')));
    if (has(each, 'status') && !allowed.includes(value))
      errors.push(notSupported(child(path, 'status'), value, allowed));
    if (seen.has(type)) errors.push(duplicate(child(path, 'type'), type));
    seen.add(type);
  });
  if (seen.has('Approved') && seen.has('Denied')) {
    errors.push(invalid('status.conditions', 'Denied', 'Approved and Denied conditions are mutually exclusive'));
  }
  return errors;
}

function requestErrors(request: KubeObject): FieldError[] {
  const spec = objectAt(request, 'spec');
  const signerName = textAt(spec, 'signerName');
  const expirationSeconds = numberAt(spec, 'expirationSeconds');
  const errors = usagesErrors(spec);
  if (signerName === 'kubernetes.io/legacy-unknown') {
    errors.push(invalid('spec.signerName', signerName, 'the legacy signerName is not allowed via this API version'));
  } else if (has(spec, 'signerName')) {
    errors.push(...signerNameErrors(signerName, 'spec.signerName'));
  }
  if (expirationSeconds !== undefined && expirationSeconds < EXPIRATION_SECONDS_MIN) {
    const detail = 'may not specify a duration less than 600 seconds (10 minutes)';
    errors.push(invalid('spec.expirationSeconds', expirationSeconds, detail));
  }
  return [...errors, ...conditionsErrors(objectAt(request, 'status'))];
}

function conditionsOf(request: KubeObject, type: string): readonly Fields[] {
  return objectsAt(objectAt(request, 'status'), 'conditions').filter((each) => each['type'] === type);
}

function removalErrors(request: KubeObject, old: KubeObject): FieldError[] {
  return ['Approved', 'Denied', 'Failed']
    .filter((type) => conditionsOf(request, type).length < conditionsOf(old, type).length)
    .map((type) => forbidden('status.conditions', `updates may not remove a condition of type "${type}"`));
}

function statusErrors(request: KubeObject, old: KubeObject): FieldError[] {
  const errors = removalErrors(request, old);
  for (const type of ['Approved', 'Denied']) {
    const conditions = conditionsOf(request, type);
    const oldConditions = conditionsOf(old, type);
    if (conditions.length > oldConditions.length) {
      errors.push(forbidden('status.conditions', `updates may not add a condition of type "${type}"`));
    } else if (conditions.length === oldConditions.length && !isSame(conditions, oldConditions)) {
      errors.push(forbidden('status.conditions', `updates may not modify a condition of type "${type}"`));
    }
  }
  const issued = textAt(objectAt(old, 'status'), 'certificate');
  if (issued !== '' && textAt(objectAt(request, 'status'), 'certificate') !== issued) {
    errors.push(forbidden('status.certificate', 'updates may not modify existing certificate content'));
  }
  return errors;
}

/** What an update through `approval` may not do: take decisions back, or set the certificate. */
export function approvalErrors(request: KubeObject, old: KubeObject): FieldError[] {
  const errors = removalErrors(request, old);
  if (!isSame(objectAt(request, 'status')?.['certificate'], objectAt(old, 'status')?.['certificate'])) {
    errors.push(forbidden('status.certificate', 'updates may not set certificate content'));
  }
  return errors;
}

function conditionText(status: Fields | undefined): string {
  const types = new Set(objectsAt(status, 'conditions').map((each) => textAt(each, 'type')));
  const decision = types.has('Denied') ? 'Denied' : types.has('Approved') ? 'Approved' : 'Pending';
  const failed = types.has('Failed') ? ',Failed' : '';
  return `${decision}${failed}${textAt(status, 'certificate') === '' ? '' : ',Issued'}`;
}

/** Keeps what the server has put there about who asked. */
function restoreSpec(request: KubeObject, old: KubeObject): void {
  request.spec = old.spec;
}

/**
 * certificates.k8s.io/v1 CertificateSigningRequest. The server fills in who asked before a request is stored; its
 * spec cannot change afterwards. Whether the PEM holds a request is for the API server to check, which has the means.
 */
export const certificateSigningRequestDefinition: ResourceDefinition = builtin({
  group: 'certificates.k8s.io',
  version: 'v1',
  plural: 'certificatesigningrequests',
  kind: 'CertificateSigningRequest',
  namespaced: false,
  shortNames: ['csr'],
  schema: certificateSigningRequest,
  nameRule: 'path-segment',
  hasStatus: true,
  subresources: [{ name: 'approval', verbs: ['get', 'patch', 'update'] }],
  columns: [
    nameColumn,
    ageColumn,
    column('SignerName', 'string', 'Who shall sign it.', (spec) => textAt(spec, 'signerName') || NONE),
    column('Requestor', 'string', 'Who asked.', (spec) => textAt(spec, 'username')),
    column('RequestedDuration', 'string', 'How long the certificate shall be valid.', (spec) => {
      const seconds = numberAt(spec, 'expirationSeconds');
      return seconds === undefined ? NONE : humanDuration(seconds * 1000);
    }),
    column('Condition', 'string', 'What has become of it.', (_spec, status) => conditionText(status)),
  ],
  selectableFields: ['spec.signerName'],
  strategy: {
    prepareForCreate(object) {
      object.status = {};
    },
    prepareForUpdate: restoreSpec,
    validate: requestErrors,
    validateStatusUpdate: statusErrors,
  },
});
