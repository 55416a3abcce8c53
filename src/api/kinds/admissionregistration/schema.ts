import { bytes, enumeration, type Field, int32, list, listMap, message, str } from '../../schema.ts';
import { labelSelector, objectSchema } from '../meta.ts';

/** Schemas of admissionregistration.k8s.io/v1. */

const ADMISSION = 'io.k8s.api.admissionregistration.v1';

const serviceReference = message(
  `${ADMISSION}.ServiceReference`,
  'The service that answers.',
  {
    namespace: [1, str(), "The service's namespace."],
    name: [2, str(), "The service's name."],
    path: [3, str({ pointer: true }), 'The path of the request.'],
    port: [4, int32({ pointer: true, default: 443 }), "The service's port."],
  },
  { required: ['namespace', 'name'] },
);

const webhookClientConfig = message(
  `${ADMISSION}.WebhookClientConfig`,
  'How to reach a webhook; by URL or by service.',
  {
    url: [3, str({ pointer: true }), 'Its URL, which has to begin with https.'],
    service: [1, serviceReference, 'Its service.'],
    caBundle: [2, bytes(), 'The certificates, in PEM, that its certificate is checked against.'],
  },
);

const ruleWithOperations = message(`${ADMISSION}.RuleWithOperations`, 'Requests that the webhook is asked about.', {
  operations: [1, list(str()), 'CREATE, UPDATE, DELETE, CONNECT or `*`.'],
  apiGroups: [1, list(str(), { embedded: 2 }), 'The groups; `*` is all.'],
  apiVersions: [2, list(str(), { embedded: 2 }), 'The versions; `*` is all.'],
  resources: [
    3,
    list(str(), { embedded: 2 }),
    'The resources and subresources; `*` is all resources, `*/*` all subresources too.',
  ],
  scope: [
    4,
    enumeration(['*', 'Cluster', 'Namespaced'], { pointer: true, embedded: 2, default: '*' }),
    'Cluster, Namespaced or `*`.',
  ],
});

const matchCondition = message(
  `${ADMISSION}.MatchCondition`,
  'A CEL expression that has to be true for the webhook to be called.',
  {
    name: [1, str(), "The condition's name, for messages."],
    expression: [2, str(), 'The CEL expression.'],
  },
  { required: ['name', 'expression'] },
);

/** What both kinds of webhook have, under the same numbers. */
const webhookFields = {
  name: [1, str(), "The webhook's name, fully qualified."],
  clientConfig: [2, webhookClientConfig, 'How to reach it.'],
  rules: [3, list(ruleWithOperations), 'Requests that it is asked about.'],
  failurePolicy: [
    4,
    enumeration(['Fail', 'Ignore'], { pointer: true, default: 'Fail' }),
    'What happens when the webhook cannot be asked.',
  ],
  namespaceSelector: [5, { ...labelSelector, default: {} }, 'Namespaces whose objects the webhook is asked about.'],
  sideEffects: [
    6,
    enumeration(['None', 'NoneOnDryRun'], { pointer: true }),
    'Whether the webhook changes anything besides its answer.',
  ],
  timeoutSeconds: [7, int32({ pointer: true, default: 10 }), 'Seconds, 1 to 30, after which the call has failed.'],
  admissionReviewVersions: [8, list(str()), 'Versions of AdmissionReview that it understands, the preferred first.'],
  matchPolicy: [
    9,
    enumeration(['Equivalent', 'Exact'], { pointer: true, default: 'Equivalent' }),
    'Whether requests through other versions match too.',
  ],
} satisfies { [field: string]: Field };

const objectSelector = { ...labelSelector, default: {}, description: 'Objects that it is asked about, by label.' };

const matchConditions = listMap(['name'], matchCondition, {
  description: 'CEL expressions that all have to be true for the webhook to be called.',
});

const WEBHOOK_REQUIRED = ['name', 'clientConfig', 'sideEffects', 'admissionReviewVersions'];

const validatingWebhook = message(
  `${ADMISSION}.ValidatingWebhook`,
  'A webhook that can refuse requests.',
  { ...webhookFields, objectSelector: [10, objectSelector], matchConditions: [11, matchConditions] },
  { required: WEBHOOK_REQUIRED },
);

/** The schema of a ValidatingWebhookConfiguration. */
export const validatingWebhookConfiguration = objectSchema(
  `${ADMISSION}.ValidatingWebhookConfiguration`,
  'Webhooks that can refuse requests.',
  { webhooks: [2, listMap(['name'], validatingWebhook), 'The webhooks.'] },
);

const mutatingWebhook = message(
  `${ADMISSION}.MutatingWebhook`,
  'A webhook that can refuse requests and change their objects.',
  {
    ...webhookFields,
    reinvocationPolicy: [
      10,
      enumeration(['IfNeeded', 'Never'], { pointer: true, default: 'Never' }),
      'Whether to ask again after others have changed the object.',
    ],
    objectSelector: [11, objectSelector],
    matchConditions: [12, matchConditions],
  },
  { required: WEBHOOK_REQUIRED },
);

/** The schema of a MutatingWebhookConfiguration. */
export const mutatingWebhookConfiguration = objectSchema(
  `${ADMISSION}.MutatingWebhookConfiguration`,
  'Webhooks that can change the objects of requests.',
  { webhooks: [2, listMap(['name'], mutatingWebhook), 'The webhooks.'] },
);
