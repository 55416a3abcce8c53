import { child, duplicate, type FieldError, forbidden, invalid, required, tooLong } from '../../field-error.ts';
import type { KubeObject } from '../../meta.ts';
import { byteLength, qualifiedNameErrors } from '../../names.ts';
import type { ResourceDefinition } from '../../resource.ts';
import { bool, enumeration, list, map, message, str } from '../../schema.ts';
import { ageColumn, column, nameColumn } from '../columns.ts';
import { has, isSet, objectsAt, textAt, textEntriesAt, textsAt } from '../core/fields.ts';
import { builtin, objectSchema } from '../meta.ts';
import { immutableErrors, isSame } from '../validation.ts';

const STORAGE = 'io.k8s.api.storage.v1';
const PARAMETERS_MAX = 512;
const PARAMETERS_BYTES_MAX = 256 * 1024;
const DEFAULT_ANNOTATIONS = [
  'storageclass.kubernetes.io/is-default-class',
  'storageclass.beta.kubernetes.io/is-default-class',
];

const topologySelectorLabelRequirement = message(
  `io.k8s.api.core.v1.TopologySelectorLabelRequirement`,
  'A label and the values that it may have.',
  {
    key: [1, str(), 'The label.'],
    values: [2, list(str()), 'The values; one has to match.'],
  },
  { required: ['key', 'values'] },
);

const topologySelectorTerm = message(
  `io.k8s.api.core.v1.TopologySelectorTerm`,
  'A place, by the labels of its nodes; all have to match.',
  {
    matchLabelExpressions: [1, list(topologySelectorLabelRequirement), 'The labels that have to match.'],
  },
  { 'x-kubernetes-map-type': 'atomic' },
);

const storageClass = objectSchema(
  `${STORAGE}.StorageClass`,
  'A kind of storage that claims can ask for.',
  {
    provisioner: [2, str(), 'Who makes the volumes.'],
    parameters: [3, map(str()), 'What the provisioner is told.'],
    reclaimPolicy: [
      4,
      enumeration(['Delete', 'Retain'], { pointer: true, default: 'Delete' }),
      'Delete or Retain, for volumes made from this class.',
    ],
    mountOptions: [5, list(str()), 'Mount options of volumes made from this class.'],
    allowVolumeExpansion: [6, bool({ pointer: true }), 'Whether volumes can be made larger.'],
    volumeBindingMode: [
      7,
      enumeration(['Immediate', 'WaitForFirstConsumer'], { pointer: true, default: 'Immediate' }),
      'Immediate or WaitForFirstConsumer.',
    ],
    allowedTopologies: [8, list(topologySelectorTerm), 'Where volumes may be made.'],
  },
  { required: ['provisioner'] },
);

/** Whether claims that name no class get this one. */
function isDefaultStorageClass(storageClass: Pick<KubeObject, 'metadata'>): boolean {
  const annotations = new Map(Object.entries(storageClass.metadata.annotations ?? {}));
  return DEFAULT_ANNOTATIONS.some((annotation) => annotations.get(annotation) === 'true');
}

function provisionerErrors(object: KubeObject): FieldError[] {
  if (!has(object, 'provisioner')) return [];
  const provisioner = textAt(object, 'provisioner');
  if (provisioner === '') return [required('provisioner', provisioner)];
  return qualifiedNameErrors(provisioner.toLowerCase()).map((detail) => invalid('provisioner', provisioner, detail));
}

function parametersErrors(object: KubeObject): FieldError[] {
  const parameters = textEntriesAt(object, 'parameters');
  const errors: FieldError[] = [];
  if (parameters.length > PARAMETERS_MAX) {
    errors.push(tooLong('parameters', PARAMETERS_MAX));
  }
  if (parameters.some(([key]) => key === '')) errors.push(invalid('parameters', '', 'field can not be empty.'));
  const bytes = parameters.reduce((sum, [key, value]) => sum + byteLength(key) + byteLength(value), 0);
  if (bytes > PARAMETERS_BYTES_MAX) errors.push(tooLong('parameters', PARAMETERS_BYTES_MAX));
  return errors;
}

function topologyErrors(object: KubeObject): FieldError[] {
  return objectsAt(object, 'allowedTopologies').flatMap((term, index) => {
    const seen = new Set<string>();
    return objectsAt(term, 'matchLabelExpressions').flatMap((expression, at) => {
      const path = child(child(child('allowedTopologies', index), 'matchLabelExpressions'), at);
      const key = textAt(expression, 'key');
      const errors = qualifiedNameErrors(key).map((detail) => invalid(child(path, 'key'), key, detail));
      if (textsAt(expression, 'values').length === 0) errors.push(required(child(path, 'values')));
      if (seen.has(key)) errors.push(duplicate(child(path, 'key'), key));
      seen.add(key);
      return errors;
    });
  });
}

function updateErrors(object: KubeObject, old: KubeObject): FieldError[] {
  const errors: FieldError[] = [];
  for (const field of ['parameters', 'provisioner', 'reclaimPolicy'] as const) {
    if (!isSame(object[field], old[field])) errors.push(forbidden(field, `updates to ${field} are forbidden.`));
  }
  return [...errors, ...immutableErrors(object.volumeBindingMode, old.volumeBindingMode, 'volumeBindingMode')];
}

/** storage.k8s.io/v1 StorageClass. */
export const storageClassDefinition: ResourceDefinition = builtin({
  group: 'storage.k8s.io',
  version: 'v1',
  plural: 'storageclasses',
  kind: 'StorageClass',
  namespaced: false,
  shortNames: ['sc'],
  schema: storageClass,
  columns: [
    {
      ...nameColumn,
      cell: (object) => `${object.metadata.name ?? ''}${isDefaultStorageClass(object) ? ' (default)' : ''}`,
    },
    column('Provisioner', 'string', 'Who makes the volumes.', (_spec, _status, object) =>
      textAt(object, 'provisioner'),
    ),
    column(
      'ReclaimPolicy',
      'string',
      'What becomes of volumes whose claim is gone.',
      (_spec, _status, object) => textAt(object, 'reclaimPolicy') || 'Delete',
    ),
    column(
      'VolumeBindingMode',
      'string',
      'When volumes are made.',
      (_spec, _status, object) => textAt(object, 'volumeBindingMode') || 'Immediate',
    ),
    column('AllowVolumeExpansion', 'string', 'Whether volumes can be made larger.', (_spec, _status, object) =>
      isSet(object, 'allowVolumeExpansion'),
    ),
    ageColumn,
  ],
  strategy: {
    validate: (object) => [...provisionerErrors(object), ...parametersErrors(object), ...topologyErrors(object)],
    validateUpdate: updateErrors,
  },
});
