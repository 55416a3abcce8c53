import type { ResourceDefinition } from '../../resource.ts';
import { bool, bytes, int32, list, listMap, message, str, time } from '../../schema.ts';
import { builtin, objectSchema } from '../meta.ts';
import { jsonSchemaProps } from './json-schema-props.ts';

/**
 * apiextensions.k8s.io/v1 CustomResourceDefinition. Whether its schemas are sound is checked by whoever serves the
 * kinds. Definitions are not read from protobuf, in which no client of note sends them.
 */

const APIEXTENSIONS = 'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1';

const customResourceDefinitionNames = message(
  `${APIEXTENSIONS}.CustomResourceDefinitionNames`,
  'What the kind is called.',
  {
    plural: [1, str(), 'The name in paths, in lower case.'],
    singular: [2, str(), 'The name of one; the kind in lower case when left out.'],
    shortNames: [3, list(str()), 'Short names for command lines.'],
    kind: [4, str(), 'The kind, in CamelCase.'],
    listKind: [5, str(), 'The kind of lists; the kind with List appended when left out.'],
    categories: [6, list(str()), 'Groups of kinds, such as all, that this one is listed with.'],
  },
  { required: ['plural', 'kind'] },
);

const customResourceValidation = message(
  `${APIEXTENSIONS}.CustomResourceValidation`,
  'What objects have to look like.',
  {
    openAPIV3Schema: [1, jsonSchemaProps, 'A structural schema.'],
  },
);

const customResourceSubresourceStatus = message(
  `${APIEXTENSIONS}.CustomResourceSubresourceStatus`,
  'The status subresource; it has no parameters.',
  {},
);

const customResourceSubresourceScale = message(
  `${APIEXTENSIONS}.CustomResourceSubresourceScale`,
  'Where the scale subresource finds its numbers.',
  {
    specReplicasPath: [1, str(), 'Path of the wanted number.'],
    statusReplicasPath: [2, str(), 'Path of the observed number.'],
    labelSelectorPath: [3, str({ pointer: true }), 'Path of the selector, as text.'],
  },
  { required: ['specReplicasPath', 'statusReplicasPath'] },
);

const customResourceSubresources = message(
  `${APIEXTENSIONS}.CustomResourceSubresources`,
  'The subresources that the kind has.',
  {
    status: [1, customResourceSubresourceStatus, 'If set, status is written apart from the rest.'],
    scale: [2, customResourceSubresourceScale, 'If set, objects can be scaled.'],
  },
);

const customResourceColumnDefinition = message(
  `${APIEXTENSIONS}.CustomResourceColumnDefinition`,
  'A column of `kubectl get`.',
  {
    name: [1, str(), 'The heading.'],
    type: [2, str(), 'integer, number, string, boolean or date.'],
    format: [3, str(), 'An OpenAPI format that refines the type.'],
    description: [4, str(), 'What the column shows.'],
    priority: [5, int32(), '0 is always shown, more only with -o wide.'],
    jsonPath: [6, str(), 'Where in an object the value is.'],
  },
  { required: ['name', 'type', 'jsonPath'] },
);

const selectableField = message(
  `${APIEXTENSIONS}.SelectableField`,
  'A field that field selectors may use.',
  {
    jsonPath: [1, str(), 'The path of a string, number or boolean.'],
  },
  { required: ['jsonPath'] },
);

const customResourceDefinitionVersion = message(
  `${APIEXTENSIONS}.CustomResourceDefinitionVersion`,
  'One version of the kind.',
  {
    name: [1, str(), "The version's name, such as v1."],
    served: [2, bool(), 'Whether the API serves it.'],
    storage: [3, bool(), 'Whether objects are stored in it; exactly one version is.'],
    deprecated: [7, bool(), 'Whether requests for it get a warning.'],
    deprecationWarning: [8, str({ pointer: true }), 'The warning, instead of the usual one.'],
    schema: [4, customResourceValidation, 'What objects have to look like.'],
    subresources: [5, customResourceSubresources, 'The subresources that it has.'],
    additionalPrinterColumns: [6, list(customResourceColumnDefinition), 'Columns of `kubectl get` after the name.'],
    selectableFields: [9, list(selectableField), 'Fields that field selectors may use.'],
  },
  { required: ['name', 'served', 'storage'] },
);

const serviceReference = message(
  `${APIEXTENSIONS}.ServiceReference`,
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
  `${APIEXTENSIONS}.WebhookClientConfig`,
  'How to reach a webhook; by URL or by service.',
  {
    url: [3, str({ pointer: true }), 'Its URL, which has to begin with https.'],
    service: [1, serviceReference, 'Its service.'],
    caBundle: [2, bytes(), 'The certificates, in PEM, that its certificate is checked against.'],
  },
);

const webhookConversion = message(
  `${APIEXTENSIONS}.WebhookConversion`,
  'A webhook that converts between versions.',
  {
    clientConfig: [2, webhookClientConfig, 'How to reach it.'],
    conversionReviewVersions: [3, list(str()), 'Versions of ConversionReview that it understands.'],
  },
  { required: ['conversionReviewVersions'] },
);

const customResourceConversion = message(
  `${APIEXTENSIONS}.CustomResourceConversion`,
  'How objects are converted between versions.',
  {
    strategy: [1, str(), 'None (only the apiVersion changes) or Webhook.'],
    webhook: [2, webhookConversion, 'The webhook, for that strategy.'],
  },
  { required: ['strategy'] },
);

const customResourceDefinitionSpec = message(
  `${APIEXTENSIONS}.CustomResourceDefinitionSpec`,
  'The kind that is wanted.',
  {
    group: [1, str(), 'The API group.'],
    names: [3, customResourceDefinitionNames, 'What the kind is called.'],
    scope: [4, str(), 'Namespaced or Cluster.'],
    versions: [7, list(customResourceDefinitionVersion), 'The versions of the kind.'],
    conversion: [9, customResourceConversion, 'How objects are converted between versions.'],
    preserveUnknownFields: [10, bool(), 'Always false in this version of the API.'],
  },
  { required: ['group', 'names', 'scope', 'versions'] },
);

const customResourceDefinitionCondition = message(
  `${APIEXTENSIONS}.CustomResourceDefinitionCondition`,
  "One aspect of the definition's state.",
  {
    type: [1, str(), 'Established, NamesAccepted, Terminating and so on.'],
    status: [2, str(), 'True, False or Unknown.'],
    lastTransitionTime: [3, time(), 'When the status last changed.'],
    reason: [4, str(), 'One word for the cause.'],
    message: [5, str(), 'The cause in words.'],
  },
  { required: ['type', 'status'] },
);

const customResourceDefinitionStatus = message(
  `${APIEXTENSIONS}.CustomResourceDefinitionStatus`,
  'What became of the definition.',
  {
    conditions: [
      1,
      listMap(['type'], customResourceDefinitionCondition, {
        'x-kubernetes-patch-strategy': undefined,
        'x-kubernetes-patch-merge-key': undefined,
      }),
      'Aspects of the current state, one of each type.',
    ],
    acceptedNames: [2, customResourceDefinitionNames, 'The names that are served.'],
    storedVersions: [3, list(str()), 'Versions that objects may be stored in.'],
  },
);

const customResourceDefinition = objectSchema(
  `${APIEXTENSIONS}.CustomResourceDefinition`,
  'Adds a kind to the API.',
  {
    spec: [2, customResourceDefinitionSpec, 'What is asked for.'],
    status: [3, customResourceDefinitionStatus, 'What was observed.'],
  },
  { required: ['spec'] },
);

/** Adds kinds to the API. Its strategy is the API server's, which also acts on it. */
export const customResourceDefinitionDefinition: ResourceDefinition = builtin({
  group: 'apiextensions.k8s.io',
  version: 'v1',
  plural: 'customresourcedefinitions',
  kind: 'CustomResourceDefinition',
  namespaced: false,
  needsResourceVersion: true,
  shortNames: ['crd', 'crds'],
  categories: ['api-extensions'],
  schema: customResourceDefinition,
  hasStatus: true,
  hasGeneration: true,
});
