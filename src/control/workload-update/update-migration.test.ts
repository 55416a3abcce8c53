import { describe, expect, it } from 'vitest';
import { updateMigration } from './update-migration.ts';
import { updateStrategyOf, isBeingDeployed } from './update-strategy.ts';
import { guestOf, workloadOf } from './workloads.fixture.ts';
import type { KubeVirt } from '../../api/kubevirt/kube-virt.ts';

const made = (changes: readonly string[], isOutdated = false, name = 'web') => {
  const workload = workloadOf(guestOf(name, { changes }));
  const configuration = { developerConfiguration: { featureGates: ['MigrationPriorityQueue'] } };
  return updateMigration({ ...workload, need: { isOutdated, changes } }, configuration);
};

describe('the migration of an update', () => {
  it.each<readonly [string, readonly string[], boolean, string]>([
    ['an upgrade', [], true, 'system-critical'],
    ['CPU hotplug', ['HotVCPUChange'], false, 'user-triggered'],
    ['memory hotplug', ['HotMemoryChange'], false, 'user-triggered'],
    ['a change of volumes', ['VolumesChange'], false, 'user-triggered'],
    ['an upgrade with a change', ['HotVCPUChange'], true, 'system-critical'],
  ])('has the priority of %s', (_what, changes, isOutdated, priority) => {
    expect(made(changes, isOutdated).spec).toMatchObject({ cause: 'WorkloadUpdate', priority, vmiName: 'web' });
  });

  it('names no priority where migrations have none', () => {
    const workload = workloadOf(guestOf('web', { image: 'old' }));
    const disabled = { developerConfiguration: { disabledFeatureGates: ['MigrationPriorityQueue'] } };
    const need = { isOutdated: true, changes: [] };
    expect(updateMigration({ ...workload, need }, disabled).spec.priority).toBeUndefined();
  });

  it('is annotated, and found again by whoever makes it again', () => {
    const { metadata } = made([], true);
    expect(metadata.annotations).toEqual({ 'kubevirt.io/workloadUpdateMigration': '' });
    expect(metadata.name).toMatch(/^kubevirt-workload-update-/);
    expect(made([], true).metadata.name).toBe(metadata.name);
  });

  it('has another name after one of that name', () => {
    const first = made([], true);
    const workload = workloadOf(guestOf('web', { image: 'old' }), [
      { ...first, metadata: { ...first.metadata, uid: '1' } },
    ]);
    const second = updateMigration({ ...workload, need: { isOutdated: true, changes: [] } }, {});
    expect(second.metadata.name).not.toBe(first.metadata.name);
  });

  it.each([
    ['its name', 'web', 'web'],
    ['its UID, where its name is too long', 'w'.repeat(64), `uid-of-${'w'.repeat(64)}`],
  ])('of volumes is labelled by the guest: %s', (_what, name, label) => {
    expect(made(['VolumesChange'], false, name).metadata.labels?.['kubevirt.io/volume-update-migration']).toBe(label);
    expect(made(['HotVCPUChange'], false, name).metadata.labels).not.toHaveProperty(
      'kubevirt.io/volume-update-migration',
    );
  });
});

describe('the strategy of updates', () => {
  const kubeVirt = (workloadUpdateStrategy?: KubeVirt['spec']['workloadUpdateStrategy'], status?: object) =>
    ({ metadata: {}, spec: { workloadUpdateStrategy }, status }) as KubeVirt;

  it('allows nothing by default', () => {
    expect(updateStrategyOf(kubeVirt())).toEqual({
      isMovingAllowed: false,
      isEvictingAllowed: false,
      evictionsPerBatch: 10,
      batchIntervalMs: 60_000,
    });
  });

  it('is what the configuration says', () => {
    const asked = { workloadUpdateMethods: ['LiveMigrate', 'Evict'] as const, batchEvictionSize: 3 };
    const said = kubeVirt({
      ...asked,
      workloadUpdateMethods: [...asked.workloadUpdateMethods],
      batchEvictionInterval: '1m30s',
    });
    expect(updateStrategyOf(said)).toEqual({
      isMovingAllowed: true,
      isEvictingAllowed: true,
      evictionsPerBatch: 3,
      batchIntervalMs: 90_000,
    });
  });

  it('takes an interval that is none for none', () => {
    expect(updateStrategyOf(kubeVirt({ batchEvictionInterval: 'soon' })).batchIntervalMs).toBe(60_000);
  });

  it.each<readonly [object | undefined, boolean]>([
    [undefined, false],
    [{ phase: 'Deployed' }, false],
    [{ phase: 'Deploying' }, true],
    [{ phase: 'Deployed', observedDeploymentID: 'a', targetDeploymentID: 'a' }, false],
    [{ phase: 'Deployed', observedDeploymentID: 'a', targetDeploymentID: 'b' }, true],
  ])('should do nothing while deploying: %o', (status, expected) => {
    expect(isBeingDeployed(kubeVirt(undefined, status))).toBe(expected);
  });
});
