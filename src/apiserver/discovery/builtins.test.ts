import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';
import { describe, expect, it } from 'vitest';
import { builtinDefinitions } from '../../api/kinds/builtins.ts';
import { Discovery } from './discovery.ts';
import { FakeSource, jsonOf, requestFor } from './fake-source.fixture.ts';
import { OpenApiV2 } from './openapi-v2.ts';
import { OpenApiV3 } from './openapi-v3.ts';

/** Discovery and OpenAPI over everything that is built in. */

type Node = { readonly $ref?: string; readonly [key: string]: unknown };
interface DocumentV3 {
  paths: { [path: string]: { [method: string]: { operationId: string } } };
  components: { schemas: { [name: string]: Node } };
}

const source = new FakeSource();
source.all = builtinDefinitions;
const v3 = new OpenApiV3(source);
const v2 = new OpenApiV2(source);
const paths = jsonOf<{ paths: { [name: string]: unknown } }>(v3.handle(requestFor('/openapi/v3'), '/openapi/v3')).paths;
const names = Object.keys(paths);
const document = (name: string): DocumentV3 =>
  jsonOf<DocumentV3>(v3.handle(requestFor(`/openapi/v3/${name}`), `/openapi/v3/${name}`));

/** Visits every schema, whatever keyword it is under. */
function visit(schema: unknown, see: (schema: Node) => void): void {
  if (typeof schema !== 'object' || schema === null) return;
  const node = schema as Node;
  see(node);
  for (const child of Object.values((node['properties'] ?? {}) as Node)) visit(child, see);
  for (const keyword of ['items', 'additionalProperties', 'not']) visit(node[keyword], see);
  for (const keyword of ['allOf', 'anyOf', 'oneOf'])
    for (const each of (node[keyword] ?? []) as Node[]) visit(each, see);
}

const KEYWORDS =
  /^(\$ref|type|format|title|description|required|enum|default|nullable|pattern|properties|items|additionalProperties|allOf|anyOf|oneOf|not|(min|max)(imum|Length|Items|Properties)|exclusiveM(in|ax)imum|multipleOf|uniqueItems|x-kubernetes-.+)$/;
const OURS = ['quantity', 'micro-time', 'raw', 'duration'];

describe('OpenAPI v3 of the built-in kinds', () => {
  it('has a document for every group and version', () => {
    const expected = builtinDefinitions.map(({ group, version }) =>
      group === '' ? `api/${version}` : `apis/${group}/${version}`,
    );
    expect(names).toEqual([...new Set(expected)].sort());
  });

  it.each(names)('%s is whole and speaks only OpenAPI', (name) => {
    const { schemas } = document(name).components;
    for (const [schemaName, schema] of Object.entries(schemas)) {
      visit(schema, (node) => {
        for (const key of Object.keys(node)) expect(key, schemaName).toMatch(KEYWORDS);
        expect(OURS, schemaName).not.toContain(node['format']);
        const reference = node.$ref;
        if (reference === undefined) return;
        expect(Object.keys(schemas)).toContain(reference.replace('#/components/schemas/', ''));
      });
    }
  });

  it.each(names)('%s names each operation once, and finds each kind by its operations', (name) => {
    const { paths: operations, components } = document(name);
    const ids = Object.values(operations).flatMap((item) => Object.values(item).map((each) => each.operationId));
    expect(new Set(ids).size).toBe(ids.length);
    const kinds = Object.values(components.schemas).flatMap(
      (schema) => (schema['x-kubernetes-group-version-kind'] ?? []) as { kind: string }[],
    );
    for (const { group, version, kind, plural, namespaced } of builtinDefinitions) {
      if (name !== (group === '' ? `api/${version}` : `apis/${group}/${version}`)) continue;
      expect(kinds).toContainEqual({ group, version, kind });
      const path = `/${name}/${namespaced ? 'namespaces/{namespace}/' : ''}${plural}`;
      expect(Object.keys(operations)).toContain(path);
    }
  });

  it('can be walked down to the leaves without going in circles', () => {
    const { schemas } = document('api/v1').components;
    const depthOf = (node: Node, trail: readonly string[]): number => {
      let depth = 0;
      const own = { ...node };
      visit(own, (each) => {
        const name = (each.$ref ?? '').replace('#/components/schemas/', '');
        if (name === '' || trail.includes(name)) return;
        depth = Math.max(depth, 1 + depthOf(schemas[name] ?? {}, [...trail, name]));
      });
      return depth;
    };
    expect(depthOf(schemas['io.k8s.api.core.v1.Pod'] ?? {}, [])).toBeGreaterThan(3);
  });
});

describe('OpenAPI v2 of the built-in kinds', () => {
  it('defines everything that it refers to', () => {
    const { definitions } = jsonOf<{ definitions: { [name: string]: Node } }>(
      v2.handle(requestFor('/openapi/v2'), '/openapi/v2'),
    );
    const defined = new Set(Object.keys(definitions));
    for (const schema of Object.values(definitions)) {
      visit(schema, (node) => {
        const reference = node.$ref;
        if (reference !== undefined) expect(defined).toContain(reference.replace('#/definitions/', ''));
      });
    }
  });

  it('says the same in protobuf', () => {
    const accept = 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf';
    const response = v2.handle(requestFor('/openapi/v2', { accept }), '/openapi/v2');
    const root = fieldsOf(response?.body as Uint8Array);
    expect(textOf(root, 1)).toBe('2.0');
    const definitions = namedOf(fieldsOf(root.get(9)?.[0] as Uint8Array), 1);
    const pod = fieldsOf(definitions.get('io.k8s.api.core.v1.Pod') as Uint8Array);
    const properties = namedOf(fieldsOf(pod.get(25)?.[0] as Uint8Array), 1);
    expect([...properties.keys()].sort()).toEqual(['apiVersion', 'kind', 'metadata', 'spec', 'status']);
    expect(textOf(fieldsOf(properties.get('spec') as Uint8Array), 1)).toBe('#/definitions/io.k8s.api.core.v1.PodSpec');
    const extensions = namedOf(pod, 31);
    const kind = textOf(fieldsOf(extensions.get('x-kubernetes-group-version-kind') as Uint8Array), 2);
    expect(JSON.parse(kind)).toEqual([{ group: '', version: 'v1', kind: 'Pod' }]);
    const items = namedOf(fieldsOf(root.get(8)?.[0] as Uint8Array), 2);
    const patch = fieldsOf(
      fieldsOf(items.get('/api/v1/namespaces/{namespace}/pods/{name}') as Uint8Array).get(8)?.[0] as Uint8Array,
    );
    const parameters = (patch.get(8) ?? []).map((bytes) => {
      const nonBody = fieldsOf(fieldsOf(bytes as Uint8Array).get(1)?.[0] as Uint8Array).get(2)?.[0];
      const query = nonBody && fieldsOf(nonBody as Uint8Array).get(3)?.[0];
      return query && textOf(fieldsOf(query as Uint8Array), 4);
    });
    expect(parameters).toContain('fieldValidation');
    expect(parameters).toContain('dryRun');
  });
});

describe('discovery of the built-in kinds', () => {
  it('lists every resource once, with its group before those of lower priority', () => {
    const discovery = new Discovery(source);
    const groups = discovery.groups();
    expect(groups.slice(0, 2).map((group) => group.name)).toEqual(['', 'apiregistration.k8s.io']);
    const listed = groups.flatMap((group) =>
      group.versions.flatMap((version) => version.resources.map((each) => `${each.resource}.${group.name}`)),
    );
    expect(listed.sort()).toEqual(builtinDefinitions.map(({ plural, group }) => `${plural}.${group}`).sort());
  });
});

/** The fields of a protobuf message by number. */
function fieldsOf(bytes: Uint8Array): Map<number, (Uint8Array | number)[]> {
  const reader = new BinaryReader(bytes);
  const fields = new Map<number, (Uint8Array | number)[]>();
  while (reader.pos < reader.len) {
    const [number, wireType] = reader.tag();
    const value =
      wireType === WireType.LengthDelimited
        ? reader.bytes()
        : wireType === WireType.Varint
          ? Number(reader.int64())
          : reader.double();
    fields.set(number, [...(fields.get(number) ?? []), value]);
  }
  return fields;
}

function textOf(fields: Map<number, (Uint8Array | number)[]>, number: number): string {
  return Buffer.from((fields.get(number)?.[0] ?? new Uint8Array()) as Uint8Array).toString();
}

/** A repeated entry of name and value, as a map. */
function namedOf(fields: Map<number, (Uint8Array | number)[]>, number: number): Map<string, Uint8Array> {
  const entries = (fields.get(number) ?? []).map((bytes) => fieldsOf(bytes as Uint8Array));
  return new Map(entries.map((entry) => [textOf(entry, 1), entry.get(2)?.[0] as Uint8Array]));
}
