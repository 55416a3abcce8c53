import { invalid } from '../../field-error.ts';
import { dnsLabelErrors } from '../../names.ts';
import type { ResourceDefinition } from '../../resource.ts';
import { list, map, message, quantity, str } from '../../schema.ts';
import { labelsErrors } from '../../validate-meta.ts';
import { ageColumn, column, nameColumn } from '../columns.ts';
import { has, objectAt, textAt, textMapAt } from '../core/fields.ts';
import { toleration } from '../core/schema/scheduling.ts';
import { builtin, objectSchema } from '../meta.ts';
import { immutableErrors } from '../validation.ts';

const NODE = 'io.k8s.api.node.v1';

const overhead = message(`${NODE}.Overhead`, 'What running a pod costs besides its containers.', {
  podFixed: [1, map(quantity()), 'Resources, by name.'],
});

const scheduling = message(`${NODE}.Scheduling`, 'Where pods of the class can run.', {
  nodeSelector: [1, map(str(), { 'x-kubernetes-map-type': 'atomic' }), 'Labels that nodes of the class have.'],
  tolerations: [2, list(toleration), 'Tolerations that are added to pods of the class.'],
});

const runtimeClass = objectSchema(
  `${NODE}.RuntimeClass`,
  'A way in which nodes can run pods.',
  {
    handler: [2, str(), "The name that the nodes' runtime knows it by; it cannot be changed."],
    overhead: [3, overhead, 'What running a pod costs besides its containers.'],
    scheduling: [4, scheduling, 'Where pods of the class can run.'],
  },
  { required: ['handler'] },
);

/** node.k8s.io/v1 RuntimeClass, stored and served. */
export const runtimeClassDefinition: ResourceDefinition = builtin({
  group: 'node.k8s.io',
  version: 'v1',
  plural: 'runtimeclasses',
  kind: 'RuntimeClass',
  namespaced: false,
  needsResourceVersion: true,
  createsOnUpdate: true,
  schema: runtimeClass,
  columns: [
    nameColumn,
    column('Handler', 'string', "The name that the nodes' runtime knows it by.", (_spec, _status, object) =>
      textAt(object, 'handler'),
    ),
    ageColumn,
  ],
  strategy: {
    validate: (object) => [
      ...(has(object, 'handler') ? dnsLabelErrors(textAt(object, 'handler')) : []).map((detail) =>
        invalid('handler', object.handler, detail),
      ),
      ...labelsErrors(textMapAt(objectAt(object, 'scheduling'), 'nodeSelector'), 'scheduling.nodeSelector'),
    ],
    validateUpdate: (object, old) => immutableErrors(object.handler, old.handler, 'handler'),
  },
});
