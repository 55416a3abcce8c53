import type { Column, ResourceDefinition } from '../../resource.ts';
import { ageColumn, column, nameColumn } from '../columns.ts';
import { objectsAt } from '../core/fields.ts';
import { builtin } from '../meta.ts';
import { mutatingWebhookConfiguration, validatingWebhookConfiguration } from './schema.ts';
import { webhooksErrors } from './webhook-validation.ts';

/** admissionregistration.k8s.io/v1: webhooks that are asked about writes. */

const columns: readonly Column[] = [
  nameColumn,
  column(
    'Webhooks',
    'integer',
    'How many webhooks there are.',
    (_spec, _status, object) => objectsAt(object, 'webhooks').length,
  ),
  ageColumn,
];

/** Webhooks that can refuse requests. */
export const validatingWebhookConfigurationDefinition: ResourceDefinition = builtin({
  group: 'admissionregistration.k8s.io',
  version: 'v1',
  plural: 'validatingwebhookconfigurations',
  kind: 'ValidatingWebhookConfiguration',
  namespaced: false,
  needsResourceVersion: true,
  categories: ['api-extensions'],
  schema: validatingWebhookConfiguration,
  hasGeneration: true,
  columns,
  strategy: { validate: webhooksErrors },
});

/** Webhooks that can change the objects of requests. */
export const mutatingWebhookConfigurationDefinition: ResourceDefinition = builtin({
  group: 'admissionregistration.k8s.io',
  version: 'v1',
  plural: 'mutatingwebhookconfigurations',
  kind: 'MutatingWebhookConfiguration',
  namespaced: false,
  needsResourceVersion: true,
  categories: ['api-extensions'],
  schema: mutatingWebhookConfiguration,
  hasGeneration: true,
  columns,
  strategy: { validate: webhooksErrors },
});
