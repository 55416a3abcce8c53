import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  virtualMachineInstanceMigrations as migrations,
  virtualMachineInstances as guests,
} from '../../kube/kubevirt-resources.ts';
import { ControlScene } from '../control.fixture.ts';
import { makeMigrations, PlayedAgents } from './played-agents.fixture.ts';

let scene: ControlScene;
let agents: PlayedAgents;
beforeEach(async () => {
  scene = new ControlScene(makeMigrations);
  agents = new PlayedAgents(scene);
  await scene.start();
  await agents.addNodes('node-a', 'node-b', 'node-c');
});
afterEach(() => scene.stop());

describe('a migration that goes well', () => {
  it('goes through all phases, and tells of each', async () => {
    await agents.addGuest('web');
    scene.writes.length = 0;
    await agents.move('move', 'web');
    await agents.carryOut('move', 'web');
    const { status, metadata } = await scene.until(async () => {
      const found = await scene.get(migrations, 'move');
      expect(found.metadata.finalizers).toBeUndefined();
      return found;
    });
    expect(status?.phaseTransitionTimestamps?.map(({ phase }) => phase)).toEqual([
      'Pending',
      'Scheduling',
      'Scheduled',
      'PreparingTarget',
      'TargetReady',
      'Running',
      'Succeeded',
    ]);
    expect(status).toMatchObject({
      effectivePriority: 0,
      causes: [{ cause: 'User', priority: 0 }],
      migrationState: {
        migrationUid: metadata.uid,
        sourceNode: 'node-a',
        sourcePod: 'virt-launcher-web-first',
        targetNode: 'node-b',
        completed: true,
        downtimeMs: 42,
        migrationConfiguration: { completionTimeoutPerGiB: 150 },
      },
    });
    await scene.until(async () =>
      expect((await scene.events()).map((event) => event.split(':')[0])).toEqual(
        expect.arrayContaining([
          'move Normal SuccessfulCreate',
          'move Normal SuccessfulHandOver',
          'move Normal SuccessfulMigration',
        ]),
      ),
    );
    expect((await scene.get(guests, 'web')).metadata.labels).toMatchObject({
      'kubevirt.io/migrationTargetNodeName': 'node-b',
    });
    const written = scene.writes.map((write) => write.split('/').slice(-2).join('/'));
    const counts = Object.fromEntries(written.map((what) => [what, written.filter((each) => each === what).length]));
    expect(counts).toEqual({
      'shop/pods': 1,
      // The slots are reserved, committed and released: for many migrations at once where there are many.
      'configmaps/godwit-migration-slots': 3,
      // One for each phase.
      'move/status': 7,
      // The finalizer.
      'virtualmachineinstancemigrations/move': 1,
      // The hand-off.
      'virtualmachineinstances/web': 1,
      'web/status': 1,
    });
  });
});
