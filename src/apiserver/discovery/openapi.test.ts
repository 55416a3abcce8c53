import { describe, expect, it } from 'vitest';
import { definitionsOf } from '../custom-resources/definitions.ts';
import { crd, FakeSource, jsonOf, pods, requestFor } from './fake-source.fixture.ts';
import { OpenApiV2 } from './openapi-v2.ts';
import { OpenApiV3 } from './openapi-v3.ts';

type Node = { [key: string]: Node } & { $ref?: string; parameters?: { name: string; in: string }[] };
interface DocumentV3 {
  paths: { [path: string]: { [method: string]: Node } };
  components: { schemas: { [name: string]: Node } };
}
interface DocumentV2 {
  paths: { [path: string]: { [method: string]: Node } };
  definitions: { [name: string]: Node };
}
interface Index {
  paths: { [name: string]: { serverRelativeURL: string } };
}

function start() {
  const source = new FakeSource();
  const v3 = new OpenApiV3(source);
  const v2 = new OpenApiV2(source);
  const get = (url: string, headers: Record<string, string> = {}) => {
    const request = requestFor(url, headers);
    return v3.handle(request, request.path) ?? v2.handle(request, request.path);
  };
  return { source, get };
}

/** Every `$ref` of a document, and every key that it uses. */
function walk(node: unknown, references: Set<string>, keys: Set<string>): void {
  if (typeof node !== 'object' || node === null) return;
  for (const [key, value] of Object.entries(node)) {
    keys.add(key);
    if (key === '$ref') references.add(String(value));
    walk(value, references, keys);
  }
}

describe('OpenAPI v3', () => {
  it('indexes every group and version by the hash of its document', () => {
    const { get } = start();
    const { paths } = jsonOf<Index>(get('/openapi/v3'));
    expect(Object.keys(paths)).toEqual([
      'api/v1',
      'apis/apps/v1',
      'apis/coordination.k8s.io/v1',
      'apis/example.com/v1',
      'apis/example.com/v1alpha1',
      'apis/example.com/v2beta1',
    ]);
    const url = paths['api/v1']?.serverRelativeURL ?? '';
    expect(url).toMatch(/^\/openapi\/v3\/api\/v1\?hash=[0-9A-F]{128}$/);
    const response = get(url);
    expect(response?.status).toBe(200);
    expect(response?.headers['cache-control']).toContain('immutable');
    expect(get(url, { 'if-none-match': String(response?.headers['etag']) })?.status).toBe(304);
  });

  it('leads a client with an old index to the new document', () => {
    const { get } = start();
    const { paths } = jsonOf<Index>(get('/openapi/v3'));
    expect(get('/openapi/v3/api/v1?hash=OLD')).toMatchObject({
      status: 301,
      headers: { location: paths['api/v1']?.serverRelativeURL },
    });
  });

  it('changes only the hash of what changed', () => {
    const { source, get } = start();
    const before = jsonOf<Index>(get('/openapi/v3')).paths;
    const [v1, ...others] = definitionsOf(crd);
    const next = { ...v1, kind: 'Bar' } as typeof pods;
    source.change([...source.all.filter((each) => each.group !== 'example.com'), next, ...others]);
    const after = jsonOf<Index>(get('/openapi/v3')).paths;
    expect(after['apis/example.com/v1']).not.toEqual(before['apis/example.com/v1']);
    expect(after['api/v1']).toEqual(before['api/v1']);
    source.change([pods]);
    expect(Object.keys(jsonOf<Index>(get('/openapi/v3')).paths)).toEqual(['api/v1']);
    expect(() => get('/openapi/v3/apis/example.com/v1')).toThrow(expect.objectContaining({ code: 404 }));
  });

  it('lists the documents of other servers, and leaves them to those', () => {
    const { source, get } = start();
    const remote = { groupPriority: 1, versionPriority: 1, freshness: 'Current', resources: [] } as const;
    source.change(
      [pods],
      [
        { group: 'a.example.com', version: 'v1', openApiHash: 'ABC', ...remote },
        { group: 'b.example.com', version: 'v1', ...remote },
      ],
    );
    expect(jsonOf<Index>(get('/openapi/v3')).paths).toMatchObject({
      'apis/a.example.com/v1': { serverRelativeURL: '/openapi/v3/apis/a.example.com/v1?hash=ABC' },
    });
    expect(get('/openapi/v3/apis/a.example.com/v1')).toBeUndefined();
    expect(() => get('/openapi/v3/apis/b.example.com/v1')).toThrow(expect.objectContaining({ code: 404 }));
  });

  it('refers to named schemas, defines them all, and leaks nothing of ours', () => {
    const document = jsonOf<DocumentV3>(start().get('/openapi/v3/api/v1'));
    const references = new Set<string>();
    const keys = new Set<string>();
    walk(document, references, keys);
    for (const reference of references) {
      expect(document.components.schemas).toHaveProperty([reference.replace('#/components/schemas/', '')]);
    }
    expect(keys.has('protobuf')).toBe(false);
    expect(JSON.stringify(document)).not.toContain('"format":"quantity"');
    for (const schema of Object.values(document.components.schemas)) expect(typeof schema['name']).not.toBe('string');
  });

  it('says what kubectl apply and explain look for', () => {
    const { schemas } = jsonOf<DocumentV3>(start().get('/openapi/v3/api/v1')).components;
    expect(schemas['io.k8s.api.core.v1.Pod']).toMatchObject({
      description: 'A pod.',
      'x-kubernetes-group-version-kind': [{ group: '', version: 'v1', kind: 'Pod' }],
      properties: {
        spec: { description: 'What is wanted.', allOf: [{ $ref: '#/components/schemas/io.k8s.api.core.v1.PodSpec' }] },
      },
    });
    expect(schemas['io.k8s.api.core.v1.PodSpec']?.['properties']).toMatchObject({
      containers: {
        type: 'array',
        description: 'What runs in it.',
        items: { $ref: '#/components/schemas/io.k8s.api.core.v1.Container' },
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['name'],
        'x-kubernetes-patch-strategy': 'merge',
        'x-kubernetes-patch-merge-key': 'name',
      },
      strategy: { 'x-kubernetes-patch-strategy': 'retainKeys', description: 'How.' },
      since: { allOf: [{ $ref: '#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.Time' }] },
    });
    expect(schemas['io.k8s.api.core.v1.Strategy']).not.toHaveProperty('x-kubernetes-patch-strategy');
    expect(schemas['io.k8s.api.core.v1.Container']).toMatchObject({
      description: 'One container of a pod.',
      required: ['name'],
      properties: {
        limits: {
          type: 'object',
          additionalProperties: { $ref: '#/components/schemas/io.k8s.apimachinery.pkg.api.resource.Quantity' },
        },
        port: { default: 80 },
      },
    });
    expect(schemas['io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime']).toMatchObject({ format: 'date-time' });
    expect(schemas['io.k8s.api.core.v1.PodList']).toMatchObject({
      required: ['items'],
      'x-kubernetes-group-version-kind': [{ group: '', version: 'v1', kind: 'PodList' }],
    });
  });

  it('has every operation with the parameters that kubectl checks for', () => {
    const { paths } = jsonOf<DocumentV3>(start().get('/openapi/v3/api/v1'));
    expect(Object.keys(paths).sort()).toEqual([
      '/api/v1/namespaces',
      '/api/v1/namespaces/{namespace}/pods',
      '/api/v1/namespaces/{namespace}/pods/{name}',
      '/api/v1/namespaces/{namespace}/pods/{name}/eviction',
      '/api/v1/namespaces/{namespace}/pods/{name}/status',
      '/api/v1/namespaces/{name}',
      '/api/v1/pods',
    ]);
    const item = paths['/api/v1/namespaces/{namespace}/pods/{name}'] ?? {};
    expect(Object.keys(item).sort()).toEqual(['delete', 'get', 'patch', 'put']);
    expect(item['patch']).toMatchObject({
      operationId: 'patchCoreV1NamespacedPod',
      'x-kubernetes-action': 'patch',
      'x-kubernetes-group-version-kind': { group: '', version: 'v1', kind: 'Pod' },
    });
    const names = (item['patch']?.parameters ?? []).map((each) => each.name);
    expect(names).toEqual(
      expect.arrayContaining(['name', 'namespace', 'dryRun', 'fieldManager', 'fieldValidation', 'force']),
    );
    expect(Object.keys(item['patch']?.['requestBody']?.['content'] ?? {})).toContain(
      'application/strategic-merge-patch+json',
    );
    expect(paths['/api/v1/namespaces/{namespace}/pods/{name}/eviction']?.['post']).toMatchObject({
      'x-kubernetes-group-version-kind': { group: 'policy', version: 'v1', kind: 'Eviction' },
    });
    const ids = Object.values(paths).flatMap((each) =>
      Object.values(each).map((operation) => operation['operationId']),
    );
    expect(new Set(ids).size).toBe(ids.length);
  });

  it('publishes custom resources as their authors wrote them', () => {
    const { components, paths } = jsonOf<DocumentV3>(start().get('/openapi/v3/apis/example.com/v1'));
    const foo = components.schemas['com.example.v1.Foo'];
    expect(foo).toMatchObject({
      description: 'A foo.',
      'x-kubernetes-group-version-kind': [{ group: 'example.com', version: 'v1', kind: 'Foo' }],
      properties: {
        metadata: {
          allOf: [{ $ref: '#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta' }],
        },
        spec: {
          required: ['color'],
          properties: {
            // A format means nothing special here, whatever our own builders use it for.
            color: { type: 'string', format: 'date-time', enum: ['red', 'green'] },
            size: { 'x-kubernetes-int-or-string': true, anyOf: [{ type: 'integer' }, { type: 'string' }] },
            open: { 'x-kubernetes-preserve-unknown-fields': true },
            maybe: { type: 'string', nullable: true },
          },
        },
      },
    });
    const spec = foo?.['properties']?.['spec']?.['properties'] ?? {};
    expect(Object.hasOwn(spec, '__proto__')).toBe(true);
    expect(Object.keys(spec['inner']?.['properties'] ?? {})).toEqual(['apiVersion', 'kind', 'metadata']);
    const patch = paths['/apis/example.com/v1/namespaces/{namespace}/foos/{name}']?.['patch'];
    expect(Object.keys(patch?.['requestBody']?.['content'] ?? {})).not.toContain(
      'application/strategic-merge-patch+json',
    );
    expect(patch?.['operationId']).toBe('patchExampleComV1NamespacedFoo');
  });

  it('survives a schema that contains itself', () => {
    const { source, get } = start();
    const properties: Record<string, unknown> = {};
    const node = { name: 'io.example.Node', type: 'object', description: 'A node.', properties } as const;
    properties['children'] = { type: 'array', items: node };
    source.change([{ ...pods, schema: node as unknown as typeof pods.schema }]);
    expect(jsonOf<DocumentV3>(get('/openapi/v3/api/v1')).components.schemas['io.example.Node']).toMatchObject({
      properties: { children: { items: { $ref: '#/components/schemas/io.example.Node' } } },
    });
  });

  it('answers 406 to who wants no JSON', () => {
    expect(() => start().get('/openapi/v3', { accept: 'text/html' })).toThrow(expect.objectContaining({ code: 406 }));
    expect(start().get('/openapi/v3', { accept: 'text/html, */*' })?.status).toBe(200);
  });
});

describe('OpenAPI v2', () => {
  it('says as much as version 2 can', () => {
    const document = jsonOf<DocumentV2>(start().get('/openapi/v2'));
    const references = new Set<string>();
    walk(document, references, new Set());
    for (const reference of references) {
      expect(document.definitions).toHaveProperty([reference.replace('#/definitions/', '')]);
    }
    expect(document.definitions['io.k8s.api.core.v1.Pod']?.['properties']?.['spec']).toEqual({
      $ref: '#/definitions/io.k8s.api.core.v1.PodSpec',
      description: 'What is wanted.',
    });
    expect(document.definitions['io.k8s.apimachinery.pkg.api.resource.Quantity']).toMatchObject({ type: 'string' });
    const spec = document.definitions['com.example.v1.Foo']?.['properties']?.['spec']?.['properties'];
    expect(spec?.['size']).toEqual({ 'x-kubernetes-int-or-string': true });
    expect(spec?.['open']).toEqual({ type: 'object', 'x-kubernetes-preserve-unknown-fields': true });
    expect(spec?.['maybe']).toEqual({});
    expect(
      document.definitions['io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions']?.['x-kubernetes-group-version-kind'],
    ).toHaveLength(6);
  });

  it('answers in protobuf under the name that is allowed', () => {
    const response = start().get('/openapi/v2', {
      accept: 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf',
    });
    expect(response?.headers['content-type']).toBe('application/com.github.proto-openapi.spec.v2.v1.0+protobuf');
    const bytes = Buffer.from(response?.body as Uint8Array);
    expect(bytes.subarray(0, 5)).toEqual(Buffer.from([0x0a, 3, 0x32, 0x2e, 0x30]));
    expect(bytes.includes('io.k8s.api.core.v1.PodSpec')).toBe(true);
  });

  it('answers 304, 405 and 406 as it should', () => {
    const { get } = start();
    const etag = String(get('/openapi/v2')?.headers['etag']);
    expect(get('/openapi/v2', { 'if-none-match': etag })?.status).toBe(304);
    expect(() => get('/openapi/v2', { accept: 'text/html' })).toThrow(expect.objectContaining({ code: 406 }));
    const put = requestFor('/openapi/v2', {}, 'PUT');
    expect(() => new OpenApiV2(new FakeSource()).handle(put, put.path)).toThrow(expect.objectContaining({ code: 405 }));
  });
});
