import { child, type FieldError, forbidden } from '../../field-error.ts';
import type { JsonObject } from '../../meta.ts';
import { message } from '../../schema.ts';
import { annotationsErrors, labelsErrors } from '../../validate-meta.ts';
import { objectMeta } from '../meta.ts';
import { ensureObject, objectAt, objectsAt, textMapAt } from './fields.ts';
import { applyPodSpecDefaults } from './pod/defaults.ts';
import { podSpecErrors } from './pod/validate-spec.ts';
import { CORE } from './schema/package.ts';
import { podSpec } from './schema/pod-spec.ts';

/** The schema of a pod to be made by a controller. */
export const podTemplateSpec = message(`${CORE}.PodTemplateSpec`, 'A pod to be made.', {
  metadata: [1, objectMeta, 'Labels and annotations of the pod.'],
  spec: [2, podSpec, 'What the pod is to run.'],
});

/** Fills in a template what the API server fills in a pod, less what depends on the pod being real. */
export function applyPodTemplateDefaults(template: JsonObject): void {
  const spec = ensureObject(template, 'spec');
  if (spec !== undefined) applyPodSpecDefaults(spec);
}

/** What is wrong with a template at `path`, whatever kind it stands in. */
export function podTemplateErrors(template: JsonObject, path: string): FieldError[] {
  const metadata = objectAt(template, 'metadata');
  const spec = objectAt(template, 'spec') ?? {};
  const specPath = child(path, 'spec');
  const errors = [
    ...labelsErrors(textMapAt(metadata, 'labels'), child(path, 'labels')),
    ...annotationsErrors(textMapAt(metadata, 'annotations'), child(path, 'annotations')),
    ...podSpecErrors(spec, specPath, undefined),
  ];
  if (objectsAt(spec, 'ephemeralContainers').length > 0) {
    const detail = 'ephemeral containers not allowed in pod template';
    errors.push(forbidden(child(specPath, 'ephemeralContainers'), detail));
  }
  return errors;
}
