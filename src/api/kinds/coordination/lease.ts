import { type FieldError, forbidden, invalid } from '../../field-error.ts';
import type { ResourceDefinition } from '../../resource.ts';
import { int32, message, microTime, str } from '../../schema.ts';
import { ageColumn, column, nameColumn } from '../columns.ts';
import { ensureObject, type Fields, numberAt, objectAt, textAt } from '../core/fields.ts';
import { builtin, objectSchema } from '../meta.ts';
import { nonNegativeErrors } from '../validation.ts';

const COORDINATION = 'io.k8s.api.coordination.v1';

const leaseSpec = message(`${COORDINATION}.LeaseSpec`, 'Who holds the lease.', {
  holderIdentity: [1, str({ pointer: true }), 'The holder; empty when nobody is.'],
  leaseDurationSeconds: [2, int32({ pointer: true }), 'Seconds after the last renewal at which others may take over.'],
  acquireTime: [3, microTime(), 'When the holder took the lease.'],
  renewTime: [4, microTime(), 'When the holder last renewed it.'],
  leaseTransitions: [5, int32({ pointer: true }), 'How often the holder has changed.'],
  strategy: [6, str({ pointer: true }), 'How a holder is chosen when the election is coordinated.'],
  preferredHolder: [7, str({ pointer: true }), 'Whom the holder is asked to make room for.'],
});

const lease = objectSchema(`${COORDINATION}.Lease`, 'Says who holds a role and until when.', {
  spec: [2, leaseSpec, 'What is asked for.'],
});

function specErrors(spec: Fields | undefined): FieldError[] {
  const errors = nonNegativeErrors(spec, 'spec', 'leaseTransitions');
  const durationSeconds = numberAt(spec, 'leaseDurationSeconds');
  if (durationSeconds !== undefined && durationSeconds <= 0) {
    errors.unshift(invalid('spec.leaseDurationSeconds', durationSeconds, 'must be greater than 0'));
  }
  if (textAt(spec, 'preferredHolder') !== '' && textAt(spec, 'strategy') === '') {
    errors.push(forbidden('spec.preferredHolder', 'may only be specified if `strategy` is defined'));
  }
  return errors;
}

/** coordination.k8s.io/v1 Lease. */
export const leaseDefinition: ResourceDefinition = builtin({
  group: 'coordination.k8s.io',
  version: 'v1',
  plural: 'leases',
  kind: 'Lease',
  namespaced: true,
  needsResourceVersion: true,
  createsOnUpdate: true,
  schema: lease,
  columns: [
    nameColumn,
    column('Holder', 'string', 'Who holds it.', (spec) => textAt(spec, 'holderIdentity')),
    ageColumn,
  ],
  strategy: {
    applyDefaults(object) {
      ensureObject(object, 'spec');
    },
    validate: (object) => specErrors(objectAt(object, 'spec')),
  },
});
