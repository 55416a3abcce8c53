import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { HOST_MODEL_PREFIX } from '../../api/kubevirt/node-labels.ts';
import { virtualMachineInstanceMigrations as migrations } from '../../kube/kubevirt-resources.ts';
import { ControlScene } from '../control.fixture.ts';
import { nodes } from '../resources.ts';
import { MigrationLeftovers } from './migration-leftovers.ts';
import { makeMigrations, PlayedAgents } from './played-agents.fixture.ts';
import { PlayedPair } from './played-pair.fixture.ts';

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

describe('a guest that goes to another cluster', () => {
  const sceneOf = (): ControlScene => new ControlScene(makeMigrations, (context) => new MigrationLeftovers(context));
  const [here, there] = [sceneOf(), sceneOf()];
  const PROCESSOR = {
    'cpu-vendor.node.kubevirt.io/Intel': 'true',
    [`${HOST_MODEL_PREFIX}Cooperlake`]: 'true',
    'cpu-feature.node.kubevirt.io/vmx': 'true',
  };
  const NEEDS = { ...PROCESSOR, 'machine-type.node.kubevirt.io/pc-q35-7.1': 'true' };

  beforeAll(async () => {
    for (const each of [here, there]) {
      await each.start();
      await new PlayedAgents(each).addNodes('node-a', 'node-b');
    }
    const features = { 'host-model-required-features.node.kubevirt.io/vmx': 'true' };
    await here.patch(nodes, 'node-a', { metadata: { labels: { ...NEEDS, ...features } } });
  });
  afterAll(async () => {
    for (const each of [here, there]) await each.stop();
  });

  /** A pair whose target pod is there. */
  async function pairOf(name: string): Promise<PlayedPair> {
    const pair = new PlayedPair(
      name,
      { agents: new PlayedAgents(here), guest: name, move: name },
      { agents: new PlayedAgents(there), guest: name, move: name },
    );
    await pair.source.agents.addGuest(name);
    await pair.source.agents.says(name, { machine: { type: 'pc-q35-7.1' } });
    await pair.addReceiver();
    await pair.send();
    await pair.receive();
    await pair.measure();
    await pair.until(async () => expect((await pair.find(pair.target))?.status?.phase).toBe('Scheduling'));
    return pair;
  }

  const unfitness = async (pair: PlayedPair): Promise<string | undefined> =>
    (await pair.find(pair.target))?.status?.conditions?.find(({ type }) => type === 'migrationTargetPodUnschedulable')
      ?.message;

  it.each([
    ['the processor', 'lost', {}],
    ['the machine type', 'old', PROCESSOR],
  ])('waits for a node while none has %s that it has', async (_what, name, labels) => {
    await there.patch(nodes, 'node-b', { metadata: { labels } });
    const pair = await pairOf(name);
    const pod = await pair.target.agents.targetPod(pair.target.move);
    expect(pod.spec).toMatchObject({ nodeSelector: NEEDS });
    expect(await unfitness(pair)).toMatch(/^node-a: .*selector.*; node-b: .*selector/);
    await here.delete(migrations, name);
    await pair.until(async () => expect(await pair.find(pair.source)).toBeUndefined());
  });

  it('goes where all of it is', async () => {
    await there.patch(nodes, 'node-b', { metadata: { labels: NEEDS } });
    const pair = await pairOf('fit');
    expect(await unfitness(pair)).toBeUndefined();
    await pair.target.agents.runTarget(pair.target.move);
    await pair.copy();
    await pair.take();
    await pair.give();
    await pair.reach('Succeeded', 'Succeeded');
  });
});
