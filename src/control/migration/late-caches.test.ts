import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { virtualMachineInstanceMigrations as migrations } from '../../kube/kubevirt-resources.ts';
import { ControlScene } from '../control.fixture.ts';
import { makeMigrations, PlayedAgents } from './played-agents.fixture.ts';

/** What the controller has done itself, and not yet heard of, ends no migration. */

const scene = new ControlScene(makeMigrations);
const agents = new PlayedAgents(scene);

beforeAll(async () => {
  await scene.start();
  await agents.addNodes('node-a', 'node-b', 'node-c');
});
afterAll(() => scene.stop());

/** Lets time pass in which the controller looks at the migration again and again. */
async function phaseAfterLooks(name: string): Promise<string | undefined> {
  for (let look = 0; look < 3; look++) {
    await scene.patch(migrations, name, { metadata: { annotations: { look: String(look) } } });
    await scene.pass(1500, 500);
  }
  return (await scene.get(migrations, name)).status?.phase;
}

describe('a controller that hears late', () => {
  it('believes the server that its hand-off is there, and not an older migration of the same guest', async () => {
    await agents.addGuest('web');
    await agents.move('first', 'web');
    await agents.carryOut('first', 'web');
    await agents.move('second', 'web');
    await agents.targetPod('second');
    await scene.settle();
    scene.hold('virtualmachineinstances');
    await agents.runTarget('second', 'node-c');
    await agents.reaches('second', 'PreparingTarget');
    expect(await phaseAfterLooks('second')).toBe('PreparingTarget');
    scene.release('virtualmachineinstances');
    await agents.finish('second', 'web');
  });

  it('counts a guest where it is, and not where its status says that it was', async () => {
    await agents.addGuest('shop');
    const { podUID, epoch } = { podUID: 'pod-c', epoch: 2 };
    const holder = { node: 'node-c', nodeUID: 'uid-of-node-c', podUID };
    await agents.says('shop', { rightToRun: { epoch, holder: null } });
    await agents.says('shop', { rightToRun: { epoch: epoch + 1, holder } });
    await agents.move('fourth', 'shop');
    await agents.targetPod('fourth');
    expect([...(await agents.ledger()).holders.values()].map(({ sourceNode }) => sourceNode)).toEqual(['node-c']);
    expect((await scene.get(migrations, 'fourth')).status?.migrationState?.sourceNode).toBe('node-c');
    await scene.delete(migrations, 'fourth');
    await scene.until(async () => expect(await scene.find(migrations, 'fourth')).toBeUndefined());
  });

  it('believes the server that the pod is there that it has made', async () => {
    await agents.addGuest('mail');
    await scene.settle();
    scene.hold('pods');
    await agents.move('third', 'mail');
    await agents.reaches('third', 'Scheduling');
    expect(await phaseAfterLooks('third')).toBe('Scheduling');
    scene.release('pods');
    await agents.carryOut('third', 'mail');
  });

  it('goes on from what it has written itself', async () => {
    await agents.addGuest('post');
    await agents.move('fifth', 'post');
    await agents.targetPod('fifth');
    await scene.settle();
    scene.hold('virtualmachineinstancemigrations');
    await agents.runTarget('fifth', 'node-c');
    await agents.reaches('fifth', 'PreparingTarget');
    await agents.finish('fifth', 'post');
    scene.release('virtualmachineinstancemigrations');
  });
});
