import { listMeta } from '../../api/kinds/meta.ts';
import { int32, list, message, type Schema, str } from '../../api/schema.ts';

/** What OpenAPI documents speak of and no kind of ours declares: Status, and wire types that have names of their own. */

export type Dialect = 'v2' | 'v3';
export type Published = { [key: string]: unknown };

/** The package that metav1's types are published under. */
export const META = 'io.k8s.apimachinery.pkg.apis.meta.v1';

const statusDetails = message(`${META}.StatusDetails`, 'More about a status.', {
  name: [0, str(), 'The object that it speaks of.'],
  group: [0, str(), 'The group of the object.'],
  kind: [0, str(), 'The kind or resource of the object.'],
  uid: [0, str(), 'The UID of the object.'],
  causes: [
    0,
    list(
      message(`${META}.StatusCause`, 'One cause of a failure.', {
        reason: [0, str(), 'The cause in one word.'],
        message: [0, str(), 'The cause in words.'],
        field: [0, str(), 'The field that caused it.'],
      }),
    ),
    'What caused the failure.',
  ],
  retryAfterSeconds: [0, int32(), 'When to try again.'],
});

/** metav1.Status. */
export const statusSchema: Schema = message(`${META}.Status`, 'The outcome of a request that answers no object.', {
  apiVersion: [0, str(), 'Version of the schema of this object.'],
  kind: [0, str(), 'What this object is.'],
  metadata: [0, listMeta, 'Standard list metadata.'],
  status: [0, str(), 'Success or Failure.'],
  message: [0, str(), 'The outcome in words.'],
  reason: [0, str(), 'The outcome in one word.'],
  details: [0, statusDetails, 'More about it.'],
  code: [0, int32(), 'The HTTP status code.'],
});

/** The `format` under which our builders file the wire types that Kubernetes publishes by name. */
export const WELL_KNOWN: {
  readonly [format: string]: { readonly name: string; readonly v2: Published; readonly v3: Published };
} = {
  quantity: {
    name: 'io.k8s.apimachinery.pkg.api.resource.Quantity',
    v2: { type: 'string', description: 'A number with a unit, such as 500m or 2Gi.' },
    v3: { oneOf: [{ type: 'string' }, { type: 'number' }], description: 'A number with a unit, such as 500m or 2Gi.' },
  },
  'int-or-string': {
    name: 'io.k8s.apimachinery.pkg.util.intstr.IntOrString',
    v2: { type: 'string', format: 'int-or-string', description: 'A number, or a string such as a name or 50%.' },
    v3: {
      oneOf: [{ type: 'integer' }, { type: 'string' }],
      format: 'int-or-string',
      description: 'A number, or a string such as a name or 50%.',
    },
  },
  'date-time': {
    name: `${META}.Time`,
    v2: { type: 'string', format: 'date-time', description: 'A moment, in whole seconds.' },
    v3: { type: 'string', format: 'date-time', description: 'A moment, in whole seconds.' },
  },
  'micro-time': {
    name: `${META}.MicroTime`,
    v2: { type: 'string', format: 'date-time', description: 'A moment, in microseconds.' },
    v3: { type: 'string', format: 'date-time', description: 'A moment, in microseconds.' },
  },
  duration: {
    name: `${META}.Duration`,
    v2: { type: 'string', description: 'A time span, such as 5m0s.' },
    v3: { type: 'string', description: 'A time span, such as 5m0s.' },
  },
  raw: {
    name: 'io.k8s.apimachinery.pkg.runtime.RawExtension',
    v2: { type: 'object', description: 'Any object.' },
    v3: { type: 'object', description: 'Any object.' },
  },
};
