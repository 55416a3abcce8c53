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
});
