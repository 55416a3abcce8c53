import { describe, expect, it } from 'vitest';
import type { ResourceDefinition } from '../../resource.ts';
import type { Schema } from '../../schema.ts';
import { coreDefinitions } from './definitions.ts';

/** Every named message below a definition, once. */
function messages(definitions: readonly ResourceDefinition[]): Map<string, Schema> {
  const found = new Map<string, Schema>();
  const visit = (schema: Schema): void => {
    if (schema.name !== undefined) {
      if (found.has(schema.name)) return;
      found.set(schema.name, schema);
    }
    for (const property of Object.values(schema.properties ?? {})) visit(property);
    if (schema.items) visit(schema.items);
    if (typeof schema.additionalProperties === 'object') visit(schema.additionalProperties);
  };
  for (const definition of definitions) visit(definition.schema);
  return found;
}

describe('coreDefinitions', () => {
  it('serves these resources', () => {
    expect(coreDefinitions.map((definition) => definition.plural)).toEqual([
      'configmaps',
      'endpoints',
      'events',
      'limitranges',
      'namespaces',
      'nodes',
      'persistentvolumeclaims',
      'persistentvolumes',
      'pods',
      'podtemplates',
      'replicationcontrollers',
      'resourcequotas',
      'secrets',
      'serviceaccounts',
      'services',
    ]);
  });

  it.each(coreDefinitions.map((each) => [each.plural, each] as const))('%s is complete', (_plural, definition) => {
    expect(definition.group).toBe('');
    expect(definition.version).toBe('v1');
    expect(definition.columns.filter((column) => column.format === 'name')).toHaveLength(1);
    expect(definition.columns.every((column) => column.cell !== undefined)).toBe(true);
    const hasStatus = definition.subresources?.some((subresource) => subresource.name === 'status') ?? false;
    expect(hasStatus).toBe(definition.hasStatus);
  });

  it('begins every table but that of events with the name', () => {
    const others = coreDefinitions.filter((definition) => definition.columns[0]?.name !== 'Name');
    expect(others.map((definition) => definition.plural)).toEqual(['events']);
  });
});

describe('schemas', () => {
  const all = [...messages(coreDefinitions)];

  it('describes a good part of core/v1', () => {
    expect(all.filter(([name]) => name.startsWith('io.k8s.api.core.v1.')).length).toBeGreaterThan(190);
  });

  it.each(all)('%s has sound fields', (_name, schema) => {
    const properties = schema.properties ?? {};
    const numbers = Object.entries(properties)
      .filter(([field]) => field !== 'apiVersion' && field !== 'kind')
      .map(([field, property]) => [field, `${property.embedded ?? ''}/${property.protobuf}`]);
    const numbered = numbers.filter(([, number]) => number !== '/undefined');
    expect(new Set(numbered.map(([, number]) => number)).size).toBe(numbered.length);
    for (const field of schema.required ?? []) expect(Object.keys(properties)).toContain(field);
    for (const property of Object.values(properties)) {
      const keys = property['x-kubernetes-list-map-keys'] ?? [];
      const mergeKey = property['x-kubernetes-patch-merge-key'];
      const inner = Object.keys(property.items?.properties ?? {});
      for (const key of keys) expect(inner).toContain(key);
      if (mergeKey !== undefined) expect(inner).toContain(mergeKey);
    }
  });

  const numbers: [message: string, field: string, protobuf: number, embedded: number | undefined][] = [
    ['Container', 'imagePullPolicy', 14, undefined],
    ['Container', 'startupProbe', 22, undefined],
    ['EphemeralContainer', 'image', 2, 1],
    ['EphemeralContainer', 'targetContainerName', 2, undefined],
    ['Volume', 'name', 1, undefined],
    ['Volume', 'persistentVolumeClaim', 10, 2],
    ['Probe', 'httpGet', 2, 1],
    ['Probe', 'periodSeconds', 4, undefined],
    ['ConfigMapKeySelector', 'name', 1, 1],
    ['ConfigMapKeySelector', 'key', 2, undefined],
    ['PersistentVolumeSpec', 'csi', 22, 2],
    ['PersistentVolumeSpec', 'claimRef', 4, undefined],
    ['PodSpec', 'tolerations', 22, undefined],
    ['PodStatus', 'podIPs', 12, undefined],
    ['NodeSpec', 'taints', 5, undefined],
    ['ServicePort', 'targetPort', 4, undefined],
    ['Secret', 'stringData', 4, undefined],
  ];
  it.each(numbers)('%s.%s has number %d', (name, field, protobuf, embedded) => {
    const property = new Map(all).get(`io.k8s.api.core.v1.${name}`)?.properties?.[field];
    expect(property?.protobuf).toBe(protobuf);
    expect(property?.embedded).toBe(embedded);
  });

  const lists: [message: string, field: string, keys: string[] | undefined, strategy: string | undefined][] = [
    ['PodSpec', 'containers', ['name'], 'merge'],
    ['PodSpec', 'volumes', ['name'], 'merge,retainKeys'],
    ['PodSpec', 'tolerations', undefined, undefined],
    ['Container', 'ports', ['containerPort', 'protocol'], 'merge'],
    ['Container', 'env', ['name'], 'merge'],
    ['Container', 'volumeMounts', ['mountPath'], 'merge'],
    ['Container', 'command', undefined, undefined],
    ['ServiceSpec', 'ports', ['port', 'protocol'], 'merge'],
    ['NodeSpec', 'taints', undefined, undefined],
    ['NodeStatus', 'addresses', ['type'], 'merge'],
    ['PodStatus', 'conditions', ['type'], 'merge'],
    ['PodStatus', 'hostIPs', undefined, 'merge'],
  ];
  it.each(lists)('%s.%s merges by %j with %s', (name, field, keys, strategy) => {
    const property = new Map(all).get(`io.k8s.api.core.v1.${name}`)?.properties?.[field];
    expect(property?.['x-kubernetes-list-map-keys']).toEqual(keys);
    expect(property?.['x-kubernetes-patch-strategy']).toBe(strategy);
  });
});
