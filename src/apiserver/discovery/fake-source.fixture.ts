import { builtin, objectSchema } from '../../api/kinds/meta.ts';
import type { ResourceDefinition } from '../../api/resource.ts';
import { anything, intOrString, listMap, map, message, microTime, quantity, str, time } from '../../api/schema.ts';
import type { ApiRequest, ApiResponse } from '../http/message.ts';
import { definitionsOf } from '../custom-resources/definitions.ts';
import type { DiscoverySource } from './discovery.ts';
import type { RemoteGroupVersion } from './groups.ts';
import type { OpenApiSource } from './openapi-v3.ts';

/** A few small definitions and fakes of the ports around discovery, for tests. */

const container = message(
  'io.k8s.api.core.v1.Container',
  'One container of a pod.',
  {
    name: [1, str(), 'What it is called.'],
    limits: [2, map(quantity()), 'What it may use.'],
    port: [3, intOrString({ default: 80 }), 'Where it listens.'],
    raw: [4, anything(), 'Whatever.'],
  },
  { required: ['name'] },
);

const podSpec = message('io.k8s.api.core.v1.PodSpec', 'What a pod shall be.', {
  containers: [1, listMap(['name'], container), 'What runs in it.'],
  since: [2, time(), 'Since when.'],
  exactly: [3, microTime(), 'Since exactly when.'],
  strategy: [
    4,
    message(
      'io.k8s.api.core.v1.Strategy',
      'A strategy.',
      { type: [1, str(), 'Which.'] },
      {
        'x-kubernetes-patch-strategy': 'retainKeys',
      },
    ),
    'How.',
  ],
});

const eviction = objectSchema('io.k8s.api.policy.v1.Eviction', 'Asks for a pod to be deleted.', {});

export const pods = builtin({
  group: '',
  version: 'v1',
  plural: 'pods',
  kind: 'Pod',
  namespaced: true,
  shortNames: ['po'],
  categories: ['all'],
  hasStatus: true,
  schema: objectSchema('io.k8s.api.core.v1.Pod', 'A pod.', { spec: [2, podSpec, 'What is wanted.'] }),
  subresources: [
    { name: 'eviction', group: 'policy', version: 'v1', kind: 'Eviction', verbs: ['create'], schema: eviction },
  ],
});

export const namespaces = builtin({
  group: '',
  version: 'v1',
  plural: 'namespaces',
  kind: 'Namespace',
  namespaced: false,
  schema: objectSchema('io.k8s.api.core.v1.Namespace', 'A namespace.', {}),
});

const leases = builtin({
  group: 'coordination.k8s.io',
  version: 'v1',
  plural: 'leases',
  kind: 'Lease',
  namespaced: true,
  schema: objectSchema('io.k8s.api.coordination.v1.Lease', 'A lease.', {}),
});

const apps = builtin({
  group: 'apps',
  version: 'v1',
  plural: 'deployments',
  kind: 'Deployment',
  namespaced: true,
  schema: objectSchema('io.k8s.api.apps.v1.Deployment', 'A deployment.', {}),
});

export const crd = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'foos.example.com' },
  spec: {
    group: 'example.com',
    scope: 'Namespaced',
    names: { plural: 'foos', kind: 'Foo', shortNames: ['fo'], categories: ['all'] },
    versions: ['v1alpha1', 'v1', 'v2beta1'].map((name) => ({
      name,
      served: true,
      storage: name === 'v1',
      subresources: { status: {}, scale: { specReplicasPath: '.spec.n', statusReplicasPath: '.status.n' } },
      schema: {
        openAPIV3Schema: {
          type: 'object',
          description: 'A foo.',
          properties: {
            spec: {
              type: 'object',
              required: ['color'],
              properties: {
                color: { type: 'string', enum: ['red', 'green'], format: 'date-time' },
                size: { 'x-kubernetes-int-or-string': true, anyOf: [{ type: 'integer' }, { type: 'string' }] },
                open: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true, properties: { a: {} } },
                maybe: { type: 'string', nullable: true },
                inner: { type: 'object', 'x-kubernetes-embedded-resource': true, properties: {} },
                ['__proto__']: { type: 'string' },
              },
            },
          },
        },
      },
    })),
  },
};

/** A fake of the registry and the aggregator, as discovery sees them. */
export class FakeSource implements DiscoverySource, OpenApiSource {
  readonly version = 'v1.34.0';
  all: readonly ResourceDefinition[] = [leases, apps, pods, ...definitionsOf(crd), namespaces];
  remoteVersions: readonly RemoteGroupVersion[] = [];
  readonly #listeners: (() => void)[] = [];

  definitions(): readonly ResourceDefinition[] {
    return this.all;
  }

  remotes(): readonly RemoteGroupVersion[] {
    return this.remoteVersions;
  }

  onDefinitionsChange(listener: () => void): void {
    this.#listeners.push(listener);
  }

  onRemotesChange(listener: () => void): void {
    this.#listeners.push(listener);
  }

  change(definitions: readonly ResourceDefinition[], remotes: readonly RemoteGroupVersion[] = []): void {
    this.all = definitions;
    this.remoteVersions = remotes;
    for (const listener of this.#listeners) listener();
  }
}

/** A request without a connection. */
export function requestFor(url: string, headers: Record<string, string> = {}, method = 'GET'): ApiRequest {
  const [path = '', query = ''] = url.split('?');
  return {
    method,
    path,
    query: new URLSearchParams(query),
    headers,
    body: async () => new Uint8Array(),
    remoteAddress: '127.0.0.1',
    signal: new AbortController().signal,
  };
}

/** The body of a response as JSON, of the shape that the caller expects. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- a cast at every call would say the same, longer
export function jsonOf<T>(response: ApiResponse | undefined): T {
  if (!response || (typeof response.body !== 'string' && !(response.body instanceof Uint8Array))) {
    throw new Error('no whole response');
  }
  return JSON.parse(Buffer.from(response.body).toString()) as T;
}
