import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../../api/meta.ts';
import type { ResourceDefinition } from '../../api/resource.ts';
import type { Schema } from '../../api/schema.ts';
import { definitionsOf } from '../custom-resources/definitions.ts';
import { stored } from '../storage/model.ts';
import { decodeStored } from './codec.ts';
import { readStored, RecentObjects } from './recent-objects.ts';
import { builtinOf, TestRegistry, userContext } from './registry.fixture.ts';

const PODS = builtinOf('', 'pods');
const MAPS = builtinOf('', 'configmaps');

const map = (name: string, data: Record<string, string>): KubeObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: 'ns' },
  data,
});

const state = (object: KubeObject, revision = 7) => stored('ns/a', revision, JSON.stringify(object));

describe('an object that was just written', () => {
  it('is read without being parsed, at its revision, but only as what it was written as', () => {
    const [object, at] = [map('a', { x: '1' }), state(map('a', { x: '1' }))];
    new RecentObjects().keep(MAPS, at, object);
    expect(readStored(MAPS, at)).toBe(object);
    expect(object.metadata.resourceVersion).toBe('7');
    expect(readStored(PODS, at)).not.toBe(object);
  });

  it('is parsed again when many others were written since, or when it is large', () => {
    const recent = new RecentObjects();
    const [object, at] = [map('a', {}), state(map('a', {}))];
    recent.keep(MAPS, at, object);
    for (let revision = 8; revision < 600; revision++) recent.keep(MAPS, state(object, revision), map('b', {}));
    expect(at.parsed).toBeUndefined();
    expect(readStored(MAPS, at)).toMatchObject({ kind: 'ConfigMap', metadata: { name: 'a' } });
    const large = map('large', { x: 'x'.repeat(100_000) });
    const whole = state(large);
    recent.keep(MAPS, whole, large);
    expect(whole.parsed).toBeUndefined();
  });

  it('is what its text says, whatever was written before, and whoever was given it changes', async () => {
    const registry = await TestRegistry.open();
    const target = { definition: MAPS, namespace: 'ns', name: 'a' };
    const context = userContext();
    const asItIs = (): KubeObject => {
      const at = registry.stored(target);
      if (!at) throw new Error('it is not there');
      expect(at.parsed).toBeDefined();
      expect(readStored(MAPS, at)).toEqual(decodeStored(MAPS, at));
      return decodeStored(MAPS, at);
    };
    const created = await registry.create(context, target, map('a', { x: '1', y: '1' }));
    created['data'] = { forged: 'yes' };
    expect(asItIs()).toMatchObject({ data: { x: '1', y: '1' } });
    const updated = await registry.update(context, target, (current) => {
      (current['data'] as Record<string, string>)['x'] = '2';
      return current;
    });
    (updated['data'] as Record<string, string>)['x'] = 'forged';
    expect(asItIs()).toMatchObject({ data: { x: '2', y: '1' } });
    await expect(
      registry.update(context, target, (current) => {
        current['data'] = 7;
        return current;
      }),
    ).rejects.toThrow();
    expect(asItIs()).toMatchObject({ data: { x: '2', y: '1' } });
    await registry.updateText(context, target, (current) => ({ ...current, data: { x: '2' } }));
    expect(asItIs()['data']).toEqual({ x: '2' });
  });

  it('may be shared by what is made of it, which changes nothing of it', async () => {
    const registry = await TestRegistry.open();
    const target = { definition: MAPS, namespace: 'ns', name: 'a' };
    const context = userContext();
    await registry.create(context, target, map('a', { x: '1' }));
    const before = registry.stored(target);
    const was = JSON.stringify(before && readStored(MAPS, before));
    const { object } = await registry.updateText(context, target, (current) => ({
      ...current,
      binaryData: { y: 'AA==' },
    }));
    expect(object).toMatchObject({ data: { x: '1' }, binaryData: { y: 'AA==' } });
    expect(before && JSON.stringify(readStored(MAPS, before))).toBe(was);
  });

  it('is taken for what its kind has become, though it was written while that changed', async () => {
    const registry = await TestRegistry.open();
    const [before, after] = [things({ old: { type: 'string' } }), things({ fresh: { type: 'string', default: 'd' } })];
    registry.define(after);
    const [context, place] = [userContext(), { namespace: 'ns', name: 'a' }];
    const metadata = { name: 'a', namespace: 'ns' };
    const thing = { apiVersion: 'x.io/v1', kind: 'Thing', metadata, spec: { sub: { old: 'x' } } } as KubeObject;
    await registry.createText(context, { ...place, definition: before }, thing);
    const target = { ...place, definition: after };
    const { object } = await registry.updateText(context, { ...target, subresource: 'status' }, (current) => ({
      ...current,
      status: { n: 1 },
    }));
    expect(object['spec']).toEqual({ sub: { fresh: 'd' } });
  });
});

/** A custom kind whose objects have such fields in `spec.sub`. */
function things(fields: Record<string, Schema>): ResourceDefinition {
  const sub: Schema = { type: 'object', properties: fields };
  const spec: Schema = { type: 'object', properties: { sub } };
  const status: Schema = { type: 'object', properties: { n: { type: 'integer' } } };
  const openAPIV3Schema = { type: 'object', properties: { spec, status } };
  const version = {
    name: 'v1',
    served: true,
    storage: true,
    subresources: { status: {} },
    schema: { openAPIV3Schema },
  };
  const [definition] = definitionsOf({
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'things.x.io', resourceVersion: '1' },
    spec: { group: 'x.io', scope: 'Namespaced', names: { kind: 'Thing', plural: 'things' }, versions: [version] },
  } as KubeObject);
  if (!definition) throw new Error('no such kind');
  return definition;
}
