import { type FieldError, forbidden, invalid } from '../../field-error.ts';
import type { JsonObject, KubeObject } from '../../meta.ts';
import { dnsLabelErrors } from '../../names.ts';
import type { ResourceDefinition } from '../../resource.ts';
import { int32, int64, intOrString, list, listMap, message, str, time } from '../../schema.ts';
import { ageColumn, column, containerColumns, nameColumn } from '../columns.ts';
import { ensureObject, type Fields, has, numberAt, objectAt, objectsAt, setDefault, textAt } from '../core/fields.ts';
import { persistentVolumeClaim } from '../core/persistent-volume-claim.ts';
import { podTemplateSpec } from '../core/pod-template.ts';
import { builtin, labelSelector, objectSchema } from '../meta.ts';
import {
  enumErrors,
  intOrPercentErrors,
  intOrPercentValue,
  isSame,
  nonNegativeErrors,
  percentLimitErrors,
} from '../validation.ts';
import {
  APPS,
  countErrors,
  scalePaths,
  scaleSubresource,
  selectorErrors,
  specWithTemplateDefaults,
  templateErrors,
} from './workload.ts';

const rollingUpdateStatefulSetStrategy = message(
  `${APPS}.RollingUpdateStatefulSetStrategy`,
  'How a rolling update goes on.',
  {
    partition: [1, int32({ pointer: true }), 'Pods with a lower ordinal than this are left as they are.'],
    maxUnavailable: [2, intOrString(), 'Pods that may be missing during the update, as a number or a percentage.'],
  },
);

const statefulSetUpdateStrategy = message(
  `${APPS}.StatefulSetUpdateStrategy`,
  'How pods are replaced when the template changes.',
  {
    type: [1, str(), 'RollingUpdate or OnDelete.'],
    rollingUpdate: [2, rollingUpdateStatefulSetStrategy, 'Parameters of a rolling update.'],
  },
);

const statefulSetPersistentVolumeClaimRetentionPolicy = message(
  `${APPS}.StatefulSetPersistentVolumeClaimRetentionPolicy`,
  'What becomes of the claims made from the templates.',
  {
    whenDeleted: [1, str(), 'Retain or Delete, when the StatefulSet is deleted.'],
    whenScaled: [2, str(), 'Retain or Delete, when it is scaled down.'],
  },
);

const statefulSetOrdinals = message(`${APPS}.StatefulSetOrdinals`, 'How the pods are numbered.', {
  start: [1, int32(), 'The number of the first pod.'],
});

const statefulSetSpec = message(
  `${APPS}.StatefulSetSpec`,
  'The wanted state of a StatefulSet.',
  {
    replicas: [1, int32({ pointer: true }), 'How many pods are wanted.'],
    selector: [
      2,
      labelSelector,
      'Which pods belong to this StatefulSet; it has to match the template and cannot change.',
    ],
    template: [3, podTemplateSpec, 'What the pods look like.'],
    volumeClaimTemplates: [4, list(persistentVolumeClaim), 'Claims that each pod gets one of.'],
    serviceName: [5, str(), 'The service that gives the pods their names in DNS.'],
    podManagementPolicy: [6, str(), 'OrderedReady or Parallel: whether pods wait for each other.'],
    updateStrategy: [7, statefulSetUpdateStrategy, 'How pods are replaced when the template changes.'],
    revisionHistoryLimit: [8, int32({ pointer: true }), 'How many old revisions are kept for a rollback.'],
    minReadySeconds: [9, int32(), 'Seconds for which a new pod has to be ready before it counts as available.'],
    persistentVolumeClaimRetentionPolicy: [
      10,
      statefulSetPersistentVolumeClaimRetentionPolicy,
      'What becomes of the claims made from the templates.',
    ],
    ordinals: [11, statefulSetOrdinals, 'How the pods are numbered.'],
  },
  { required: ['selector', 'template'] },
);

const statefulSetCondition = message(
  `${APPS}.StatefulSetCondition`,
  "One aspect of a StatefulSet's state.",
  {
    type: [1, str(), 'What aspect this is.'],
    status: [2, str(), 'True, False or Unknown.'],
    lastTransitionTime: [3, time(), 'When the status last changed.'],
    reason: [4, str(), 'One word for the cause.'],
    message: [5, str(), 'The cause in words.'],
  },
  { required: ['type', 'status'] },
);

const statefulSetStatus = message(
  `${APPS}.StatefulSetStatus`,
  'The observed state of a StatefulSet.',
  {
    observedGeneration: [1, int64(), 'The generation that the controller has acted on.'],
    replicas: [2, int32(), 'Pods that exist.'],
    readyReplicas: [3, int32(), 'Pods that are ready.'],
    currentReplicas: [4, int32(), 'Pods of the current revision.'],
    updatedReplicas: [5, int32(), 'Pods of the new revision.'],
    currentRevision: [6, str(), 'The revision that an update starts from.'],
    updateRevision: [7, str(), 'The revision that an update goes to.'],
    collisionCount: [9, int32({ pointer: true }), 'How often a name derived from the template was already taken.'],
    conditions: [10, listMap(['type'], statefulSetCondition), 'Aspects of the current state, one of each type.'],
    availableReplicas: [11, int32(), 'Pods that have been ready for minReadySeconds.'],
  },
  { required: ['replicas'] },
);

const statefulSet = objectSchema(`${APPS}.StatefulSet`, 'Pods with lasting names and storage.', {
  spec: [2, statefulSetSpec, 'What is asked for.'],
  status: [3, statefulSetStatus, 'What was observed.'],
});

function applySpecDefaults(spec: JsonObject): void {
  setDefault(spec, 'podManagementPolicy', 'OrderedReady');
  setDefault(spec, 'replicas', 1);
  setDefault(spec, 'revisionHistoryLimit', 10);
  const strategy = ensureObject(spec, 'updateStrategy');
  if (strategy !== undefined) {
    if (textAt(strategy, 'type') === '') ensureObject(strategy, 'rollingUpdate');
    setDefault(strategy, 'type', 'RollingUpdate');
    const rollingUpdate = strategy['type'] === 'RollingUpdate' ? objectAt(strategy, 'rollingUpdate') : undefined;
    if (rollingUpdate !== undefined) setDefault(rollingUpdate, 'partition', 0);
  }
  const retention = ensureObject(spec, 'persistentVolumeClaimRetentionPolicy');
  if (retention !== undefined) {
    setDefault(retention, 'whenDeleted', 'Retain');
    setDefault(retention, 'whenScaled', 'Retain');
  }
  for (const claim of objectsAt(spec, 'volumeClaimTemplates')) applyClaimDefaults(claim as JsonObject);
}

/** Templates are whole claims, with all that one has that is just made. */
function applyClaimDefaults(claim: JsonObject): void {
  setDefault(claim, 'apiVersion', 'v1');
  setDefault(claim, 'kind', 'PersistentVolumeClaim');
  const spec = ensureObject(claim, 'spec');
  if (spec !== undefined) setDefault(spec, 'volumeMode', 'Filesystem');
  const status = ensureObject(claim, 'status');
  if (status !== undefined) setDefault(status, 'phase', 'Pending');
}

function updateStrategyErrors(strategy: Fields | undefined): FieldError[] {
  const type = textAt(strategy, 'type');
  const path = 'spec.updateStrategy';
  const rollingUpdate = objectAt(strategy, 'rollingUpdate');
  if (type === 'OnDelete') {
    if (rollingUpdate === undefined) return [];
    return [invalid(`${path}.rollingUpdate`, rollingUpdate, "only allowed for updateStrategy 'RollingUpdate'")];
  }
  if (type !== 'RollingUpdate') return [invalid(path, strategy, "must be 'RollingUpdate' or 'OnDelete'")];
  const maxUnavailable = rollingUpdate?.['maxUnavailable'];
  const errors = [
    ...nonNegativeErrors(rollingUpdate, `${path}.rollingUpdate`, 'partition'),
    ...intOrPercentErrors(maxUnavailable, `${path}.rollingUpdate.maxUnavailable`),
    ...percentLimitErrors(maxUnavailable, `${path}.rollingUpdate.maxUnavailable`),
  ];
  if (has(rollingUpdate, 'maxUnavailable') && intOrPercentValue(maxUnavailable) === 0) {
    errors.push(invalid(`${path}.rollingUpdate.maxUnavailable`, maxUnavailable, 'cannot be 0'));
  }
  return errors;
}

/** The template as its pods will be: the claims become volumes, and the set decides on names. */
function templateWithClaims(spec: Fields | undefined): JsonObject | undefined {
  const template = objectAt(spec, 'template');
  const podSpec = objectAt(template, 'spec');
  if (podSpec === undefined) return template;
  const names = objectsAt(spec, 'volumeClaimTemplates').map((claim) => textAt(objectAt(claim, 'metadata'), 'name'));
  const own = objectsAt(podSpec, 'volumes').filter((volume) => !names.includes(textAt(volume, 'name')));
  const claimed = names.map((name) => ({ name, persistentVolumeClaim: { claimName: name } }));
  const { hostname: _hostname, subdomain: _subdomain, ...kept } = podSpec;
  const volumes = [...claimed, ...own];
  return { ...template, spec: { ...kept, ...(volumes.length > 0 ? { volumes } : {}) } };
}

function specErrors(spec: Fields | undefined): FieldError[] {
  const policy = textAt(spec, 'podManagementPolicy');
  const errors = [
    ...updateStrategyErrors(objectAt(spec, 'updateStrategy')),
    ...nonNegativeErrors(spec, 'spec', 'replicas', 'minReadySeconds', 'revisionHistoryLimit'),
    ...nonNegativeErrors(objectAt(spec, 'ordinals'), 'spec.ordinals', 'start'),
    ...selectorErrors(spec, 'statefulset'),
    ...templateErrors(templateWithClaims(spec), 'StatefulSet'),
  ];
  if (policy !== 'OrderedReady' && policy !== 'Parallel') {
    errors.push(invalid('spec.podManagementPolicy', policy, "must be 'OrderedReady' or 'Parallel'"));
  }
  const retention = objectAt(spec, 'persistentVolumeClaimRetentionPolicy');
  for (const field of ['whenDeleted', 'whenScaled']) {
    errors.push(...enumErrors(retention, 'spec.persistentVolumeClaimRetentionPolicy', field, ['Retain', 'Delete']));
  }
  const service = textAt(spec, 'serviceName');
  if (service !== '') {
    errors.push(...dnsLabelErrors(service).map((detail) => invalid('spec.serviceName', service, detail)));
  }
  return errors;
}

const CHANGEABLE: ReadonlySet<string> = new Set([
  'replicas',
  'ordinals',
  'template',
  'updateStrategy',
  'revisionHistoryLimit',
  'persistentVolumeClaimRetentionPolicy',
  'minReadySeconds',
]);

function updateErrors(object: KubeObject, old: KubeObject): FieldError[] {
  const fixedOf = (spec: JsonObject | undefined): unknown =>
    Object.fromEntries(Object.entries(spec ?? {}).filter(([field]) => !CHANGEABLE.has(field)));
  if (isSame(fixedOf(objectAt(object, 'spec')), fixedOf(objectAt(old, 'spec')))) return [];
  const detail =
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";
  return [forbidden('spec', detail)];
}

/** apps/v1 StatefulSet. */
export const statefulSetDefinition: ResourceDefinition = builtin({
  group: 'apps',
  version: 'v1',
  plural: 'statefulsets',
  kind: 'StatefulSet',
  namespaced: true,
  shortNames: ['sts'],
  categories: ['all'],
  schema: statefulSet,
  nameRule: 'dns-label',
  hasStatus: true,
  hasGeneration: true,
  subresources: [scaleSubresource],
  scale: scalePaths,
  columns: [
    nameColumn,
    column('Ready', 'string', 'Pods that are ready, of those wanted.', (spec, status) => {
      return `${numberAt(status, 'readyReplicas') ?? 0}/${numberAt(spec, 'replicas') ?? 0}`;
    }),
    ageColumn,
    ...containerColumns(),
  ],
  strategy: {
    applyDefaults(object) {
      const spec = specWithTemplateDefaults(object);
      if (spec !== undefined) applySpecDefaults(spec);
    },
    prepareForCreate(object) {
      object.status = { replicas: 0, availableReplicas: 0 };
    },
    validate: (object) => specErrors(objectAt(object, 'spec')),
    validateUpdate: updateErrors,
    validateStatusUpdate: (object) =>
      countErrors(
        objectAt(object, 'status'),
        ['readyReplicas', 'currentReplicas', 'updatedReplicas', 'availableReplicas'],
        [
          ['readyReplicas', 'replicas'],
          ['currentReplicas', 'replicas'],
          ['updatedReplicas', 'replicas'],
          ['availableReplicas', 'replicas'],
          ['availableReplicas', 'readyReplicas'],
        ],
      ),
  },
});
