import { required } from '../../field-error.ts';
import type { KubeObject } from '../../meta.ts';
import { parseApiVersion } from '../../meta.ts';
import type { ResourceDefinition } from '../../resource.ts';
import { anything, int64 } from '../../schema.ts';
import { ageColumn, column, NONE, nameColumn } from '../columns.ts';
import { numberAt, objectAt } from '../core/fields.ts';
import { builtin, objectSchema } from '../meta.ts';
import { immutableErrors, nonNegativeErrors } from '../validation.ts';
import { APPS } from './workload.ts';

const controllerRevision = objectSchema(
  `${APPS}.ControllerRevision`,
  "A snapshot of a controller's template, kept for rollbacks.",
  {
    data: [2, anything(), 'The snapshot.'],
    revision: [3, int64(), 'Counts the snapshots.'],
  },
  { required: ['revision'] },
);

function controllerText(object: KubeObject): string {
  const owner = object.metadata.ownerReferences?.find((reference) => reference.controller === true);
  if (owner === undefined) return NONE;
  const { group } = parseApiVersion(owner.apiVersion);
  return `${(group === '' ? owner.kind : `${owner.kind}.${group}`).toLowerCase()}/${owner.name}`;
}

/** apps/v1 ControllerRevision. */
export const controllerRevisionDefinition: ResourceDefinition = builtin({
  group: 'apps',
  version: 'v1',
  plural: 'controllerrevisions',
  kind: 'ControllerRevision',
  namespaced: true,
  schema: controllerRevision,
  columns: [
    nameColumn,
    column('Controller', 'string', 'Whose snapshot this is.', (_spec, _status, object) => controllerText(object)),
    column(
      'Revision',
      'string',
      'Counts the snapshots.',
      (_spec, _status, object) => numberAt(object, 'revision') ?? 0,
    ),
    ageColumn,
  ],
  strategy: {
    validate: (object) => [
      ...nonNegativeErrors(object, '', 'revision'),
      ...(objectAt(object, 'data') === undefined ? [required('data', 'data is mandatory')] : []),
    ],
    validateUpdate: (object, old) => immutableErrors(object.data, old.data, 'data'),
  },
});
