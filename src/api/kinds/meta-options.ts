import { bool, enumeration, int32, int64, list, message, type Schema, str, time } from '../schema.ts';
import { objectReference } from './core/schema/references.ts';
import { objectSchema } from './meta.ts';

/** Bodies that are no stored objects: the options of a DELETE, and what subresources are sent. */

const META = 'io.k8s.apimachinery.pkg.apis.meta.v1';
const AUTHENTICATION = 'io.k8s.api.authentication.v1';
const AUTOSCALING = 'io.k8s.api.autoscaling.v1';

const preconditions = message(`${META}.Preconditions`, 'What has to be true of the object for it to be deleted.', {
  uid: [1, str({ pointer: true }), 'Its UID.'],
  resourceVersion: [2, str({ pointer: true }), 'Its resourceVersion.'],
});

const deleteOptions = message(`${META}.DeleteOptions`, 'How an object is to be deleted.', {
  gracePeriodSeconds: [1, int64({ pointer: true }), 'Seconds that it gets to end by itself; zero means at once.'],
  preconditions: [2, preconditions, 'What has to be true for it to be deleted.'],
  orphanDependents: [3, bool({ pointer: true }), 'Whether dependents stay; propagationPolicy has replaced it.'],
  propagationPolicy: [
    4,
    enumeration(['Orphan', 'Background', 'Foreground'], { pointer: true }),
    'What becomes of dependents.',
  ],
  dryRun: [5, list(str()), 'All when nothing shall be stored.'],
  ignoreStoreReadErrorWithClusterBreakingPotential: [
    6,
    bool({ pointer: true }),
    'Whether to delete even what cannot be read.',
  ],
});

/** meta.k8s.io/v1 DeleteOptions, which come under the apiVersion of any group. */
export const deleteOptionsSchema: Schema = {
  ...deleteOptions,
  properties: {
    apiVersion: str({ description: 'Version of the schema of this object.' }),
    kind: str({ description: 'What this object is.' }),
    ...deleteOptions.properties,
  },
};

/** policy/v1 Eviction, the body of `pods/eviction`. */
export const evictionSchema = objectSchema(
  'io.k8s.api.policy.v1.Eviction',
  'Asks for a pod to be deleted if the budgets that cover it allow that.',
  { deleteOptions: [2, deleteOptionsSchema, 'How the pod is to be deleted.'] },
);

/** core/v1 Binding, the body of `pods/binding`. */
export const bindingSchema = objectSchema(
  'io.k8s.api.core.v1.Binding',
  'Says which node a pod is to run on.',
  { target: [2, objectReference, 'The node.'] },
  { required: ['target'] },
);

const scaleSpec = message(`${AUTOSCALING}.ScaleSpec`, 'The wanted number.', {
  replicas: [1, int32(), 'How many pods are wanted; zero when left out.'],
});

const scaleStatus = message(
  `${AUTOSCALING}.ScaleStatus`,
  'The observed number.',
  {
    replicas: [1, int32(), 'How many pods there are.'],
    selector: [2, str(), 'Which pods are counted, as a label selector in text.'],
  },
  { required: ['replicas'] },
);

/** autoscaling/v1 Scale, the body of every `scale` subresource. */
export const scaleSchema = objectSchema(
  `${AUTOSCALING}.Scale`,
  'The number of pods of a workload, whatever its kind.',
  {
    spec: [2, scaleSpec, 'What is asked for.'],
    status: [3, scaleStatus, 'What was observed.'],
  },
);

const boundObjectReference = message(
  `${AUTHENTICATION}.BoundObjectReference`,
  'The object that a token lives and dies with.',
  {
    kind: [1, str(), 'Pod, Secret or Node.'],
    apiVersion: [2, str(), 'Its API version.'],
    name: [3, str(), 'Its name.'],
    uid: [4, str(), 'Its UID.'],
  },
);

const tokenRequestSpec = message(`${AUTHENTICATION}.TokenRequestSpec`, 'The token that is wanted.', {
  audiences: [1, list(str()), 'Whom the token is meant for; the API server when empty.'],
  expirationSeconds: [
    4,
    int64({ pointer: true, default: 3600 }),
    'How long it shall be valid; the server may choose otherwise.',
  ],
  boundObjectRef: [3, boundObjectReference, 'The object that the token lives and dies with.'],
});

const tokenRequestStatus = message(
  `${AUTHENTICATION}.TokenRequestStatus`,
  'The token.',
  {
    token: [1, str(), 'The bearer token.'],
    expirationTimestamp: [2, time(), 'When it expires.'],
  },
  { required: ['token', 'expirationTimestamp'] },
);

/** authentication.k8s.io/v1 TokenRequest, the body of `serviceaccounts/token`. */
export const tokenRequestSchema = objectSchema(
  `${AUTHENTICATION}.TokenRequest`,
  'Asks for a token of a service account.',
  {
    spec: [2, tokenRequestSpec, 'What is asked for.'],
    status: [3, tokenRequestStatus, 'What was observed.'],
  },
  { required: ['spec'] },
);
