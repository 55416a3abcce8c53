import { describe, expect, it } from 'vitest';
import { definitionsOf } from './definitions.ts';
import type { CustomResourceDefinition, CustomResourceVersion } from './wire.ts';

function crd(versions: CustomResourceVersion[], metadata: object = {}): CustomResourceDefinition {
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'foos.example.com', ...metadata },
    spec: { group: 'example.com', scope: 'Namespaced', names: { plural: 'foos', kind: 'Foo' }, versions },
  };
}

const version = (name: string, rest: CustomResourceVersion = {}): CustomResourceVersion => ({
  name,
  served: true,
  storage: name === 'v1',
  schema: { openAPIV3Schema: { type: 'object' } },
  ...rest,
});

describe('definitionsOf', () => {
  it('makes one definition per served version, the stored one first', () => {
    const definitions = definitionsOf(
      crd([version('v1alpha1'), version('v1beta1', { served: false }), version('v1'), version('v2')]),
    );
    expect(definitions.map((each) => each.version)).toEqual(['v1', 'v1alpha1', 'v2']);
    expect(new Set(definitions.map((each) => `${each.plural}.${each.group}`))).toEqual(new Set(['foos.example.com']));
  });

  it('derives the names that were left out', () => {
    expect(definitionsOf(crd([version('v1')]))[0]).toMatchObject({
      group: 'example.com',
      plural: 'foos',
      singular: 'foo',
      kind: 'Foo',
      listKind: 'FooList',
      namespaced: true,
      custom: true,
      hasStatus: false,
      hasGeneration: true,
      subresources: [],
      columns: [],
      selectableFields: [],
    });
  });

  it('takes over subresources, columns and selectable fields', () => {
    const [definition] = definitionsOf(
      crd([
        version('v1', {
          subresources: { status: {}, scale: { specReplicasPath: '.spec.n', statusReplicasPath: '.status.n' } },
          additionalPrinterColumns: [{ name: 'Color', type: 'string', jsonPath: '.spec.color', priority: 1 }],
          selectableFields: [{ jsonPath: '.spec.color' }],
        }),
      ]),
    );
    expect(definition).toMatchObject({
      hasStatus: true,
      scale: { specReplicasPath: '.spec.n', statusReplicasPath: '.status.n' },
      columns: [{ name: 'Color', type: 'string', jsonPath: '.spec.color', priority: 1 }],
      selectableFields: ['spec.color'],
      subresources: [
        { name: 'scale', group: 'autoscaling', version: 'v1', kind: 'Scale' },
        { name: 'status', verbs: ['get', 'patch', 'update'] },
      ],
    });
    expect(definition?.scale).not.toHaveProperty('labelSelectorPath');
  });

  it('gives every object its metadata, on which authors can only restrict the name', () => {
    const openAPIV3Schema = {
      type: 'object',
      required: ['spec'],
      properties: {
        metadata: {
          type: 'object',
          required: ['name'],
          properties: { name: { type: 'string', maxLength: 5 }, labels: { type: 'string' } },
        },
        spec: { type: 'object' },
      },
    } as const;
    const [definition] = definitionsOf(crd([version('v1', { schema: { openAPIV3Schema } })]));
    const { properties, required } = definition?.schema ?? {};
    expect(required).toEqual(['spec']);
    expect(Object.keys(properties ?? {}).sort()).toEqual(['apiVersion', 'kind', 'metadata', 'spec']);
    expect(properties?.['metadata']).toMatchObject({
      required: ['name'],
      properties: {
        name: { type: 'string', maxLength: 5 },
        labels: { type: 'object' },
        finalizers: { 'x-kubernetes-list-type': 'set' },
      },
    });
  });

  it('takes no new objects once it terminates', () => {
    const [definition] = definitionsOf(crd([version('v1')], { deletionTimestamp: '2026-01-01T00:00:00Z' }));
    expect(definition?.verbs).not.toContain('create');
    expect(definition?.verbs).toContain('delete');
  });

  it('warns of deprecated versions', () => {
    const [plain, custom] = definitionsOf(
      crd([version('v1', { deprecated: true }), version('v2', { deprecated: true, deprecationWarning: 'use v3' })]),
    );
    expect(plain?.deprecation).toBe('example.com/v1 Foo is deprecated');
    expect(custom?.deprecation).toBe('use v3');
  });
});
