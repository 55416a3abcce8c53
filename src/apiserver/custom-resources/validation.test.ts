import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../../api/meta.ts';
import { clone } from '../../machinery/clone.ts';
import { customResourceDefinitionStrategy } from './strategy.ts';
import { crdErrors, crdUpdateErrors } from './validation.ts';
import { CLEANUP_FINALIZER, type CustomResourceDefinition } from './wire.ts';

function valid(): CustomResourceDefinition {
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'foos.example.com' },
    spec: {
      group: 'example.com',
      scope: 'Namespaced',
      names: { plural: 'foos', singular: 'foo', kind: 'Foo', listKind: 'FooList', shortNames: ['fo'] },
      conversion: { strategy: 'None' },
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          schema: {
            openAPIV3Schema: {
              type: 'object',
              properties: {
                spec: {
                  type: 'object',
                  properties: { color: { type: 'string' }, list: { type: 'array', items: { type: 'string' } } },
                },
              },
            },
          },
        },
      ],
    },
    status: { storedVersions: ['v1'], conditions: [{ type: 'Established', status: 'True' }] },
  };
}

/** A copy with the value at a path changed; undefined removes it. */
function changed(path: string, value: unknown, object: KubeObject = valid()): KubeObject {
  const copy = clone(object);
  const parts = path.split('.');
  const last = parts.pop() ?? '';
  let at = copy as Record<string, unknown>;
  for (const part of parts) at = (at[part] ??= {}) as Record<string, unknown>;
  if (value === undefined) delete at[last];
  else at[last] = value;
  return copy;
}

const sentences = (object: KubeObject, old?: KubeObject): string[] =>
  [...crdErrors(object, old), ...(old ? crdUpdateErrors(object, old) : [])].map(
    (error) => `${error.field}: ${error.message}`,
  );

const V = 'spec.versions.0';
const open = { name: 'v2', served: true, storage: false, schema: { openAPIV3Schema: { type: 'object' } } };
const stored = valid().spec?.versions?.[0];

describe('crdErrors', () => {
  it('accepts a valid definition', () => expect(sentences(valid())).toEqual([]));

  it.each<[string, unknown, string]>([
    [
      'metadata.name',
      'bars.example.com',
      'metadata.name: Invalid value: "bars.example.com": must be spec.names.plural+"."+spec.group',
    ],
    ['spec.group', 'example', 'spec.group: Invalid value: "example": should be a domain with at least one dot'],
    ['spec.group', undefined, 'spec.group: Required value'],
    ['spec.group', 'Example.com', 'spec.group: Invalid value: "Example.com": a lowercase RFC 1123 subdomain'],
    ['spec.group', 'x.k8s.io', 'metadata.annotations[api-approved.kubernetes.io]: Required value'],
    ['spec.scope', 'Galaxy', 'spec.scope: Unsupported value: "Galaxy": supported values: "Cluster", "Namespaced"'],
    ['spec.scope', undefined, 'spec.scope: Required value'],
    ['spec.names.kind', 'Foo Bar', 'spec.names.kind: Invalid value: "Foo Bar": may have mixed case'],
    ['spec.names.kind', undefined, 'spec.names.kind: Required value'],
    ['spec.names.listKind', 'Foo', 'spec.names.listKind: Invalid value: "Foo": kind and listKind may not be the same'],
    ['spec.names.plural', 'Foos', 'spec.names.plural: Invalid value: "Foos": a DNS-1035 label'],
    ['spec.names.shortNames', ['ok', 'N0'], 'spec.names.shortNames[1]: Invalid value: "N0"'],
    ['spec.names.categories', [''], 'spec.names.categories[0]: Required value'],
    ['spec.versions', [], 'spec.versions: Invalid value: []: must have exactly one version marked as storage version'],
    ['spec.versions', [stored, { ...open, storage: true }], 'must have exactly one version marked as storage version'],
    [
      'spec.versions',
      [stored, { ...open, name: 'v1' }],
      'spec.versions: Invalid value: ["v1","v1"]: must contain unique version names',
    ],
    [`${V}.served`, false, 'must have at least one version marked as served'],
    [`${V}.name`, 'V 1', 'spec.versions[0].name: Invalid value: "V 1": a DNS-1035 label'],
    [`${V}.schema`, undefined, 'spec.versions[0].schema.openAPIV3Schema: Required value'],
    [
      `${V}.schema.openAPIV3Schema.properties.spec.properties.color`,
      {},
      'spec.validation.openAPIV3Schema.properties[spec].properties[color].type: Required value',
    ],
    ['spec.preserveUnknownFields', true, 'spec.preserveUnknownFields: Invalid value: true: cannot set to true'],
    [
      'spec.conversion.strategy',
      'Webhook',
      'spec.conversion.strategy: Forbidden: conversion webhooks are not supported',
    ],
    ['spec.conversion.strategy', 'Magic', 'spec.conversion.strategy: Unsupported value: "Magic"'],
    ['spec.conversion.webhook', {}, 'spec.conversion.webhook: Forbidden: should not be set'],
    [
      `${V}.deprecationWarning`,
      'old',
      'spec.versions[0].deprecationWarning: Invalid value: "old": can only be set for deprecated versions',
    ],
    [
      `${V}.deprecationWarning`,
      'a\nb',
      'must only contain printable UTF-8 characters; non-printable character found at index 1',
    ],
    [
      `${V}.additionalPrinterColumns`,
      [{ name: 'A', type: 'string' }],
      'spec.additionalPrinterColumns[0].jsonPath: Required value',
    ],
    [
      `${V}.additionalPrinterColumns`,
      [{ name: 'A', type: 'text', jsonPath: '.a' }],
      'spec.additionalPrinterColumns[0].type: Invalid value: "text": must be one of boolean,date,integer,number,string',
    ],
    [
      `${V}.additionalPrinterColumns`,
      [{ name: 'A', type: 'string', jsonPath: 'a' }],
      'must be a simple json path starting with .',
    ],
    [
      `${V}.additionalPrinterColumns`,
      [{ name: 'A', type: 'string', jsonPath: '.a[' }],
      'spec.additionalPrinterColumns[0].jsonPath: Invalid value: ".a[": is an invalid path',
    ],
    [
      `${V}.additionalPrinterColumns`,
      [{ type: 'string', jsonPath: '.a', format: 'x' }],
      'spec.additionalPrinterColumns[0].format',
    ],
    [
      `${V}.subresources`,
      { scale: { specReplicasPath: '.spec.n', statusReplicasPath: '.spec.n' } },
      'spec.subresources.scale.statusReplicasPath: Invalid value: ".spec.n": should be a json path under .status',
    ],
    [
      `${V}.subresources`,
      { scale: { statusReplicasPath: '.status.n' } },
      'spec.subresources.scale.specReplicasPath: Required value',
    ],
    [
      `${V}.subresources`,
      { scale: { specReplicasPath: '.spec.n', statusReplicasPath: '.status.n', labelSelectorPath: '.x' } },
      'should be a json path under either .spec or .status',
    ],
    [
      `${V}.selectableFields`,
      [{ jsonPath: '.spec.nothing' }],
      'spec.selectableFields[0].jsonPath: Invalid value: ".spec.nothing": is an invalid path',
    ],
    [`${V}.selectableFields`, [{ jsonPath: '.spec.constructor' }], 'is an invalid path'],
    [`${V}.selectableFields`, [{ jsonPath: '.spec.list' }], 'must point to a field of type string, boolean or integer'],
    [`${V}.selectableFields`, [{ jsonPath: '.metadata.name' }], 'must not point to fields in metadata'],
    [
      `${V}.selectableFields`,
      [{ jsonPath: '.spec.color' }, { jsonPath: '.spec.color' }],
      'spec.selectableFields[1].jsonPath: Duplicate value: ".spec.color"',
    ],
    [`${V}.selectableFields`, [{}], 'spec.selectableFields[0].jsonPath: Required value'],
  ])('refuses %s = %j', (path, value, expected) => {
    expect(sentences(changed(path, value)).join('\n')).toContain(expected);
  });

  it('names the version where versions differ', () => {
    const columns = [{ name: 'A', type: 'string' }];
    const object = changed('spec.versions', [stored, { ...open, additionalPrinterColumns: columns }]);
    expect(sentences(object)).toEqual(['spec.versions[1].additionalPrinterColumns[0].jsonPath: Required value']);
  });

  it.each(['unapproved, experimental', 'https://github.com/kubernetes/kubernetes/pull/1'])(
    'accepts a protected group that is approved by %s',
    (approval) => {
      const object = changed('spec.group', 'x.k8s.io', changed('metadata.name', 'foos.x.k8s.io'));
      object.metadata.annotations = { 'api-approved.kubernetes.io': approval };
      expect(sentences(object)).toEqual([]);
      object.metadata.annotations = { 'api-approved.kubernetes.io': 'because' };
      expect(sentences(object)).toHaveLength(1);
    },
  );

  it.each<[string, unknown, string]>([
    ['spec.scope', 'Cluster', 'spec.scope: Invalid value: "Cluster": field is immutable'],
    ['spec.names.kind', 'Bar', 'spec.names.kind: Invalid value: "Bar": field is immutable'],
    ['spec.names.plural', 'bars', 'spec.names.plural: Invalid value: "bars": field is immutable'],
    ['spec.group', 'other.com', 'spec.group: Invalid value: "other.com": field is immutable'],
    [
      'spec.versions',
      [{ ...open, storage: true }],
      'status.storedVersions[0]: Invalid value: "v1": missing from spec.versions; v1 was previously a storage version',
    ],
  ])('refuses to change %s to %j', (path, value, expected) => {
    expect(sentences(changed(path, value), valid())).toEqual([expect.stringContaining(expected)]);
  });

  it('lets a definition that was never established change its kind', () => {
    const old = changed('status.conditions', [{ type: 'Established', status: 'False' }]);
    expect(sentences(changed('spec.names.kind', 'Bar'), old)).toEqual([]);
    expect(sentences(changed('spec.names.shortNames', ['f']), valid())).toEqual([]);
  });

  it('looks at a schema when it is new, and not again where an update left it as it was', () => {
    const wrong = changed(`${V}.schema.openAPIV3Schema`, { type: 'object', properties: { a: {} } });
    const updated = { ...wrong, metadata: { ...wrong.metadata, labels: { a: 'b' } } };
    expect(sentences(updated, wrong)).toEqual([]);
    expect(sentences(structuredClone(updated), wrong)).not.toEqual([]);
  });

  it('survives anything', () => {
    for (const spec of [undefined, {}, { versions: [{}] }]) {
      expect(sentences({ ...valid(), spec } as KubeObject).length).toBeGreaterThan(0);
    }
  });
});

describe('the strategy of definitions', () => {
  const strategy = customResourceDefinitionStrategy;

  it('completes names and conversion', () => {
    const object = changed('spec.names', { plural: 'foos', kind: 'Foo' }, changed('spec.conversion', undefined));
    strategy.applyDefaults?.(object);
    expect((object as CustomResourceDefinition).spec).toMatchObject({
      names: { singular: 'foo', listKind: 'FooList' },
      conversion: { strategy: 'None' },
    });
  });

  it('starts with an empty status, the stored version and the finalizer', () => {
    const object = valid();
    strategy.prepareForCreate?.(object);
    expect(object.status).toEqual({ storedVersions: ['v1'] });
    expect(object.metadata.finalizers).toEqual([CLEANUP_FINALIZER]);
  });

  it('remembers every version that objects were stored in', () => {
    const object = changed('spec.versions', [
      { ...stored, storage: false },
      { ...open, storage: true },
    ]);
    strategy.prepareForUpdate?.(object, valid());
    expect((object as CustomResourceDefinition).status?.storedVersions).toEqual(['v1', 'v2']);
  });

  it('puts back a finalizer that a replace forgot, but not while it terminates', () => {
    const object = valid();
    strategy.prepareForUpdate?.(object, valid());
    expect(object.metadata.finalizers).toEqual([CLEANUP_FINALIZER]);
    const leaving = changed('metadata.deletionTimestamp', '2026-01-01T00:00:00Z');
    strategy.prepareForUpdate?.(leaving, valid());
    expect(leaving.metadata.finalizers).toBeUndefined();
  });
});
