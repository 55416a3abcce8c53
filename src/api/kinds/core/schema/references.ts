import { list, message, str } from '../../../schema.ts';
import { CORE } from './package.ts';

/** Schemas of references to other objects, and of the ways to select nodes. */

export const objectReference = message(
  `${CORE}.ObjectReference`,
  'Points at another object, or at a part of it.',
  {
    kind: [1, str(), 'Kind of the object.'],
    namespace: [2, str(), 'Namespace of the object.'],
    name: [3, str(), 'Name of the object.'],
    uid: [4, str(), 'UID of the object.'],
    apiVersion: [5, str(), 'API version of the object.'],
    resourceVersion: [6, str(), 'The version of the object that is meant.'],
    fieldPath: [7, str(), 'The part of the object that is meant, e.g. spec.containers{name}.'],
  },
  { 'x-kubernetes-map-type': 'atomic' },
);

export const localObjectReference = message(
  `${CORE}.LocalObjectReference`,
  'Names an object in the same namespace.',
  {
    name: [1, str(), 'Name of the object.'],
  },
  { 'x-kubernetes-map-type': 'atomic' },
);

export const secretReference = message(
  `${CORE}.SecretReference`,
  'Names a secret in any namespace.',
  {
    name: [1, str(), 'Name of the secret.'],
    namespace: [2, str(), 'Namespace of the secret.'],
  },
  { 'x-kubernetes-map-type': 'atomic' },
);

export const typedLocalObjectReference = message(
  `${CORE}.TypedLocalObjectReference`,
  'Names an object of any kind in the same namespace.',
  {
    apiGroup: [1, str({ pointer: true }), 'API group of the object; empty for the core group.'],
    kind: [2, str(), 'Kind of the object.'],
    name: [3, str(), 'Name of the object.'],
  },
  { required: ['kind', 'name'], 'x-kubernetes-map-type': 'atomic' },
);

export const typedObjectReference = message(
  `${CORE}.TypedObjectReference`,
  'Names an object of any kind, possibly in another namespace.',
  {
    apiGroup: [1, str({ pointer: true }), 'API group of the object; empty for the core group.'],
    kind: [2, str(), 'Kind of the object.'],
    name: [3, str(), 'Name of the object.'],
    namespace: [4, str({ pointer: true }), 'Namespace of the object; the same one if empty.'],
  },
  { required: ['kind', 'name'] },
);

const nodeSelectorRequirement = message(
  `${CORE}.NodeSelectorRequirement`,
  "Relates a node's label or field to values.",
  {
    key: [1, str(), 'The label key or field path.'],
    operator: [2, str(), 'In, NotIn, Exists, DoesNotExist, Gt or Lt.'],
    values: [3, list(str()), 'Values for the operator; one integer for Gt and Lt, none for Exists and DoesNotExist.'],
  },
  { required: ['key', 'operator'] },
);

export const nodeSelectorTerm = message(
  `${CORE}.NodeSelectorTerm`,
  'Matches a node if all its requirements hold; an empty term matches none.',
  {
    matchExpressions: [1, list(nodeSelectorRequirement), "Requirements on the node's labels."],
    matchFields: [2, list(nodeSelectorRequirement), "Requirements on the node's fields."],
  },
  { 'x-kubernetes-map-type': 'atomic' },
);

export const nodeSelector = message(
  `${CORE}.NodeSelector`,
  'Selects nodes; a node is selected if any term matches it.',
  {
    nodeSelectorTerms: [1, list(nodeSelectorTerm), 'The terms, of which one must match.'],
  },
  { required: ['nodeSelectorTerms'], 'x-kubernetes-map-type': 'atomic' },
);
