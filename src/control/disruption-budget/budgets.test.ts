import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { EvictionStrategy } from '../../api/kubevirt/eviction-strategy.ts';
import { virtualMachineInstances as guests } from '../../kube/kubevirt-resources.ts';
import { ControlScene, NAMESPACE } from '../control.fixture.ts';
import { disruptionBudgets, pods, resourceQuotas } from '../resources.ts';
import { VirtualMachineInstances } from '../vmi/virtual-machine-instances.ts';

/** The first pod of a guest, where nobody but its own controller looks after it. */

const scene = new ControlScene((context) => new VirtualMachineInstances({ ...context, launcherImage: 'launcher:1' }));

beforeAll(() => scene.start());
afterAll(() => scene.stop());
beforeEach(() => void (scene.writes.length = 0));

async function started(name: string, evictionStrategy: EvictionStrategy): Promise<void> {
  const domain = { devices: {}, memory: { guest: '64Mi' } };
  await scene.create(guests, { metadata: { name }, spec: { domain, evictionStrategy } });
  await scene.until(async () => {
    const found = await scene.list(pods);
    expect(found.some(({ metadata }) => metadata.ownerReferences?.[0]?.name === name)).toBe(true);
  });
}

const made = (): string[] =>
  scene.writes.filter((write) => write.startsWith('POST')).map((write) => write.split('/').at(-1) ?? '');

describe('the first pod of a guest', () => {
  it.each<EvictionStrategy>(['LiveMigrate', 'External'])('has a budget before it is there: %s', async (strategy) => {
    await started(strategy.toLowerCase(), strategy);
    expect(made()).toEqual(['poddisruptionbudgets', 'pods']);
  });

  it('has none where the guest may be evicted', async () => {
    await started('none', 'None');
    expect(made()).toEqual(['pods']);
  });

  it('is there also where the namespace may have no more budgets', async () => {
    const hard = { 'count/poddisruptionbudgets.policy': '0' };
    await scene.client.deleteCollection(disruptionBudgets, { namespace: NAMESPACE }, scene.signal);
    await scene.create(resourceQuotas, { metadata: { name: 'none' }, spec: { hard } });
    await scene.patch(
      resourceQuotas,
      'none',
      { status: { hard, used: { 'count/poddisruptionbudgets.policy': '0' } } },
      'status',
    );
    await started('over-quota', 'LiveMigrate');
    expect(made()).toEqual(['poddisruptionbudgets', 'pods']);
    expect(await scene.list(disruptionBudgets)).toEqual([]);
    await scene.until(async () =>
      expect((await scene.events()).join()).toContain('Error creating a PodDisruptionBudget'),
    );
  });
});
