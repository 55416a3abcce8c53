import { child, type FieldError, invalid, notSupported, required } from '../../field-error.ts';
import { humanDuration } from '../../human-duration.ts';
import type { JsonObject, KubeObject } from '../../meta.ts';
import type { ResourceDefinition } from '../../resource.ts';
import { bool, enumeration, int32, int64, list, message, set, str, time } from '../../schema.ts';
import { ageColumn, column, containerColumns, nameColumn, selectorColumn } from '../columns.ts';
import {
  ensureObject,
  type Fields,
  has,
  isSet,
  numberAt,
  objectAt,
  objectsAt,
  setDefault,
  textAt,
  textEntriesAt,
  textMapAt,
} from '../core/fields.ts';
import { applyPodTemplateDefaults, podTemplateErrors, podTemplateSpec } from '../core/pod-template.ts';
import { builtin, labelSelector, objectSchema } from '../meta.ts';
import { immutableErrors, isSame, labelSelectorErrors, nonNegativeErrors, selectorMatches } from '../validation.ts';

/** batch/v1 Job, stored and served; no controller acts on it. */

const BATCH = 'io.k8s.api.batch.v1';
const INT32_MAX = 2_147_483_647;

const podFailurePolicyOnExitCodesRequirement = message(
  `${BATCH}.PodFailurePolicyOnExitCodesRequirement`,
  'A match by exit code.',
  {
    containerName: [1, str({ pointer: true }), 'The container; any when empty.'],
    operator: [2, enumeration(['In', 'NotIn']), 'In or NotIn.'],
    values: [3, set(int32(), { 'x-kubernetes-patch-strategy': undefined }), 'The exit codes.'],
  },
  { required: ['operator', 'values'] },
);

const podFailurePolicyOnPodConditionsPattern = message(
  `${BATCH}.PodFailurePolicyOnPodConditionsPattern`,
  'A match by condition.',
  {
    type: [1, str(), "The condition's type."],
    status: [2, str({ default: 'True' }), "The condition's status; True when left out."],
  },
  { required: ['type', 'status'] },
);

const podFailurePolicyRule = message(
  `${BATCH}.PodFailurePolicyRule`,
  'One rule about failed pods.',
  {
    action: [1, enumeration(['Count', 'FailIndex', 'FailJob', 'Ignore']), 'Count, FailIndex, FailJob or Ignore.'],
    onExitCodes: [2, podFailurePolicyOnExitCodesRequirement, 'Matches by the exit code of a container.'],
    onPodConditions: [3, list(podFailurePolicyOnPodConditionsPattern), "Matches by the pod's conditions."],
  },
  { required: ['action'] },
);

const podFailurePolicy = message(
  `${BATCH}.PodFailurePolicy`,
  'Rules that say what a failed pod means for its Job.',
  {
    rules: [1, list(podFailurePolicyRule), 'The rules in order; the first that matches decides.'],
  },
  { required: ['rules'] },
);

const successPolicyRule = message(`${BATCH}.SuccessPolicyRule`, 'One rule about success.', {
  succeededIndexes: [1, str({ pointer: true }), 'Indexes that have to succeed, as ranges.'],
  succeededCount: [2, int32({ pointer: true }), 'How many of them have to succeed.'],
});

const successPolicy = message(
  `${BATCH}.SuccessPolicy`,
  'When a Job counts as done before all of its indexes are.',
  {
    rules: [1, list(successPolicyRule), 'The rules in order; the first that matches ends the Job.'],
  },
  { required: ['rules'] },
);

export const jobSpec = message(
  `${BATCH}.JobSpec`,
  'The wanted run of a Job.',
  {
    parallelism: [1, int32({ pointer: true }), 'How many pods may run at once.'],
    completions: [2, int32({ pointer: true }), 'How many pods have to succeed.'],
    activeDeadlineSeconds: [3, int64({ pointer: true }), 'Seconds after which the Job is stopped.'],
    podFailurePolicy: [11, podFailurePolicy, 'What failed pods mean for the Job.'],
    successPolicy: [16, successPolicy, 'When the Job counts as done early.'],
    backoffLimit: [7, int32({ pointer: true }), 'Failures after which the Job is given up.'],
    backoffLimitPerIndex: [12, int32({ pointer: true }), 'Failures after which one index is given up.'],
    maxFailedIndexes: [13, int32({ pointer: true }), 'Given-up indexes after which the Job is given up.'],
    selector: [4, labelSelector, 'Which pods belong to this Job; normally set by the server.'],
    manualSelector: [5, bool({ pointer: true }), "Whether the selector and the pods' labels are the author's affair."],
    template: [6, podTemplateSpec, 'What the pods look like.'],
    ttlSecondsAfterFinished: [8, int32({ pointer: true }), 'Seconds after its end at which the Job is deleted.'],
    completionMode: [9, enumeration(['Indexed', 'NonIndexed'], { pointer: true }), 'NonIndexed or Indexed.'],
    suspend: [10, bool({ pointer: true }), 'Whether no pods shall run for now.'],
    podReplacementPolicy: [
      14,
      enumeration(['Failed', 'TerminatingOrFailed'], { pointer: true }),
      'TerminatingOrFailed or Failed: when a replacement is made.',
    ],
    managedBy: [15, str({ pointer: true }), 'The controller that looks after this Job.'],
  },
  { required: ['template'] },
);

const jobCondition = message(
  `${BATCH}.JobCondition`,
  "One aspect of a Job's state.",
  {
    type: [1, str(), 'Complete, Failed, Suspended and so on.'],
    status: [2, str(), 'True, False or Unknown.'],
    lastProbeTime: [3, time(), 'When this was last checked.'],
    lastTransitionTime: [4, time(), 'When the status last changed.'],
    reason: [5, str(), 'One word for the cause.'],
    message: [6, str(), 'The cause in words.'],
  },
  { required: ['type', 'status'] },
);

const uncountedTerminatedPods = message(
  `${BATCH}.UncountedTerminatedPods`,
  'Ended pods that the counters do not include yet.',
  {
    succeeded: [1, set(str(), { 'x-kubernetes-patch-strategy': undefined }), 'UIDs of pods that succeeded.'],
    failed: [2, set(str(), { 'x-kubernetes-patch-strategy': undefined }), 'UIDs of pods that failed.'],
  },
);

const jobStatus = message(`${BATCH}.JobStatus`, 'The observed state of a Job.', {
  conditions: [
    1,
    list(jobCondition, { 'x-kubernetes-patch-strategy': 'merge', 'x-kubernetes-patch-merge-key': 'type' }),
    'Aspects of the current state, one of each type.',
  ],
  startTime: [2, time(), 'When the Job was started.'],
  completionTime: [3, time(), 'When the Job was done.'],
  active: [4, int32(), 'Pods that are pending or running.'],
  succeeded: [5, int32(), 'Pods that succeeded.'],
  failed: [6, int32(), 'Pods that failed.'],
  terminating: [11, int32({ pointer: true }), 'Pods that are on their way out.'],
  completedIndexes: [7, str(), 'Indexes that are done, as ranges.'],
  failedIndexes: [10, str({ pointer: true }), 'Indexes that were given up, as ranges.'],
  uncountedTerminatedPods: [8, uncountedTerminatedPods, 'Ended pods that the counters do not include yet.'],
  ready: [9, int32({ pointer: true }), 'Active pods that are ready.'],
});

const job = objectSchema(`${BATCH}.Job`, 'Runs pods until enough of them have succeeded.', {
  spec: [2, jobSpec, 'What is asked for.'],
  status: [3, jobStatus, 'What was observed.'],
});

/** Makes the selector that pods of this Job alone match, and the labels that they match it by. */
function generateSelector(job: KubeObject): void {
  const spec = ensureObject(job, 'spec');
  if (spec === undefined || isSet(spec, 'manualSelector')) return;
  const template = ensureObject(spec, 'template');
  const metadata = template && ensureObject(template, 'metadata');
  const labels = metadata && ensureObject(metadata, 'labels');
  const selector = ensureObject(spec, 'selector');
  const matchLabels = selector && ensureObject(selector, 'matchLabels');
  if (labels === undefined || matchLabels === undefined) return;
  const { name = '', uid = '' } = job.metadata;
  for (const prefix of ['', 'batch.kubernetes.io/']) {
    setDefault(labels, `${prefix}job-name`, name);
    setDefault(labels, `${prefix}controller-uid`, uid);
  }
  setDefault(matchLabels, 'batch.kubernetes.io/controller-uid', uid);
}

function hasLabels(job: KubeObject): boolean {
  return Object.keys(job.metadata.labels ?? {}).length > 0;
}

function templateLabels(job: KubeObject): Record<string, string> {
  return textMapAt(objectAt(objectAt(objectAt(job, 'spec'), 'template'), 'metadata'), 'labels');
}

function takeTemplateLabels(job: KubeObject): void {
  const labels = templateLabels(job);
  if (Object.keys(labels).length > 0) job.metadata.labels = labels;
}

function applySpecDefaults(spec: JsonObject): void {
  if (!has(spec, 'parallelism')) setDefault(spec, 'completions', 1);
  setDefault(spec, 'parallelism', 1);
  setDefault(spec, 'backoffLimit', has(spec, 'backoffLimitPerIndex') ? INT32_MAX : 6);
  setDefault(spec, 'completionMode', 'NonIndexed');
  setDefault(spec, 'suspend', false);
  setDefault(spec, 'podReplacementPolicy', has(spec, 'podFailurePolicy') ? 'Failed' : 'TerminatingOrFailed');
  setDefault(spec, 'manualSelector', false);
  const template = objectAt(spec, 'template');
  if (template !== undefined) applyPodTemplateDefaults(template);
}

/** What is wrong with the run that a Job, or the template of a CronJob, asks for. */
export function jobSpecErrors(spec: Fields | undefined, path: string): FieldError[] {
  const errors = nonNegativeErrors(
    spec,
    path,
    'parallelism',
    'completions',
    'activeDeadlineSeconds',
    'backoffLimit',
    'ttlSecondsAfterFinished',
    'backoffLimitPerIndex',
    'maxFailedIndexes',
  );
  if (has(spec, 'maxFailedIndexes') && !has(spec, 'backoffLimitPerIndex')) {
    errors.push(required(child(path, 'backoffLimitPerIndex'), 'when maxFailedIndexes is specified'));
  }
  if (textAt(spec, 'completionMode') === 'Indexed') {
    if (!has(spec, 'completions')) errors.push(required(child(path, 'completions'), 'when completion mode is Indexed'));
  } else {
    for (const field of ['backoffLimitPerIndex', 'maxFailedIndexes', 'successPolicy']) {
      if (has(spec, field)) errors.push(invalid(child(path, field), spec?.[field], 'requires indexed completion mode'));
    }
  }
  const template = objectAt(spec, 'template');
  if (template === undefined) return errors;
  return [
    ...errors,
    ...podTemplateErrors(template, child(path, 'template')),
    ...restartPolicyErrors(spec, child(path, 'template.spec.restartPolicy')),
  ];
}

function restartPolicyErrors(spec: Fields | undefined, path: string): FieldError[] {
  const policy = textAt(objectAt(objectAt(spec, 'template'), 'spec'), 'restartPolicy');
  if (policy === '' || policy === 'Always') return [required(path, 'valid values: "OnFailure", "Never"')];
  if (policy !== 'OnFailure' && policy !== 'Never') return [notSupported(path, policy, ['OnFailure', 'Never'])];
  if (policy === 'Never' || !has(spec, 'podFailurePolicy')) return [];
  return [invalid(path, policy, 'only "Never" is supported when podFailurePolicy is specified')];
}

function jobErrors(job: KubeObject): FieldError[] {
  const spec = objectAt(job, 'spec');
  const selector = objectAt(spec, 'selector');
  if (selector === undefined) return [...jobSpecErrors(spec, 'spec'), required('spec.selector')];
  const errors = [...jobSpecErrors(spec, 'spec'), ...labelSelectorErrors(selector, 'spec.selector')];
  const metadata = objectAt(objectAt(spec, 'template'), 'metadata');
  if (!selectorMatches(selector, textEntriesAt(metadata, 'labels'))) {
    const detail = '`selector` does not match template `labels`';
    errors.push(invalid('spec.template.metadata.labels', metadata?.['labels'] ?? null, detail));
  }
  return errors;
}

const FIXED_FIELDS = [
  'selector',
  'template',
  'completionMode',
  'podFailurePolicy',
  'backoffLimitPerIndex',
  'managedBy',
  'successPolicy',
];

function updateErrors(job: KubeObject, old: KubeObject): FieldError[] {
  const spec = objectAt(job, 'spec');
  const oldSpec = objectAt(old, 'spec');
  const isIndexed = textAt(spec, 'completionMode') === 'Indexed';
  // An indexed Job may change its size as long as both numbers stay the same.
  const mayResize = isIndexed && spec?.['completions'] === spec?.['parallelism'];
  // A suspended Job that never started may still change where its pods run.
  const mayChangeTemplate = isSet(oldSpec, 'suspend') && !has(objectAt(old, 'status'), 'startTime');
  return [...FIXED_FIELDS, 'completions']
    .filter((field) => !(field === 'completions' && mayResize) && !(field === 'template' && mayChangeTemplate))
    .flatMap((field) => immutableErrors(spec?.[field], oldSpec?.[field], child('spec', field)));
}

const STATUS_TEXTS = [
  ['Complete', 'Complete'],
  ['Failed', 'Failed'],
  ['', 'Terminating'],
  ['Suspended', 'Suspended'],
  ['FailureTarget', 'FailureTarget'],
  ['SuccessCriteriaMet', 'SuccessCriteriaMet'],
] as const;

function statusText(status: Fields | undefined, job: KubeObject): string {
  const held = new Set(
    objectsAt(status, 'conditions')
      .filter((condition) => condition['status'] === 'True')
      .map((condition) => textAt(condition, 'type')),
  );
  const found = STATUS_TEXTS.find(([type]) => (type === '' ? job.metadata.deletionTimestamp : held.has(type)));
  return found?.[1] ?? 'Running';
}

function completionsText(spec: Fields | undefined, status: Fields | undefined): string {
  const succeeded = numberAt(status, 'succeeded') ?? 0;
  const completions = numberAt(spec, 'completions');
  if (completions !== undefined) return `${succeeded}/${completions}`;
  const parallelism = numberAt(spec, 'parallelism') ?? 0;
  return parallelism > 1 ? `${succeeded}/1 of ${parallelism}` : `${succeeded}/1`;
}

function durationText(status: Fields | undefined, nowMs: number): string {
  const startMs = Date.parse(textAt(status, 'startTime'));
  if (Number.isNaN(startMs)) return '';
  const endMs = Date.parse(textAt(status, 'completionTime'));
  return humanDuration((Number.isNaN(endMs) ? nowMs : endMs) - startMs);
}

/** batch/v1 Job. */
export const jobDefinition: ResourceDefinition = builtin({
  group: 'batch',
  version: 'v1',
  plural: 'jobs',
  kind: 'Job',
  namespaced: true,
  categories: ['all'],
  schema: job,
  hasStatus: true,
  hasGeneration: true,
  columns: [
    nameColumn,
    column('Status', 'string', 'What has become of it.', (_spec, status, object) => statusText(status, object)),
    column('Completions', 'string', 'Pods that succeeded, of those wanted.', completionsText),
    column('Duration', 'string', 'How long it has run.', (_spec, status, _object, nowMs) =>
      durationText(status, nowMs),
    ),
    ageColumn,
    ...containerColumns(),
    selectorColumn,
  ],
  selectableFields: ['status.successful'],
  selectableAliases: { 'status.successful': ['status.succeeded'] },
  strategy: {
    applyDefaults(object) {
      const spec = ensureObject(object, 'spec');
      if (spec === undefined) return;
      applySpecDefaults(spec);
      if (!hasLabels(object)) takeTemplateLabels(object);
    },
    prepareForCreate(object) {
      // Labels that were the template's before are so afterwards.
      const hasOwn = hasLabels(object) && !isSame(object.metadata.labels, templateLabels(object));
      generateSelector(object);
      if (!hasOwn) takeTemplateLabels(object);
      object.status = {};
    },
    validate: jobErrors,
    validateUpdate: updateErrors,
    validateStatusUpdate: (object) =>
      nonNegativeErrors(objectAt(object, 'status'), 'status', 'active', 'succeeded', 'failed', 'ready', 'terminating'),
  },
});
