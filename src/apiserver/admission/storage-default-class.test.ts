import { describe, expect, it } from 'vitest';
import { attributesOf, claims } from './attributes.fixture.ts';
import { TestRegistry } from '../registry/registry.fixture.ts';
import { StorageDefaultClass } from './storage-default-class.ts';
import { object, refused, specOf } from './plugins.fixture.ts';

describe('StorageDefaultClass', () => {
  const claim = async (spec: Record<string, unknown> = {}) => object('PersistentVolumeClaim', 'c', { spec });
  async function scene(
    ...classes: [name: string, created: string, annotation?: string][]
  ): Promise<StorageDefaultClass> {
    const registry = await TestRegistry.open();
    for (const [name, creationTimestamp, annotation] of classes) {
      const made = object('StorageClass', name, {}, '');
      made.metadata.creationTimestamp = creationTimestamp;
      if (annotation) made.metadata.annotations = { [annotation]: 'true' };
      await registry.put(made);
    }
    return new StorageDefaultClass(registry);
  }
  const IS_DEFAULT = 'storageclass.kubernetes.io/is-default-class';
  const BETA = 'storageclass.beta.kubernetes.io/is-default-class';

  it.each([
    ['without classes', scene(), {}, undefined],
    ['without a default', scene(['a', '2026-01-01T00:00:00Z']), {}, undefined],
    ['with a default', scene(['a', '2026-01-01T00:00:00Z', IS_DEFAULT]), {}, 'a'],
    ['with a default of old', scene(['a', '2026-01-01T00:00:00Z', BETA]), {}, 'a'],
    [
      'with several: the newest',
      scene(['a', '2026-01-01T00:00:00Z', IS_DEFAULT], ['b', '2026-01-02T00:00:00Z', IS_DEFAULT]),
      {},
      'b',
    ],
    [
      'with several of one age: the first by name',
      scene(['b', '2026-01-01T00:00:00Z', IS_DEFAULT], ['a', '2026-01-01T00:00:00Z', IS_DEFAULT]),
      {},
      'a',
    ],
    ['with one named', scene(['a', '2026-01-01T00:00:00Z', IS_DEFAULT]), { storageClassName: 'z' }, 'z'],
    ['with none wanted', scene(['a', '2026-01-01T00:00:00Z', IS_DEFAULT]), { storageClassName: '' }, ''],
  ])('a claim %s', async (_, plugin, spec, expected) => {
    const attributes = attributesOf(claims, await claim(spec));
    await refused(plugin, attributes);
    expect((specOf(attributes) as { storageClassName?: string }).storageClassName).toBe(expected);
  });

  it('respects the annotation that came before the field', async () => {
    const annotated = await claim();
    annotated.metadata.annotations = { 'volume.beta.kubernetes.io/storage-class': 'old' };
    const attributes = attributesOf(claims, annotated);
    await refused(scene(['a', '2026-01-01T00:00:00Z', IS_DEFAULT]), attributes);
    expect(specOf(attributes)).toEqual({});
  });
});
