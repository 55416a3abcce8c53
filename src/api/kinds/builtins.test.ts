import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../meta.ts';
import { bucketOf, type ResourceDefinition } from '../resource.ts';
import type { Schema } from '../schema.ts';
import { builtinDefinitions } from './builtins.ts';

const NOW_MS = Date.parse('2026-01-02T03:04:05Z');
const nameOf = (definition: ResourceDefinition): string =>
  `${definition.group}/${definition.version}/${definition.plural}`;
const named = builtinDefinitions.map((definition): [string, ResourceDefinition] => [nameOf(definition), definition]);

/** Every schema below one, with its path; fields that are met again inside themselves are not followed. */
function walk(
  schema: Schema,
  path: string,
  visit: (schema: Schema, path: string) => void,
  around: readonly object[] = [],
): void {
  visit(schema, path);
  const { properties = {}, items, additionalProperties } = schema;
  if (around.includes(properties)) return;
  const inside = [...around, properties];
  for (const [field, each] of Object.entries(properties)) walk(each, `${path}.${field}`, visit, inside);
  if (items !== undefined) walk(items, `${path}[]`, visit, inside);
  if (typeof additionalProperties === 'object') walk(additionalProperties, `${path}{}`, visit, inside);
}

/** Within the schemas that a definition carries, some values are schemas or something else. */
const UNTYPED = /\.apiextensions\.v1\.JSON(SchemaPropsOr\w+)?$/;

describe('the built-in kinds', () => {
  it('are each there once', () => {
    const names = named.map(([name]) => name);
    expect(names.length).toBe(new Set(names).size);
    expect(names.length).toBeGreaterThan(45);
  });

  it('include all that the API promises', () => {
    const kinds = new Set(builtinDefinitions.map((definition) => `${definition.group}/${definition.kind}`));
    const core = 'Namespace Node Pod Event ConfigMap Secret ServiceAccount Service Endpoints ResourceQuota';
    const promised = `${core} PersistentVolume PersistentVolumeClaim`.split(' ').map((kind) => `/${kind}`);
    promised.push('events.k8s.io/Event', 'policy/PodDisruptionBudget', 'coordination.k8s.io/Lease');
    promised.push('scheduling.k8s.io/PriorityClass', 'storage.k8s.io/StorageClass');
    promised.push('certificates.k8s.io/CertificateSigningRequest', 'apiregistration.k8s.io/APIService');
    promised.push('apiextensions.k8s.io/CustomResourceDefinition', 'authentication.k8s.io/TokenReview');
    for (const kind of promised) expect(kinds).toContain(kind);
  });

  it('have short names that belong to one bucket each', () => {
    const owners = new Map<string, string>();
    for (const definition of builtinDefinitions) {
      for (const shortName of definition.shortNames ?? []) {
        const bucket = bucketOf(definition);
        expect(owners.get(shortName) ?? bucket).toBe(bucket);
        owners.set(shortName, bucket);
      }
    }
  });
});

describe.each(named)('%s', (_name, definition) => {
  it('is named as kinds are', () => {
    expect(definition.kind).toMatch(/^[A-Z][A-Za-z]+$/);
    expect(definition.plural).toMatch(/^[a-z]+s$/);
    expect(definition.singular).toBe(definition.kind.toLowerCase());
    expect(definition.listKind).toBe(`${definition.kind}List`);
    expect(definition.schema.name).toMatch(new RegExp(`^io\\.k8s\\..*\\.${definition.kind}$`));
  });

  it('has a whole schema', () => {
    const { properties = {} } = definition.schema;
    expect(Object.keys(properties)).toEqual(expect.arrayContaining(['apiVersion', 'kind', 'metadata']));
    expect(properties['metadata']?.protobuf).toBe(1);
    if (definition.hasStatus) expect(properties['status']?.type).toBe('object');
    walk(definition.schema, definition.kind, (schema, path) => {
      const isTyped = schema.type !== undefined || schema['x-kubernetes-int-or-string'] === true;
      const isUntyped = UNTYPED.test(schema.name ?? '');
      expect(isTyped, `${path} has a type`).toBe(!isUntyped);
      if (schema.type === 'array') expect(schema.items, `${path} has items`).toBeDefined();
      if (schema.properties !== undefined && !isUntyped) expect(schema.type, path).toBe('object');
      const fields = Object.keys(schema.properties ?? {});
      for (const required of schema.required ?? []) expect(fields, `${path} requires`).toContain(required);
      for (const key of schema['x-kubernetes-list-map-keys'] ?? []) {
        expect(Object.keys(schema.items?.properties ?? {}), `${path} is keyed by`).toContain(key);
      }
      if (schema.name !== undefined) expect(schema.description, `${path} is described`).toMatch(/\.$/);
    });
  });

  it('numbers its fields for protobuf without doubles', () => {
    walk(definition.schema, definition.kind, (schema, path) => {
      if (schema.properties === undefined) return;
      const embedded = new Set<number>();
      const seen = new Set<string>();
      for (const [field, each] of Object.entries(schema.properties)) {
        if (field === 'apiVersion' || field === 'kind') continue;
        if (each.protobuf === undefined) continue;
        const key = `${each.embedded ?? 0}:${each.protobuf}`;
        expect(seen, `${path}.${field} has the number ${key} alone`).not.toContain(key);
        seen.add(key);
        if (each.embedded !== undefined) embedded.add(each.embedded);
      }
      for (const number of embedded) expect(seen, `${path} embeds under ${number}`).not.toContain(`0:${number}`);
    });
  });

  it('has columns that can be computed of an object without anything', () => {
    const bare: KubeObject = { apiVersion: '', kind: '', metadata: {} };
    const names = definition.columns.map((column) => column.name);
    expect(names.length).toBe(new Set(names).size);
    for (const column of definition.columns) expect(column.cell?.(bare, NOW_MS)).not.toBeUndefined();
  });

  it('survives objects of any shape', () => {
    fc.assert(
      fc.property(mangled(definition.schema), mangled(definition.schema), (object, old) => {
        exercise(definition, object, old);
      }),
      { numRuns: 60 },
    );
  });
});

/** Objects that have the kind's fields, but anything in them. */
function mangled(schema: Schema): fc.Arbitrary<KubeObject> {
  return fieldsOf(schema, 0).map((fields) => {
    const { metadata: _metadata, ...rest } = fields;
    return { ...rest, apiVersion: 'v1', kind: 'X', metadata: { name: 'x', namespace: 'y', uid: 'u' } };
  });
}

const junk = fc.constantFrom<unknown>('', 'x', 0, -1, 3, true, false, null, [], {}, ['x'], [null], { x: 1 }, '50%');

function anyOf(schema: Schema, depth: number): fc.Arbitrary<unknown> {
  if (depth > 7) return junk;
  const fitting: fc.Arbitrary<unknown>[] = [];
  if (schema.properties !== undefined) fitting.push(fieldsOf(schema, depth));
  if (schema.items !== undefined) fitting.push(fc.array(anyOf(schema.items, depth + 1), { maxLength: 2 }));
  if (typeof schema.additionalProperties === 'object') {
    fitting.push(fc.dictionary(fc.constantFrom('a', 'b/c', ''), anyOf(schema.additionalProperties, depth + 1)));
  }
  if (schema.enum !== undefined) fitting.push(fc.constantFrom<unknown>(...schema.enum));
  if (fitting.length === 0) return junk;
  return fc.oneof({ arbitrary: junk, weight: 1 }, ...fitting.map((arbitrary) => ({ arbitrary, weight: 4 })));
}

function fieldsOf(schema: Schema, depth: number): fc.Arbitrary<{ [field: string]: unknown }> {
  const all = Object.entries(schema.properties ?? {});
  // Pod templates have hundreds of fields: a few at a time find the same mistakes.
  return fc
    .subarray(all, { minLength: Math.min(2, all.length), maxLength: Math.min(8, all.length) })
    .chain((fields) => fc.record(Object.fromEntries(fields.map(([name, each]) => [name, anyOf(each, depth + 1)]))));
}

function exercise(definition: ResourceDefinition, object: KubeObject, old: KubeObject): void {
  const { strategy, storage } = definition;
  strategy?.prepareForCreate?.(object);
  strategy?.prepareForCreate?.(old);
  strategy?.applyDefaults?.(object);
  strategy?.validate?.(object);
  strategy?.validateUpdate?.(object, old);
  strategy?.prepareForStatusUpdate?.(object, old);
  strategy?.validateStatusUpdate?.(object, old);
  strategy?.warnings?.(object, old);
  for (const column of definition.columns) column.cell?.(object, NOW_MS);
  storage?.toStorage(object);
  storage?.fromStorage(object);
  strategy?.prepareForUpdate?.(object, old);
}
