import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { JsonObject } from '../../api/meta.ts';
import { ManualClock } from '../../env/test.ts';
import {
  virtualMachineInstanceMigrations as migrations,
  virtualMachineInstances as guests,
  virtualMachines as machines,
} from '../../kube/kubevirt-resources.ts';
import { KubeMetrics } from '../../kube/metrics.ts';
import { ControlScene } from '../control.fixture.ts';
import { nodes } from '../resources.ts';
import { ControlMetrics } from './control-metrics.ts';

const SPEC = { domain: { devices: {}, memory: { guest: '64Mi' } } };
const START = '2026-01-01T00:00:00Z';

let metrics: KubeMetrics;
let scene: ControlScene;
beforeEach(async () => {
  scene = new ControlScene((context) => {
    metrics = new KubeMetrics(new ManualClock());
    return new ControlMetrics({ ...context, metrics });
  });
  await scene.start();
});
afterEach(() => scene.stop());

/** The series of metrics whose names begin so, in order. */
async function series(prefix: string): Promise<string[]> {
  return (await metrics.render())
    .split('\n')
    .filter((line) => line.startsWith(prefix) && !/_bucket|_sum/.test(line))
    .toSorted();
}

async function guest(name: string, status: JsonObject, more: JsonObject = {}): Promise<void> {
  await scene.create(guests, { metadata: { name }, spec: { ...SPEC, ...more } } as object);
  await scene.patch(guests, name, { status }, 'status');
  await scene.settle();
}

async function migration(name: string, status: JsonObject, spec: JsonObject = {}): Promise<void> {
  await scene.create(migrations, { metadata: { name }, spec: { vmiName: 'web', cause: 'User', ...spec } } as object);
  await scene.settle();
  if (Object.keys(status).length > 0) await scene.patch(migrations, name, { status }, 'status');
  await scene.settle();
}

describe('what is told of the cluster', () => {
  it('is told by who leads alone', async () => {
    await migration('there', { phase: 'Pending' });
    expect(await series('kubevirt_virt_controller')).toEqual([
      'kubevirt_virt_controller_leading_status 1',
      'kubevirt_virt_controller_ready_status 1',
    ]);
    expect(await series('kubevirt_vmi_migrations_in_pending')).toEqual(['kubevirt_vmi_migrations_in_pending_phase 1']);
    await scene.stopControllers();
    expect(await series('kubevirt_virt_controller_leading')).toEqual(['kubevirt_virt_controller_leading_status 0']);
    expect(await series('kubevirt_vmi_migrations_in_pending')).toEqual([]);
  });

  it('are migrations by phase, by cause, and by what holds them up', async () => {
    const condition = { type: 'decentralizedMigrationBlocked', status: 'True', reason: 'Unreachable' };
    const over = { type: 'migrationAbortRequested', status: 'False', reason: 'Gone' };
    await migration('new', {});
    await migration('waits', { phase: 'Pending' });
    await migration('looks', { phase: 'Scheduling' }, { cause: 'APIEviction' });
    await migration('ready', { phase: 'TargetReady' });
    await migration('silent', { phase: 'Synchronizing', conditions: [condition, over] }, { cause: 'CrossCluster' });
    await migration('good', { phase: 'Succeeded' });
    await migration('bad', { phase: 'Failed', conditions: [condition] });
    expect(await series('kubevirt_vmi_migrations_in')).toEqual([
      'kubevirt_vmi_migrations_in_pending_phase 1',
      'kubevirt_vmi_migrations_in_running_phase 2',
      'kubevirt_vmi_migrations_in_scheduling_phase 1',
      'kubevirt_vmi_migrations_in_unset_phase 1',
    ]);
    expect(await series('kubevirt_vmi_migration_succeeded')).toEqual([
      'kubevirt_vmi_migration_succeeded{vmi="web",vmim="good",namespace="shop"} 1',
    ]);
    expect(await series('kubevirt_vmi_migration_failed')).toEqual([
      'kubevirt_vmi_migration_failed{vmi="web",vmim="bad",namespace="shop"} 1',
    ]);
    expect(await series('godwit_migrations_unfinished')).toEqual([
      'godwit_migrations_unfinished{phase="",cause="User"} 1',
      'godwit_migrations_unfinished{phase="Pending",cause="User"} 1',
      'godwit_migrations_unfinished{phase="Scheduling",cause="APIEviction"} 1',
      'godwit_migrations_unfinished{phase="Synchronizing",cause="CrossCluster"} 1',
      'godwit_migrations_unfinished{phase="TargetReady",cause="User"} 1',
    ]);
    expect(await series('godwit_migrations_held_up')).toEqual([
      'godwit_migrations_held_up{condition="decentralizedMigrationBlocked",reason="Unreachable"} 1',
    ]);
  });

  it('are guests, whether they can be moved, and by when they must be', async () => {
    const cause = { cause: 'Preemption', deadline: '2026-01-01T00:05:00Z' };
    const marked = { evacuationNodeName: 'node-1', evacuationCauses: [cause, { cause: 'DrainTaint' }] };
    const migratable = { type: 'LiveMigratable', status: 'True' };
    const live = { evictionStrategy: 'LiveMigrate' };
    await guest('web', { phase: 'Running', nodeName: 'node-1', conditions: [migratable], ...marked }, live);
    await guest('db', { phase: 'Running', nodeName: 'node-2' }, live);
    await guest('batch', { phase: 'Scheduling' });
    expect(await series('kubevirt_vmi_non_evictable')).toEqual([
      'kubevirt_vmi_non_evictable{node="",namespace="shop",name="batch"} 0',
      'kubevirt_vmi_non_evictable{node="node-1",namespace="shop",name="web"} 0',
      'kubevirt_vmi_non_evictable{node="node-2",namespace="shop",name="db"} 1',
    ]);
    expect(await series('godwit_vmi_evacuation_deadline_seconds')).toEqual([
      `godwit_vmi_evacuation_deadline_seconds{node="node-1",namespace="shop",name="web",cause="Preemption"} ${Date.parse(cause.deadline) / 1000}`,
    ]);
    const info = await series('kubevirt_vmi_info');
    expect(info).toHaveLength(3);
    expect(info.at(-1)).toMatch(/node="node-2",.*name="db",phase="running",.*evictable="false",outdated="false"/);
  });

  it('is when guests began to be copied, and when that ended', async () => {
    await migration('there', { phase: 'Succeeded' });
    const { uid = '' } = (await scene.get(migrations, 'there')).metadata;
    const migrationState = {
      migrationUid: uid,
      startTimestamp: START,
      endTimestamp: '2026-01-01T00:00:07Z',
      completed: true,
    };
    await guest('web', { phase: 'Running', nodeName: 'node-2', migrationState });
    const labels = 'node="node-2",namespace="shop",name="web",migration_name="there"';
    expect(await series('kubevirt_vmi_migration_start_time_seconds')).toEqual([
      `kubevirt_vmi_migration_start_time_seconds{${labels}} ${Date.parse(START) / 1000}`,
    ]);
    expect(await series('kubevirt_vmi_migration_end_time_seconds')).toEqual([
      `kubevirt_vmi_migration_end_time_seconds{${labels},status="succeeded"} ${Date.parse(START) / 1000 + 7}`,
    ]);
  });

  it('is how long phases took, from when somebody heard of them', async () => {
    await guest('web', {});
    const transitions = (...phases: readonly (readonly [string, number])[]) =>
      phases.map(([phase, seconds]) => ({
        phase,
        phaseTransitionTimestamp: new Date(scene.clock.now() + seconds * 1000).toISOString().replace(/\.\d+/, ''),
      }));
    const to = async (phase: string, seen: readonly (readonly [string, number])[]): Promise<void> => {
      await scene.patch(
        guests,
        'web',
        { status: { phase, phaseTransitionTimestamps: transitions(...seen) } },
        'status',
      );
      await scene.settle();
    };
    await to('Scheduling', [['Scheduling', 1]]);
    await to('Running', [
      ['Scheduling', 1],
      ['Running', 4],
    ]);
    expect(await series('kubevirt_vmi_phase_transition_time_seconds_count')).toEqual([
      'kubevirt_vmi_phase_transition_time_seconds_count{phase="Running",last_phase="Scheduling"} 1',
      'kubevirt_vmi_phase_transition_time_seconds_count{phase="Scheduling",last_phase=""} 1',
    ]);
    expect(await metrics.render()).toContain(
      'kubevirt_vmi_phase_transition_time_seconds_sum{phase="Running",last_phase="Scheduling"} 3',
    );
    expect(await series('kubevirt_vmi_phase_transition_time_from_creation_seconds_count')).toHaveLength(2);
    expect(await series('kubevirt_vmi_phase_transition_time_from_deletion_seconds_count')).toEqual([]);
    // A controller that starts later does not count again what was long ago.
    await scene.stopControllers();
    await scene.startControllers();
    expect(await series('kubevirt_vmi_phase_transition_time_seconds_count')).toEqual([]);
  });

  it('are machines by status', async () => {
    for (const name of ['web', 'db'])
      await scene.create(machines, {
        metadata: { name },
        spec: {
          runStrategy: 'Halted',
          template: { metadata: { annotations: { 'vm.kubevirt.io/os': 'debian' } }, spec: SPEC },
        },
      } as object);
    const conditions = [{ type: 'Ready', status: 'True', lastTransitionTime: START }];
    await scene.patch(machines, 'web', { status: { printableStatus: 'Running', conditions } }, 'status');
    await scene.patch(machines, 'db', { status: { printableStatus: 'ErrorUnschedulable' } }, 'status');
    await scene.settle();
    expect(await series('kubevirt_vm_info')).toEqual([
      'kubevirt_vm_info{name="db",namespace="shop",os="debian",workload="",flavor="",instance_type="",preference="",status="ErrorUnschedulable",status_group="error"} 1',
      'kubevirt_vm_info{name="web",namespace="shop",os="debian",workload="",flavor="",instance_type="",preference="",status="Running",status_group="running"} 1',
    ]);
    expect(await series('kubevirt_vm_running_status')).toEqual([
      'kubevirt_vm_running_status_last_transition_timestamp_seconds{name="db",namespace="shop"} 0',
      `kubevirt_vm_running_status_last_transition_timestamp_seconds{name="web",namespace="shop"} ${Date.parse(START) / 1000}`,
    ]);
  });

  it('are nodes, with who is on them and whether they become empty', async () => {
    const labels = { 'godwit.dev/accelerator': 'tcg' };
    for (const name of ['node-1', 'node-2']) await scene.create(nodes, { metadata: { name, labels } });
    // Of a kubelet we know nothing.
    await scene.create(nodes, { metadata: { name: 'node-3' } });
    const blocked = [
      { type: 'Ready', status: 'True' },
      { type: 'DrainBlocked', status: 'True' },
    ];
    const patch = (body: JsonObject, subresource?: string): Promise<unknown> =>
      scene.client.patch(
        nodes,
        '',
        'node-1',
        { type: 'merge', body },
        scene.signal,
        subresource ? { subresource } : {},
      );
    await patch({ spec: { unschedulable: true } });
    await patch({ status: { conditions: blocked } }, 'status');
    await guest('web', { phase: 'Running', nodeName: 'node-1' });
    expect(await series('godwit_node_')).toEqual([
      'godwit_node_drain_blocked{node="node-1"} 1',
      'godwit_node_drain_blocked{node="node-2"} 0',
      'godwit_node_draining{node="node-1"} 1',
      'godwit_node_draining{node="node-2"} 0',
      'godwit_node_guests{node="node-1"} 1',
      'godwit_node_guests{node="node-2"} 0',
      'godwit_node_ready{node="node-1"} 1',
      'godwit_node_ready{node="node-2"} 0',
    ]);
  });
});
