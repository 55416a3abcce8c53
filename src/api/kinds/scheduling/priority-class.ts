import { type FieldError, forbidden } from '../../field-error.ts';
import type { KubeObject } from '../../meta.ts';
import type { ResourceDefinition } from '../../resource.ts';
import { bool, enumeration, int32, str } from '../../schema.ts';
import { ageColumn, column, nameColumn } from '../columns.ts';
import { isSet, numberAt, textAt } from '../core/fields.ts';
import { builtin, objectSchema } from '../meta.ts';
import { immutableErrors } from '../validation.ts';

const SCHEDULING = 'io.k8s.api.scheduling.v1';

/** Above this, a class is the system's. */
const USER_PRIORITY_MAX = 1_000_000_000;

/** The classes that may be named `system-...`, with their values. */
const SYSTEM_PRIORITIES: ReadonlyMap<string, number> = new Map([
  ['system-node-critical', 2_000_001_000],
  ['system-cluster-critical', 2_000_000_000],
]);

const priorityClass = objectSchema(
  `${SCHEDULING}.PriorityClass`,
  'A name for how important pods are.',
  {
    value: [2, int32({ default: 0 }), 'The number that pods of this class get; higher is more important.'],
    globalDefault: [3, bool(), 'Whether pods that name no class get this one; only one class may say so.'],
    description: [4, str(), 'When this class should be used.'],
    preemptionPolicy: [
      5,
      enumeration(['Never', 'PreemptLowerPriority'], { pointer: true, default: 'PreemptLowerPriority' }),
      'PreemptLowerPriority or Never.',
    ],
  },
  { required: ['value'] },
);

function priorityClassErrors(object: KubeObject): FieldError[] {
  const { name = '' } = object.metadata;
  const value = numberAt(object, 'value') ?? 0;
  if (!name.startsWith('system-')) {
    if (value <= USER_PRIORITY_MAX) return [];
    return [forbidden('value', `maximum allowed value of a user defined priority is ${USER_PRIORITY_MAX}`)];
  }
  const expected = SYSTEM_PRIORITIES.get(name);
  const reason =
    expected === undefined
      ? `${name} is not a known system priority class`
      : value !== expected
        ? `value of ${name} PriorityClass must be ${expected}`
        : isSet(object, 'globalDefault')
          ? `globalDefault of ${name} PriorityClass must be false`
          : undefined;
  if (reason === undefined) return [];
  const detail = `priority class names with 'system-' prefix are reserved for system use only. error: ${reason}`;
  return [forbidden('metadata.name', detail)];
}

/** scheduling.k8s.io/v1 PriorityClass. That only one class is the default is for admission to see to. */
export const priorityClassDefinition: ResourceDefinition = builtin({
  group: 'scheduling.k8s.io',
  version: 'v1',
  plural: 'priorityclasses',
  kind: 'PriorityClass',
  namespaced: false,
  shortNames: ['pc'],
  schema: priorityClass,
  columns: [
    nameColumn,
    column(
      'Value',
      'integer',
      'The number that pods of this class get.',
      (_spec, _status, object) => numberAt(object, 'value') ?? 0,
    ),
    column('Global-Default', 'boolean', 'Whether pods that name no class get this one.', (_spec, _status, object) =>
      isSet(object, 'globalDefault'),
    ),
    ageColumn,
    column('PreemptionPolicy', 'string', 'Whether pods of this class may push others out.', (_spec, _status, object) =>
      textAt(object, 'preemptionPolicy'),
    ),
  ],
  strategy: {
    prepareForCreate(object) {
      object.metadata.generation = 1;
    },
    validate: priorityClassErrors,
    validateUpdate: (object, old) => [
      ...(object.value === old.value ? [] : [forbidden('value', 'may not be changed in an update.')]),
      ...immutableErrors(object.preemptionPolicy, old.preemptionPolicy, 'preemptionPolicy'),
    ],
  },
});
