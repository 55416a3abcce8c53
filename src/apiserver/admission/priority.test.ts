import { describe, expect, it } from 'vitest';
import { attributesOf, pods, priorityClasses } from './attributes.fixture.ts';
import { TestRegistry } from '../registry/registry.fixture.ts';
import { Priority } from './priority.ts';
import { object, pod, refused, specOf } from './plugins.fixture.ts';

describe('Priority', () => {
  async function scene(...classes: [string, number, Record<string, unknown>?][]): Promise<Priority> {
    const registry = await TestRegistry.open();
    for (const [name, value, more] of classes) {
      await registry.put(object('PriorityClass', name, { value, ...more }, ''));
    }
    return new Priority(registry);
  }

  it.each([
    ['no class and no default', scene(), {}, { priority: 0, preemptionPolicy: 'PreemptLowerPriority' }],
    [
      'a class',
      scene(['high', 1000, { preemptionPolicy: 'Never' }]),
      { priorityClassName: 'high' },
      { priority: 1000, preemptionPolicy: 'Never', priorityClassName: 'high' },
    ],
    [
      'the global default',
      scene(['high', 1000], ['std', 5, { globalDefault: true, preemptionPolicy: 'PreemptLowerPriority' }]),
      {},
      { priority: 5, priorityClassName: 'std', preemptionPolicy: 'PreemptLowerPriority' },
    ],
    [
      'the lower of two defaults',
      scene(['a', 9, { globalDefault: true }], ['b', 5, { globalDefault: true }]),
      {},
      { priority: 5, priorityClassName: 'b' },
    ],
    [
      'system-node-critical, stored or not',
      scene(),
      { priorityClassName: 'system-node-critical' },
      { priority: 2_000_001_000, preemptionPolicy: 'PreemptLowerPriority' },
    ],
    ['system-cluster-critical', scene(), { priorityClassName: 'system-cluster-critical' }, { priority: 2_000_000_000 }],
    [
      'the right number given along',
      scene(['high', 1000]),
      { priorityClassName: 'high', priority: 1000 },
      { priority: 1000 },
    ],
  ])('resolves %s', async (_, plugin, spec, expected) => {
    const attributes = attributesOf(pods, pod(spec));
    expect(await refused(plugin, attributes)).toBeUndefined();
    expect(specOf(attributes)).toMatchObject(expected);
  });

  it.each([
    ['an unknown class', { priorityClassName: 'x' }, 'no PriorityClass with name x was found'],
    [
      'another number',
      { priority: 7 },
      'the integer value of priority (7) must not be provided in pod spec; priority admission controller computed 0 from the given PriorityClass name',
    ],
    [
      'another policy',
      { preemptionPolicy: 'Never' },
      'the string value of PreemptionPolicy (Never) must not be provided in pod spec; priority admission controller computed PreemptLowerPriority from the given PriorityClass name',
    ],
  ])('refuses %s', async (_, spec, detail) => {
    const error = await refused(scene(), attributesOf(pods, pod(spec)));
    expect([error?.code, error?.message]).toEqual([403, `pods "p" is forbidden: ${detail}`]);
  });

  it('keeps what it computed when an update leaves it out', async () => {
    const oldObject = pod({ priority: 5, preemptionPolicy: 'Never' });
    const attributes = attributesOf(pods, pod(), { operation: 'UPDATE', oldObject });
    await refused(scene(), attributes);
    expect(specOf(attributes)).toMatchObject({ priority: 5, preemptionPolicy: 'Never' });
  });

  it('allows one global default', async () => {
    const plugin = await scene(['std', 5, { globalDefault: true }]);
    const second = object('PriorityClass', 'other', { value: 1, globalDefault: true }, '');
    const error = await refused(plugin, attributesOf(priorityClasses, second));
    expect(error?.message).toBe(
      'priorityclasses.scheduling.k8s.io "other" is forbidden: PriorityClass std is already marked as default. Only one default can exist',
    );
    const same = object('PriorityClass', 'std', { value: 5, globalDefault: true }, '');
    expect(await refused(plugin, attributesOf(priorityClasses, same, { operation: 'UPDATE' }))).toBeUndefined();
    const plain = object('PriorityClass', 'other', { value: 1 }, '');
    expect(await refused(plugin, attributesOf(priorityClasses, plain))).toBeUndefined();
  });
});
