import { bool, list, listMap } from '../../schema.ts';
import { ageColumn, column, nameColumn } from '../columns.ts';
import { objectSchema } from '../meta.ts';
import { tokenRequestSchema } from '../meta-options.ts';
import { objectsAt } from './fields.ts';
import { coreKind } from './kind.ts';
import { CORE } from './schema/package.ts';
import { localObjectReference, objectReference } from './schema/references.ts';

/** core/v1 ServiceAccount. */
export const serviceAccountDefinition = coreKind({
  plural: 'serviceaccounts',
  kind: 'ServiceAccount',
  namespaced: true,
  shortNames: ['sa'],
  schema: objectSchema(`${CORE}.ServiceAccount`, 'An identity for processes in pods.', {
    secrets: [2, listMap(['name'], objectReference), 'Secrets that pods of this account may use.'],
    imagePullSecrets: [3, list(localObjectReference), 'Secrets for pulling images.'],
    automountServiceAccountToken: [4, bool({ pointer: true }), 'Whether pods get a token; they can say otherwise.'],
  }),
  subresources: [
    {
      name: 'token',
      kind: 'TokenRequest',
      group: 'authentication.k8s.io',
      version: 'v1',
      verbs: ['create'],
      schema: tokenRequestSchema,
    },
  ],
  columns: [
    nameColumn,
    column(
      'Secrets',
      'string',
      'How many secrets the account has.',
      (_spec, _status, object) => objectsAt(object, 'secrets').length,
    ),
    ageColumn,
  ],
});
