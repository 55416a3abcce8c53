import { describe, expect, it } from 'vitest';
import type { KubeObject, ObjectMeta } from '../../api/meta.ts';
import { ApiError } from '../../api/status.ts';
import { TestRegistry, userContext } from '../registry/registry.fixture.ts';
import { bindPod } from './binding.ts';

const NOW_MS = Date.UTC(2026, 2, 1, 12, 0, 0);

async function scene(more: { metadata?: ObjectMeta; spec?: object; status?: object } = {}): Promise<TestRegistry> {
  const registry = await TestRegistry.open();
  await registry.put({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'a', namespace: 'ns', ...more.metadata },
    spec: { containers: [{ name: 'a', image: 'b' }], ...more.spec },
    status: { phase: 'Pending', ...more.status },
  });
  return registry;
}

function bind(registry: TestRegistry, metadata: ObjectMeta = {}, target: object = { kind: 'Node', name: 'n1' }) {
  const binding: KubeObject = { apiVersion: 'v1', kind: 'Binding', metadata: { name: 'a', ...metadata }, target };
  return bindPod({ registry, context: userContext(), namespace: 'ns', name: 'a', binding, nowMs: NOW_MS });
}

async function failure(promise: Promise<unknown>): Promise<[number, string]> {
  const error = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(ApiError);
  return [(error as ApiError).code, (error as ApiError).message];
}

const stored = (registry: TestRegistry) => registry.view('pods').get('ns', 'a') as KubeObject & Record<string, unknown>;

describe('binding', () => {
  it('sets the node and the condition, and copies annotations and labels', async () => {
    const registry = await scene({ metadata: { annotations: { keep: '1', both: 'old' }, labels: { app: 'db' } } });
    await expect(
      bind(registry, { annotations: { both: 'new', more: '2' }, labels: { zone: 'z' } }),
    ).resolves.toMatchObject({ status: 'Success', code: 201 });
    expect(stored(registry)).toMatchObject({
      metadata: { annotations: { keep: '1', both: 'new', more: '2' }, labels: { app: 'db', zone: 'z' } },
      spec: { nodeName: 'n1', containers: [{ name: 'a' }] },
      status: {
        phase: 'Pending',
        conditions: [
          { type: 'PodScheduled', status: 'True', lastProbeTime: null, lastTransitionTime: '2026-03-01T12:00:00Z' },
        ],
      },
    });
    expect(registry.log[0]).toMatchObject({ target: { subresource: 'binding' }, context: { isAdmitted: true } });
  });

  it('replaces a False PodScheduled condition', async () => {
    const registry = await scene({
      status: { conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: 'no' }] },
    });
    await bind(registry);
    const { conditions } = stored(registry)['status'] as { conditions: object[] };
    expect(conditions).toEqual([
      { type: 'PodScheduled', status: 'True', lastProbeTime: null, lastTransitionTime: '2026-03-01T12:00:00Z' },
    ]);
  });

  it.each([
    [
      'a pod that has a node',
      { spec: { nodeName: 'n0' } },
      'Operation cannot be fulfilled on pods/binding "a": pod a is already assigned to node "n0"',
    ],
    [
      'a terminating pod',
      { metadata: { deletionTimestamp: '2026-03-01T11:00:00Z' } },
      'Operation cannot be fulfilled on pods/binding "a": pod a is being deleted, cannot be assigned to a host',
    ],
    [
      'a pod behind scheduling gates',
      { spec: { schedulingGates: [{ name: 'g' }] } },
      'Operation cannot be fulfilled on pods/binding "a": pod a has non-empty .spec.schedulingGates',
    ],
  ])('refuses %s with 409', async (_, more, message) => {
    expect(await failure(bind(await scene(more)))).toEqual([409, message]);
  });

  it('binds once when two schedulers race', async () => {
    const registry = await scene();
    const outcomes = await Promise.allSettled(['n1', 'n2', 'n3'].map((name) => bind(registry, {}, { name })));
    expect(outcomes.filter((each) => each.status === 'fulfilled')).toHaveLength(1);
  });

  it('takes uid and resourceVersion as preconditions', async () => {
    const registry = await scene();
    expect((await failure(bind(registry, { uid: 'other' })))[0]).toBe(409);
    expect((await failure(bind(registry, { resourceVersion: '1' })))[0]).toBe(409);
    await bind(registry, { uid: 'uid-a' });
  });

  it('refuses bad bindings', async () => {
    const registry = await scene();
    expect(await failure(bind(registry, { name: 'b' }))).toEqual([
      400,
      'name in URL does not match name in Binding object',
    ]);
    expect(await failure(bind(registry, {}, { kind: 'Node' }))).toEqual([
      422,
      'Binding "a" is invalid: target.name: Required value',
    ]);
    expect(await failure(bind(registry, {}, { kind: 'Pod', name: 'n1' }))).toEqual([
      422,
      'Binding "a" is invalid: target.kind: Unsupported value: "Pod": supported values: "Node", "<empty>"',
    ]);
    expect((await failure(bind(await TestRegistry.open())))[0]).toBe(404);
  });
});
