import { describe, expect, it } from 'vitest';
import type { JsonObject, KubeObject } from '../../api/meta.ts';
import { TestRegistry } from '../registry/registry.fixture.ts';
import { attributesOf, claims, pods } from './attributes.fixture.ts';
import { LimitRanger } from './limit-ranger.ts';
import { object, pod, refused } from './plugins.fixture.ts';

async function plugin(...limits: JsonObject[]): Promise<LimitRanger> {
  const registry = await TestRegistry.open();
  await registry.put(object('LimitRange', 'limits', { spec: { limits } }));
  return new LimitRanger(registry);
}

const one = (resources: JsonObject): KubeObject => pod({ containers: [{ name: 'main', image: 'x', resources }] });

async function refusalOf(limit: JsonObject, candidate: KubeObject): Promise<string | undefined> {
  const definition = candidate.kind === 'Pod' ? pods : claims;
  return (await refused(plugin(limit), attributesOf(definition, candidate)))?.message;
}

describe('LimitRanger', () => {
  const defaults = { type: 'Container', default: { cpu: '1' }, defaultRequest: { cpu: '500m', memory: '1Gi' } };

  it('fills what containers do not say, and says so', async () => {
    const candidate = pod({
      containers: [{ name: 'main', resources: { requests: { memory: '2Gi' } } }],
      initContainers: [{ name: 'first', resources: { limits: { cpu: '2' }, requests: { cpu: '2', memory: '1Mi' } } }],
    });
    expect(await refused(plugin(defaults), attributesOf(pods, candidate))).toBeUndefined();
    expect(candidate).toMatchObject({
      metadata: {
        annotations: {
          'kubernetes.io/limit-ranger':
            'LimitRanger plugin set: cpu request for container main; cpu limit for container main',
        },
      },
      spec: {
        containers: [{ resources: { requests: { memory: '2Gi', cpu: '500m' }, limits: { cpu: '1' } } }],
        initContainers: [{ resources: { limits: { cpu: '2' }, requests: { cpu: '2', memory: '1Mi' } } }],
      },
    });
  });

  it.each<[string, JsonObject, JsonObject, string | undefined]>([
    ['within', { max: { cpu: '2' }, min: { cpu: '1' } }, { requests: { cpu: '1' }, limits: { cpu: '2' } }, undefined],
    ['without a limit', { max: { cpu: '2' } }, {}, 'maximum cpu usage per Container is 2.  No limit is specified'],
    ['above', { max: { cpu: '2' } }, { limits: { cpu: '3' } }, 'maximum cpu usage per Container is 2, but limit is 3'],
    [
      'below',
      { min: { cpu: '500m' } },
      { requests: { cpu: '100m' } },
      'minimum cpu usage per Container is 500m, but request is 100m',
    ],
    [
      'far apart',
      { maxLimitRequestRatio: { cpu: '2' } },
      { requests: { cpu: '1' }, limits: { cpu: '3' } },
      'cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000',
    ],
  ])('a container %s', async (_what, bounds, resources, expected) => {
    const message = await refusalOf({ type: 'Container', ...bounds }, one(resources));
    expect(message).toBe(expected === undefined ? undefined : `pods "p" is forbidden: ${expected}`);
  });

  it('looks at pods as a whole, and at claims', async () => {
    const two = pod({
      containers: [1, 2].map((cpu) => ({ name: `c${cpu}`, resources: { limits: { cpu: `${cpu}` } } })),
    });
    expect(await refusalOf({ type: 'Pod', max: { cpu: '2' } }, two)).toBe(
      'pods "p" is forbidden: maximum cpu usage per Pod is 2, but limit is 3',
    );
    const claim = object('PersistentVolumeClaim', 'c', { spec: { resources: { requests: { storage: '2Gi' } } } });
    expect(await refusalOf({ type: 'PersistentVolumeClaim', max: { storage: '1Gi' } }, claim)).toBe(
      'persistentvolumeclaims "c" is forbidden: maximum storage usage per PersistentVolumeClaim is 1Gi, but request is 2Gi',
    );
  });

  it('says all that is wrong', async () =>
    expect(
      await refusalOf({ type: 'Container', max: { cpu: '1', memory: '1Gi' } }, one({ limits: { cpu: '2' } })),
    ).toBe(
      'pods "p" is forbidden: [maximum cpu usage per Container is 1, but limit is 2, maximum memory usage per Container is 1Gi.  No limit is specified]',
    ));

  it('leaves pods alone that are there, and other namespaces', async () => {
    const ranger = await plugin(defaults);
    expect(ranger.handles(attributesOf(pods, pod(), { operation: 'UPDATE', oldObject: pod() }))).toBe(false);
    const elsewhere = object('Pod', 'p', { spec: {} }, 'elsewhere');
    expect(ranger.handles(attributesOf(pods, elsewhere))).toBe(false);
  });
});
