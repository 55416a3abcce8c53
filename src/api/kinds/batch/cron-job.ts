import { type FieldError, invalid, required } from '../../field-error.ts';
import { ageOf } from '../../human-duration.ts';
import type { ResourceDefinition } from '../../resource.ts';
import { bool, enumeration, int32, int64, list, message, str, time } from '../../schema.ts';
import { ageColumn, column, containerColumns, NONE, nameColumn, selectorText, wideColumn } from '../columns.ts';
import { type Fields, has, isSet, objectAt, objectsAt, textAt } from '../core/fields.ts';
import { applyPodTemplateDefaults } from '../core/pod-template.ts';
import { objectReference } from '../core/schema/references.ts';
import { builtin, objectMeta, objectSchema } from '../meta.ts';
import { nonNegativeErrors } from '../validation.ts';
import { scheduleError } from './cron-schedule.ts';
import { jobSpec, jobSpecErrors } from './job.ts';

/** batch/v1 CronJob, stored and served; no controller acts on it. */

const BATCH = 'io.k8s.api.batch.v1';
/** A Job's name has 63 characters, and the time of the run takes 11 of them. */
const NAME_LENGTH_MAX = 52;

const jobTemplateSpec = message(`${BATCH}.JobTemplateSpec`, 'The Job that each run of a CronJob makes.', {
  metadata: [1, objectMeta, 'Metadata that the Job gets.'],
  spec: [2, jobSpec, 'The wanted run of the Job.'],
});

const cronJobSpec = message(
  `${BATCH}.CronJobSpec`,
  'The wanted state of a CronJob.',
  {
    schedule: [1, str(), "When to run, in cron's notation."],
    timeZone: [8, str({ pointer: true }), 'The time zone of the schedule.'],
    startingDeadlineSeconds: [2, int64({ pointer: true }), 'Seconds by which a run may be late.'],
    concurrencyPolicy: [
      3,
      enumeration(['Allow', 'Forbid', 'Replace'], { default: 'Allow' }),
      'Allow, Forbid or Replace: what a run does while the last one goes on.',
    ],
    suspend: [4, bool({ pointer: true, default: false }), 'Whether no further runs are started.'],
    jobTemplate: [5, jobTemplateSpec, 'The Job that each run makes.'],
    successfulJobsHistoryLimit: [6, int32({ pointer: true, default: 3 }), 'Successful Jobs that are kept.'],
    failedJobsHistoryLimit: [7, int32({ pointer: true, default: 1 }), 'Failed Jobs that are kept.'],
  },
  { required: ['schedule', 'jobTemplate'] },
);

const cronJobStatus = message(`${BATCH}.CronJobStatus`, 'The observed state of a CronJob.', {
  active: [1, list(objectReference), 'Jobs that are running.'],
  lastScheduleTime: [4, time(), 'When a Job was last started.'],
  lastSuccessfulTime: [5, time(), 'When a Job last succeeded.'],
});

const cronJob = objectSchema(`${BATCH}.CronJob`, 'Makes a Job at every time that a schedule names.', {
  spec: [2, cronJobSpec, 'What is asked for.'],
  status: [3, cronJobStatus, 'What was observed.'],
});

function scheduleErrors(schedule: string): FieldError[] {
  const path = 'spec.schedule';
  if (schedule === '') return [required(path)];
  if (schedule.includes('TZ')) {
    return [invalid(path, schedule, 'cannot use TZ or CRON_TZ in schedule, use timeZone field instead')];
  }
  const error = scheduleError(schedule);
  return error === undefined ? [] : [invalid(path, schedule, error)];
}

function timeZoneErrors(spec: Fields | undefined): FieldError[] {
  if (!has(spec, 'timeZone')) return [];
  const zone = textAt(spec, 'timeZone');
  const path = 'spec.timeZone';
  if (zone === '') return [invalid(path, zone, 'timeZone must be nil or non-empty string')];
  if (zone.toLowerCase() === 'local')
    return [
      invalid(path, zone, 'timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones'),
    ];
  return isTimeZone(zone) ? [] : [invalid(path, zone, `unknown time zone ${zone}`)];
}

function isTimeZone(zone: string): boolean {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: zone }).resolvedOptions().timeZone !== '';
  } catch {
    // It has no other way to say no.
    return false;
  }
}

function specErrors(spec: Fields | undefined): FieldError[] {
  return [
    ...scheduleErrors(textAt(spec, 'schedule')),
    ...timeZoneErrors(spec),
    ...nonNegativeErrors(
      spec,
      'spec',
      'startingDeadlineSeconds',
      'successfulJobsHistoryLimit',
      'failedJobsHistoryLimit',
    ),
    ...(has(spec, 'jobTemplate')
      ? jobSpecErrors(jobSpecOf(spec), 'spec.jobTemplate.spec')
      : [required('spec.jobTemplate')]),
  ];
}

const jobSpecOf = (spec: Fields | undefined): Fields | undefined => objectAt(objectAt(spec, 'jobTemplate'), 'spec');

/** batch/v1 CronJob. */
export const cronJobDefinition: ResourceDefinition = builtin({
  group: 'batch',
  version: 'v1',
  plural: 'cronjobs',
  kind: 'CronJob',
  namespaced: true,
  shortNames: ['cj'],
  categories: ['all'],
  schema: cronJob,
  hasStatus: true,
  hasGeneration: true,
  columns: [
    nameColumn,
    column('Schedule', 'string', 'When it runs.', (spec) => textAt(spec, 'schedule')),
    column('Timezone', 'string', 'The time zone of the schedule.', (spec) => textAt(spec, 'timeZone') || NONE),
    column('Suspend', 'boolean', 'Whether no further runs are started.', (spec) =>
      has(spec, 'suspend') ? (isSet(spec, 'suspend') ? 'True' : 'False') : '<unset>',
    ),
    column('Active', 'integer', 'Jobs that are running.', (_spec, status) => objectsAt(status, 'active').length),
    column('Last Schedule', 'string', 'When a Job was last started.', (_spec, status, _object, nowMs) =>
      has(status, 'lastScheduleTime') ? ageOf(status?.['lastScheduleTime'], nowMs) : NONE,
    ),
    ageColumn,
    ...containerColumns((spec) => objectAt(jobSpecOf(spec), 'template')),
    wideColumn('Selector', 'string', 'Which pods belong to its Jobs.', (spec) =>
      selectorText(objectAt(jobSpecOf(spec), 'selector')),
    ),
  ],
  strategy: {
    applyDefaults(object) {
      const template = objectAt(jobSpecOf(objectAt(object, 'spec')), 'template');
      if (template !== undefined) applyPodTemplateDefaults(template);
    },
    prepareForCreate(object) {
      object.status = {};
    },
    validate(object) {
      const errors = specErrors(objectAt(object, 'spec'));
      const { name = '' } = object.metadata;
      if (name.length > NAME_LENGTH_MAX) {
        errors.push(invalid('metadata.name', name, `must be no more than ${NAME_LENGTH_MAX} characters`));
      }
      return errors;
    },
  },
});
