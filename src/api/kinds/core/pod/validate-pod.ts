import { child, entry, type FieldError, forbidden, invalid } from '../../../field-error.ts';
import type { JsonObject, KubeObject } from '../../../meta.ts';
import { has, objectAt, objectsAt, textAt } from '../fields.ts';
import { podSpecErrors } from './validate-spec.ts';

const MIRROR = 'kubernetes.io/config.mirror';
const DELETION_COST = 'controller.kubernetes.io/pod-deletion-cost';

/** What is wrong with a pod, on creation and on every update. */
export function podErrors(pod: KubeObject): FieldError[] {
  const spec = objectAt(pod, 'spec') ?? {};
  return [
    ...annotationErrors(pod, spec),
    ...podSpecErrors(spec, 'spec', pod.metadata),
    ...tokenErrors(spec),
    ...creationErrors(pod, spec),
  ];
}

function annotationErrors(pod: KubeObject, spec: JsonObject): FieldError[] {
  const annotations = new Map(Object.entries(pod.metadata.annotations ?? {}));
  const errors: FieldError[] = [];
  const mirror = annotations.get(MIRROR);
  if (mirror !== undefined && textAt(spec, 'nodeName') === '') {
    const detail = 'must set spec.nodeName if mirror pod annotation is set';
    errors.push(invalid(entry('metadata.annotations', MIRROR), mirror, detail));
  }
  const cost = annotations.get(DELETION_COST);
  if (cost !== undefined && !isInt32(cost)) {
    errors.push(invalid(entry('metadata.annotations', DELETION_COST), cost, 'must be a 32bit integer'));
  }
  return errors;
}

function isInt32(text: string): boolean {
  if (!/^(0|-?[1-9][0-9]{0,9})$/.test(text)) return false;
  const value = Number(text);
  return value >= -(2 ** 31) && value < 2 ** 31;
}

/** Without an account there is nothing to have a token of. */
function tokenErrors(spec: JsonObject): FieldError[] {
  if (textAt(spec, 'serviceAccountName') !== '') return [];
  return objectsAt(spec, 'volumes').flatMap((volume, index) =>
    objectsAt(objectAt(volume, 'projected'), 'sources').flatMap((source, sourceIndex) => {
      if (!has(source, 'serviceAccountToken')) return [];
      const path = `spec.volumes[${index}].projected.sources[${sourceIndex}].serviceAccountToken`;
      return [forbidden(path, 'must not be specified when serviceAccountName is not set')];
    }),
  );
}

/** A pod without a resourceVersion is being created: some things can only come later. */
function creationErrors(pod: KubeObject, spec: JsonObject): FieldError[] {
  if ((pod.metadata.resourceVersion ?? '') !== '') return [];
  const errors: FieldError[] = [];
  if (objectsAt(spec, 'ephemeralContainers').length > 0) {
    errors.push(forbidden(child('spec', 'ephemeralContainers'), 'cannot be set on create'));
  }
  if (textAt(spec, 'nodeName') !== '' && objectsAt(spec, 'schedulingGates').length > 0) {
    errors.push(forbidden('spec.nodeName', 'cannot be set until all schedulingGates have been cleared'));
  }
  return errors;
}
