import { message } from '../../schema.ts';
import { objectMeta } from '../meta.ts';
import { CORE } from './schema/package.ts';
import { podSpec } from './schema/pod-spec.ts';

/** The schema of a pod to be made by a controller. */
export const podTemplateSpec = message(`${CORE}.PodTemplateSpec`, 'A pod to be made.', {
  metadata: [1, objectMeta, 'Labels and annotations of the pod.'],
  spec: [2, podSpec, 'What the pod is to run.'],
});
