import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { EvictionStrategy } from '../../api/kubevirt/eviction-strategy.ts';
import { virtualMachineInstances as guests } from '../../kube/kubevirt-resources.ts';
import { ControlScene, NAMESPACE } from '../control.fixture.ts';
import { PlayedAgents } from '../migration/played-agents.fixture.ts';
import { disruptionBudgets, pods, resourceQuotas } from '../resources.ts';
import { VirtualMachineInstances } from '../vmi/virtual-machine-instances.ts';

/** The first pod of a guest, where nobody but its own controller looks after it. */

const scene = new ControlScene((context) => new VirtualMachineInstances({ ...context, launcherImage: 'launcher:1' }));

const agents = new PlayedAgents(scene);

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

  it('has one before its guest is given to an agent, where only then is known that it can move', async () => {
    const name = 'if-possible';
    await started(name, 'LiveMigrateIfPossible');
    expect(made()).toEqual(['pods']);
    const pod = (await scene.list(pods)).find(({ metadata }) => metadata.ownerReferences?.[0]?.name === name);
    await agents.addNodes('node-a');
    await agents.bind(pod?.metadata.name ?? '', 'node-a');
    await agents.start(pod?.metadata.name ?? '');
    await scene.until(async () => expect((await scene.get(guests, name)).status?.phase).toBe('Scheduled'));
    const writes = scene.writes.map((write) => write.split('/').slice(-2).join('/'));
    const budget = writes.indexOf(`${NAMESPACE}/poddisruptionbudgets`);
    expect(budget).toBeGreaterThan(0);
    expect(writes[budget + 1]).toBe(`${name}/status`);
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
