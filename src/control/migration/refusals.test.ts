import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { virtualMachineInstanceMigrations } from '../../kube/kubevirt-resources.ts';
import { ControlScene } from '../control.fixture.ts';
import { MigrationRefusals } from './refusals.ts';

let scene: ControlScene;
beforeEach(async () => {
  scene = new ControlScene((context) => new MigrationRefusals(context));
  await scene.start();
});
afterEach(() => scene.stop());

describe('a migration that nobody can carry out', () => {
  it('fails with the reason, and can be deleted', async () => {
    await scene.create(virtualMachineInstanceMigrations, {
      metadata: { name: 'move', finalizers: ['kubevirt.io/migrationJobFinalize'] },
      spec: { vmiName: 'web' },
    });
    await scene.until(async () => {
      const { status, metadata } = await scene.get(virtualMachineInstanceMigrations, 'move');
      expect(status).toMatchObject({
        phase: 'Failed',
        migrationState: {
          failureReason: 'this version of Godwit does not move guests yet; the guest stays where it is',
        },
      });
      expect(metadata.finalizers).toBeUndefined();
    });
    await scene.until(async () => expect((await scene.events()).join()).toContain('FailedMigration'));
    await scene.delete(virtualMachineInstanceMigrations, 'move');
    expect(await scene.list(virtualMachineInstanceMigrations)).toEqual([]);
  });
});
