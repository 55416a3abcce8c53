import { child, type FieldError, forbidden, invalid, notSupported } from '../../field-error.ts';
import type { JsonObject, KubeObject } from '../../meta.ts';
import type { ResourceDefinition, SubresourceDefinition } from '../../resource.ts';
import { ensureObject, type Fields, has, objectAt, textAt, textEntriesAt } from '../core/fields.ts';
import { applyPodTemplateDefaults, podTemplateErrors } from '../core/pod-template.ts';
import { scaleSchema } from '../meta-options.ts';
import { isEmptySelector, labelSelectorErrors, nonNegativeErrors, selectorMatches } from '../validation.ts';

/** What the workloads of apps/v1 have in common. They are stored and served; no controller acts on them. */

export const APPS = 'io.k8s.api.apps.v1';

/** `scale`, for workloads with replicas. */
export const scaleSubresource: SubresourceDefinition = {
  name: 'scale',
  kind: 'Scale',
  group: 'autoscaling',
  version: 'v1',
  verbs: ['get', 'patch', 'update'],
  schema: scaleSchema,
};

/** Where workloads keep what `scale` shows. The selector is a LabelSelector, not a text as in custom resources. */
export const scalePaths: NonNullable<ResourceDefinition['scale']> = {
  specReplicasPath: '.spec.replicas',
  statusReplicasPath: '.status.replicas',
  labelSelectorPath: '.spec.selector',
};

/** The spec of a workload, its pod template's defaults filled in. Undefined where there is none to fill. */
export function specWithTemplateDefaults(object: KubeObject): JsonObject | undefined {
  const spec = ensureObject(object, 'spec');
  const template = objectAt(spec, 'template');
  if (template !== undefined) applyPodTemplateDefaults(template);
  return spec;
}

/** Refuses a selector that selects nothing or everything, and a template that would make pods it does not select. */
export function selectorErrors(spec: Fields | undefined, workload: string): FieldError[] {
  const selector = objectAt(spec, 'selector');
  if (selector === undefined) return [];
  const errors = labelSelectorErrors(selector, 'spec.selector');
  if (isEmptySelector(selector)) {
    errors.push(invalid('spec.selector', selector, `empty selector is invalid for ${workload}`));
  }
  const metadata = objectAt(objectAt(spec, 'template'), 'metadata');
  if (errors.length === 0 && !selectorMatches(selector, textEntriesAt(metadata, 'labels'))) {
    const detail = '`selector` does not match template `labels`';
    errors.push(invalid('spec.template.metadata.labels', metadata?.['labels'] ?? null, detail));
  }
  return errors;
}

/** What is wrong with a template; one of pods that would end by themselves is, for the workload keeps them running. */
export function templateErrors(template: JsonObject | undefined, workload: string): FieldError[] {
  if (template === undefined) return [];
  const errors = podTemplateErrors(template, 'spec.template');
  const podSpec = objectAt(template, 'spec');
  const path = 'spec.template.spec';
  const restartPolicy = textAt(podSpec, 'restartPolicy');
  if (restartPolicy !== 'Always') errors.push(notSupported(child(path, 'restartPolicy'), restartPolicy, ['Always']));
  if (has(podSpec, 'activeDeadlineSeconds')) {
    const detail = `activeDeadlineSeconds in ${workload} is not Supported`;
    errors.push(forbidden(child(path, 'activeDeadlineSeconds'), detail));
  }
  return errors;
}

/** Refuses negative counts in a status, and counts above the ones that they are part of. */
export function countErrors(
  status: Fields | undefined,
  fields: readonly string[],
  parts: readonly (readonly [part: string, whole: string])[],
): FieldError[] {
  const errors = nonNegativeErrors(status, 'status', 'observedGeneration', 'collisionCount', 'replicas', ...fields);
  for (const [part, whole] of parts) {
    const value = status?.[part];
    const limit = status?.[whole] ?? 0;
    if (typeof value === 'number' && typeof limit === 'number' && value > limit) {
      errors.push(invalid(child('status', part), value, `cannot be greater than status.${whole}`));
    }
  }
  return errors;
}
