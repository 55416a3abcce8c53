import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { HOST_MODEL_PREFIX } from '../../api/kubevirt/node-labels.ts';
import { virtualMachineInstanceMigrations as migrations } from '../../kube/kubevirt-resources.ts';
import { ControlScene } from '../control.fixture.ts';
import { nodes } from '../resources.ts';
import { makeMigrations, PlayedAgents } from './played-agents.fixture.ts';

/** Guests that have the very processor of their node. */

const scene = new ControlScene(makeMigrations);
const agents = new PlayedAgents(scene);
const REASON = 'NoSuitableNodesForHostModelMigration';

const hasProcessor = (node: string, model: string) =>
  scene.patch(nodes, node, { metadata: { labels: { [HOST_MODEL_PREFIX + model]: 'true' } } });
const toldOf = async (guest: string): Promise<string[]> =>
  (await scene.events()).filter((event) => event.startsWith(`${guest} `) && event.includes(REASON));

beforeAll(async () => {
  await scene.start();
  await agents.addNodes('node-a', 'node-b', 'node-c');
  await hasProcessor('node-a', 'Cooperlake');
  await hasProcessor('node-b', 'Penryn');
});
afterAll(() => scene.stop());

describe('a guest with the processor of its node', () => {
  it('is said to fit nowhere where no other node has that processor, once', async () => {
    await agents.addGuest('web');
    await agents.move('move', 'web');
    await agents.reaches('move', 'Scheduling');
    await scene.until(async () => expect(await toldOf('web')).toHaveLength(1));
    await scene.patch(migrations, 'move', { metadata: { annotations: { look: 'again' } } });
    await scene.pass(3000, 500);
    expect(await toldOf('web')).toHaveLength(1);
  });

  it('is said nothing of where a node lacks anything else', async () => {
    await hasProcessor('node-c', 'Cooperlake');
    await agents.addGuest('shop');
    await agents.move('other', 'shop', { addedNodeSelector: { disk: 'fast' } });
    await agents.reaches('other', 'Scheduling');
    await scene.until(async () =>
      expect((await scene.events()).join()).toContain('for VMI [shop/shop] is currently unschedulable'),
    );
    expect(await toldOf('shop')).toEqual([]);
  });
});
