import { ALL_VERBS, type ResourceDefinition, type SubresourceDefinition } from '../resource.ts';
import {
  anything,
  bool,
  enumeration,
  type Field,
  int64,
  list,
  listMap,
  map,
  message,
  type Schema,
  set,
  str,
  time,
} from '../schema.ts';

/** Schemas of metav1 that the built-in kinds share. */

const META = 'io.k8s.apimachinery.pkg.apis.meta.v1';

const ownerReference = message(
  `${META}.OwnerReference`,
  'Names an object in the same namespace (or a cluster-scoped one) that this object belongs to.',
  {
    kind: [1, str(), 'Kind of the owner.'],
    name: [3, str(), 'Name of the owner.'],
    uid: [4, str(), 'UID of the owner; an owner of another UID is another object.'],
    apiVersion: [5, str(), 'API version of the owner.'],
    controller: [6, bool({ pointer: true }), 'Whether this owner is the managing controller.'],
    blockOwnerDeletion: [7, bool({ pointer: true }), 'Whether foreground deletion of the owner waits for this object.'],
  },
  { required: ['apiVersion', 'kind', 'name', 'uid'], 'x-kubernetes-map-type': 'atomic' },
);

const managedFieldsEntry = message(`${META}.ManagedFieldsEntry`, 'Which fields a manager owns.', {
  manager: [1, str(), 'Who manages these fields.'],
  operation: [2, str(), 'Apply or Update.'],
  apiVersion: [3, str(), 'The version that the field set refers to.'],
  time: [4, time(), 'When the set last changed.'],
  fieldsType: [6, str(), 'Always FieldsV1.'],
  fieldsV1: [7, anything(), 'The set of fields.'],
  subresource: [8, str(), 'The subresource through which the fields were written.'],
});

export const objectMeta = message(`${META}.ObjectMeta`, "Every object's metadata.", {
  name: [1, str(), 'Name, unique in its namespace for its kind; cannot be changed.'],
  generateName: [2, str(), 'Prefix for a name that the server completes when name is empty.'],
  namespace: [3, str(), 'The namespace that the object lives in.'],
  selfLink: [4, str(), 'No longer filled.'],
  uid: [5, str(), 'Unique in time and space; set by the server.'],
  resourceVersion: [6, str(), 'Changes with every write; clients send it back to detect conflicts.'],
  generation: [7, int64(), 'Counts changes of the desired state.'],
  creationTimestamp: [8, time(), 'When the object was created.'],
  deletionTimestamp: [9, time(), 'When the object is to be gone; set by a graceful deletion.'],
  deletionGracePeriodSeconds: [10, int64({ pointer: true }), 'Seconds that a graceful deletion may take.'],
  labels: [11, map(str()), 'Keys and values to select objects by.'],
  annotations: [12, map(str()), 'Keys and values for tools; not selectable.'],
  ownerReferences: [13, listMap(['uid'], ownerReference), 'Objects that this one depends on.'],
  finalizers: [14, set(str()), 'The object is removed only when this list is empty.'],
  managedFields: [17, list(managedFieldsEntry), 'Who owns which field, for server-side apply.'],
});

export const listMeta = message(`${META}.ListMeta`, "A list's metadata.", {
  selfLink: [1, str()],
  resourceVersion: [2, str(), 'The version of the collection that this list shows.'],
  continue: [3, str(), 'Token for the next page.'],
  remainingItemCount: [4, int64({ pointer: true }), 'How many items are left.'],
});

/** One requirement of a label selector. */
export const labelSelectorRequirement = message(
  `${META}.LabelSelectorRequirement`,
  'A selector that relates a key to values.',
  {
    key: [1, str(), 'The label key.'],
    operator: [2, str(), 'In, NotIn, Exists or DoesNotExist.'],
    values: [3, list(str()), 'Values, for In and NotIn.'],
  },
  { required: ['key', 'operator'] },
);

export const labelSelector = message(
  `${META}.LabelSelector`,
  'Selects objects by label; all parts must match, an empty selector matches all.',
  {
    matchLabels: [1, map(str()), 'Labels that must be present with these values.'],
    matchExpressions: [2, list(labelSelectorRequirement), 'Requirements that must hold.'],
  },
  { 'x-kubernetes-map-type': 'atomic' },
);

export const condition = message(
  `${META}.Condition`,
  "One aspect of an object's state.",
  {
    type: [1, str(), 'What aspect this is.'],
    status: [2, enumeration(['True', 'False', 'Unknown']), 'True, False or Unknown.'],
    observedGeneration: [3, int64(), 'The generation that this was observed at.'],
    lastTransitionTime: [4, time(), 'When the status last changed.'],
    reason: [5, str(), 'One word for the cause.'],
    message: [6, str(), 'The cause in words.'],
  },
  { required: ['type', 'status', 'lastTransitionTime', 'reason', 'message'] },
);

/** The schema of a whole object: apiVersion, kind and metadata (protobuf field 1) before its own fields. */
export function objectSchema(
  name: string,
  description: string,
  fields: { readonly [field: string]: Field },
  extra: Partial<Schema> = {},
): Schema {
  const own = message(name, description, { metadata: [1, objectMeta, 'Standard metadata.'], ...fields }, extra);
  return {
    ...own,
    properties: {
      apiVersion: str({ description: 'Version of the schema of this object.' }),
      kind: str({ description: 'What this object is.' }),
      ...own.properties,
    },
  };
}

export const statusSubresource: SubresourceDefinition = { name: 'status', verbs: ['get', 'patch', 'update'] };

type Defaulted = 'singular' | 'listKind' | 'hasStatus' | 'hasGeneration' | 'columns';

/** Completes a built-in definition; the status subresource is added where the kind has one. */
export function builtin(
  definition: Omit<ResourceDefinition, Defaulted> & Partial<Pick<ResourceDefinition, Defaulted>>,
): ResourceDefinition {
  const hasStatus = definition.hasStatus ?? false;
  const own = definition.subresources ?? [];
  return {
    singular: definition.kind.toLowerCase(),
    listKind: `${definition.kind}List`,
    hasGeneration: false,
    columns: [],
    verbs: ALL_VERBS,
    ...definition,
    hasStatus,
    subresources: hasStatus ? [...own, statusSubresource] : own,
  };
}
