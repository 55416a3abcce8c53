import { type FieldError, forbidden, invalid, notSupported, required } from '../../field-error.ts';
import type { JsonObject } from '../../meta.ts';
import type { Strategy } from '../../resource.ts';
import { ageColumn, column, containerColumns, countColumn, nameColumn, wideColumn } from '../columns.ts';
import { objectSchema } from '../meta.ts';
import { scaleSchema } from '../meta-options.ts';
import { nonNegativeErrors } from '../validation.ts';
import { ensureObject, has, numberAt, objectAt, textAt, textEntriesAt, textMapAt } from './fields.ts';
import { coreKind } from './kind.ts';
import { labelsText } from './labels-text.ts';
import { applyPodTemplateDefaults, podTemplateErrors } from './pod-template.ts';
import { CORE } from './schema/package.ts';
import { replicationControllerSpec, replicationControllerStatus } from './schema/replication-controller.ts';

const strategy: Strategy = {
  applyDefaults(controller) {
    const spec = ensureObject(controller, 'spec');
    const template = objectAt(spec, 'template');
    if (template === undefined || spec === undefined) return;
    applyPodTemplateDefaults(template);
    const labels = textMapAt(objectAt(template, 'metadata'), 'labels');
    if (Object.keys(labels).length === 0) return;
    if (textEntriesAt(spec, 'selector').length === 0) spec['selector'] = { ...labels };
    if (Object.keys(controller.metadata.labels ?? {}).length === 0) controller.metadata.labels = { ...labels };
  },
  prepareForCreate(controller) {
    controller['status'] = { replicas: 0 };
  },
  validate(controller) {
    const spec = objectAt(controller, 'spec');
    const errors = nonNegativeErrors(spec, 'spec', 'minReadySeconds', 'replicas');
    if (textEntriesAt(spec, 'selector').length === 0) errors.push(required('spec.selector'));
    return [...errors, ...templateErrors(spec)];
  },
};

function templateErrors(spec: JsonObject | undefined): FieldError[] {
  const template = objectAt(spec, 'template');
  const path = 'spec.template';
  if (template === undefined) return [required(path)];
  const errors: FieldError[] = [];
  const labels = textMapAt(objectAt(template, 'metadata'), 'labels');
  const isMatch = textEntriesAt(spec, 'selector').every(
    ([key, value]) => Object.hasOwn(labels, key) && labels[key] === value,
  );
  if (!isMatch) {
    errors.push(invalid(`${path}.metadata.labels`, labels, '`selector` does not match template `labels`'));
  }
  errors.push(...podTemplateErrors(template, path));
  const podSpec = objectAt(template, 'spec');
  const policy = textAt(podSpec, 'restartPolicy');
  if (policy !== 'Always') errors.push(notSupported(`${path}.spec.restartPolicy`, policy, ['Always']));
  if (has(podSpec, 'activeDeadlineSeconds')) {
    const detail = 'activeDeadlineSeconds in ReplicationController is not Supported';
    errors.push(forbidden(`${path}.spec.activeDeadlineSeconds`, detail));
  }
  return errors;
}

/** core/v1 ReplicationController: stored, so that `kubectl get all` finds the resource. */
export const replicationControllerDefinition = coreKind({
  plural: 'replicationcontrollers',
  kind: 'ReplicationController',
  namespaced: true,
  shortNames: ['rc'],
  categories: ['all'],
  hasStatus: true,
  hasGeneration: true,
  schema: objectSchema(`${CORE}.ReplicationController`, 'Keeps a number of pods running; Deployments do it better.', {
    spec: [2, replicationControllerSpec, 'What is to be kept running.'],
    status: [3, replicationControllerStatus, 'The observed state.'],
  }),
  subresources: [
    {
      name: 'scale',
      kind: 'Scale',
      group: 'autoscaling',
      version: 'v1',
      verbs: ['get', 'patch', 'update'],
      schema: scaleSchema,
    },
  ],
  scale: {
    specReplicasPath: '.spec.replicas',
    statusReplicasPath: '.status.replicas',
  },
  selectableFields: ['status.replicas'],
  columns: [
    nameColumn,
    column('Desired', 'integer', 'How many pods are wanted.', (spec) => numberAt(spec, 'replicas') ?? 0),
    countColumn('Current', 'How many pods there are.', 'replicas'),
    countColumn('Ready', 'How many are ready.', 'readyReplicas'),
    ageColumn,
    ...containerColumns(),
    wideColumn('Selector', 'string', 'Labels of the pods.', (spec) => labelsText(spec, 'selector')),
  ],
  strategy,
});
