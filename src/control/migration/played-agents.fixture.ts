import type { MigrationState } from '../../api/kubevirt/migration-state.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type {
  MigrationPhase,
  VirtualMachineInstanceMigration,
} from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import {
  CREATED_BY_LABEL,
  MIGRATION_FINALIZER,
  MIGRATION_GUEST_LABEL,
  MIGRATION_UID_LABEL,
  SYSTEM_NAMESPACE,
} from '../../api/kubevirt/well-known.ts';
import { formatTime, type JsonObject } from '../../api/meta.ts';
import {
  virtualMachineInstanceMigrations as migrations,
  virtualMachineInstances as guests,
} from '../../kube/kubevirt-resources.ts';
import type { ControlContext } from '../context.ts';
import { type ControlScene, NAMESPACE } from '../control.fixture.ts';
import { type LauncherPod, nodes, pods } from '../resources.ts';
import type { SlotLedger } from '../../migration/slots/ledger.ts';
import { parseLedger } from '../../migration/slots/ledger-text.ts';
import { configMaps, LEDGER_NAME } from './ledger-object.ts';
import { Migrations } from './migrations.ts';

/** The controller under test. */
export const makeMigrations = (context: ControlContext): Migrations =>
  new Migrations({ ...context, launcherImage: 'launcher:1' });

/**
 * Plays the parts of scheduler and agents by hand, as the API sees them: what they write, and nothing of what they do.
 */
export class PlayedAgents {
  readonly scene: ControlScene;

  constructor(scene: ControlScene) {
    this.scene = scene;
  }

  async addNodes(...names: readonly string[]): Promise<void> {
    for (const name of names) {
      const labels = {
        'kubevirt.io/schedulable': 'true',
        'kubernetes.io/arch': 'amd64',
        'kubernetes.io/hostname': name,
      };
      await this.scene.create(nodes, { metadata: { name, labels } });
      // As the node controller does for nodes that are ready.
      await this.scene.patch(nodes, name, { spec: { taints: null } });
      const room = { cpu: '64', memory: '256Gi', pods: '250', 'devices.kubevirt.io/kvm': '1k' };
      await this.scene.patch(nodes, name, { status: { allocatable: room, capacity: room } }, 'status');
    }
  }

  /** A guest that runs on a node, in its first pod. */
  async addGuest(name: string, node = 'node-a', more: Partial<VirtualMachineInstance> = {}): Promise<void> {
    const domain = { devices: {}, memory: { guest: '64Mi' } };
    const { metadata, ...rest } = more;
    const made = await this.scene.create(guests, { metadata: { name, ...metadata }, spec: { domain }, ...rest });
    const { uid = '' } = made.metadata;
    const pod = await this.scene.create(pods, {
      metadata: {
        name: `virt-launcher-${name}-first`,
        labels: { 'kubevirt.io': 'virt-launcher', [CREATED_BY_LABEL]: uid },
        ownerReferences: [
          { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstance', name, uid, controller: true },
        ],
      },
      spec: { containers: [{ name: 'compute', image: 'launcher:1' }] },
    });
    await this.bind(pod.metadata.name ?? '', node);
    await this.start(pod.metadata.name ?? '');
    const holder = { node, nodeUID: `uid-of-${node}`, podUID: pod.metadata.uid ?? '' };
    await this.says(name, { phase: 'Running', nodeName: node, rightToRun: { epoch: 1, holder } });
  }

  /** Asks for a migration, as the webhook leaves it. */
  move(
    name: string,
    guest: string,
    spec: Partial<VirtualMachineInstanceMigration['spec']> = {},
    metadata: VirtualMachineInstanceMigration['metadata'] = {},
  ): Promise<VirtualMachineInstanceMigration> {
    return this.scene.create(migrations, {
      metadata: { name, finalizers: [MIGRATION_FINALIZER], labels: { [MIGRATION_GUEST_LABEL]: guest }, ...metadata },
      spec: { vmName: guest, vmiName: guest, cause: 'User', ...spec },
    });
  }

  /** Waits for a migration to be in a phase. */
  reaches(name: string, phase: MigrationPhase): Promise<VirtualMachineInstanceMigration> {
    return this.scene.until(async () => {
      const migration = await this.scene.get(migrations, name);
      if (migration.status?.phase !== phase)
        throw new Error(`${name} is ${migration.status?.phase}, not ${phase}: ${JSON.stringify(migration.status)}`);
      return migration;
    });
  }

  /** The target pod of a migration, once there is one. */
  targetPod(name: string): Promise<LauncherPod> {
    return this.scene.until(async () => {
      const pod = await this.findTargetPod(name);
      if (!pod) throw new Error(`${name} has no target pod`);
      return pod;
    });
  }

  async findTargetPod(name: string): Promise<LauncherPod | undefined> {
    const { uid } = (await this.scene.get(migrations, name)).metadata;
    return (await this.scene.list(pods)).find(({ metadata }) => metadata.labels?.[MIGRATION_UID_LABEL] === uid);
  }

  async bind(pod: string, node: string): Promise<void> {
    const target = { apiVersion: 'v1', kind: 'Node', name: node };
    const binding = { apiVersion: 'v1', kind: 'Binding', metadata: { name: pod }, target };
    await this.scene.client.post(pods, NAMESPACE, pod, 'binding', binding, this.scene.signal);
  }

  async start(pod: string): Promise<void> {
    const compute = { name: 'compute', ready: true, restartCount: 0, image: 'launcher:1', imageID: '' };
    const status = { phase: 'Running', containerStatuses: [{ ...compute, state: { running: {} } }] };
    await this.scene.patch(pods, pod, { status }, 'status');
  }

  /** Schedules and starts the target pod of a migration. */
  async runTarget(name: string, node = 'node-b'): Promise<LauncherPod> {
    const pod = await this.targetPod(name);
    await this.bind(pod.metadata.name ?? '', node);
    await this.start(pod.metadata.name ?? '');
    return pod;
  }

  /** What agents write into a guest's status. */
  async says(guest: string, status: JsonObject): Promise<void> {
    await this.scene.patch(guests, guest, { status }, 'status');
  }

  async state(guest: string): Promise<MigrationState> {
    return (await this.scene.get(guests, guest)).status?.migrationState ?? {};
  }

  /** The target's agent has its machine waiting. */
  async prepare(guest: string): Promise<void> {
    const ports = { '10250': 0 };
    await this.says(guest, {
      migrationState: { targetNodeAddress: '10.0.0.2', targetDirectMigrationNodePorts: ports },
    });
  }

  /** The source's agent reserves, and begins. */
  async begin(guest: string): Promise<void> {
    const { rightToRun, migrationState } = (await this.scene.get(guests, guest)).status ?? {};
    const { targetPod = '', targetNode = '' } = migrationState ?? {};
    const podUID = (await this.scene.get(pods, targetPod)).metadata.uid ?? '';
    const successor = { node: targetNode, nodeUID: `uid-of-${targetNode}`, podUID };
    const startTimestamp = formatTime(this.scene.clock.now());
    await this.says(guest, {
      migrationState: { startTimestamp, mode: 'PreCopy' },
      rightToRun: { ...rightToRun, successor } as JsonObject,
    });
  }

  /** The target's agent takes the guest over. */
  async take(guest: string): Promise<void> {
    const { epoch = 0, successor } = (await this.scene.get(guests, guest)).status?.rightToRun ?? {};
    const endTimestamp = formatTime(this.scene.clock.now());
    await this.says(guest, {
      rightToRun: { epoch: epoch + 1, holder: { ...successor }, successor: null } as JsonObject,
      nodeName: successor?.node ?? '',
      migrationState: { completed: true, endTimestamp, downtimeMs: 42, targetNodeDomainReadyTimestamp: endTimestamp },
    });
  }

  /** The source's agent gives up. */
  async giveUp(guest: string, failureReason: string, more: JsonObject = {}): Promise<void> {
    const endTimestamp = formatTime(this.scene.clock.now());
    await this.says(guest, {
      rightToRun: { successor: null },
      migrationState: { failed: true, completed: true, failureReason, endTimestamp, ...more },
    });
  }

  /** All of a move that goes well, from the moment in which the target pod is there. */
  async carryOut(name: string, guest: string, node = 'node-b'): Promise<void> {
    await this.runTarget(name, node);
    await this.reaches(name, 'PreparingTarget');
    await this.finish(name, guest);
  }

  /** The same, up to the copy. */
  async run(name: string, guest: string): Promise<void> {
    await this.move(name, guest);
    await this.runTarget(name);
    await this.reaches(name, 'PreparingTarget');
    await this.prepare(guest);
    await this.begin(guest);
    await this.reaches(name, 'Running');
  }

  /** The agents' part of a move that goes well. */
  async finish(name: string, guest: string): Promise<void> {
    await this.prepare(guest);
    await this.reaches(name, 'TargetReady');
    await this.begin(guest);
    await this.reaches(name, 'Running');
    await this.take(guest);
    await this.reaches(name, 'Succeeded');
  }

  /** Names of the migrations that have slots. */
  async slotHolders(): Promise<readonly string[]> {
    return [...(await this.ledger()).holders.values()].flatMap(({ members }) => members.map(({ name }) => name));
  }

  /** The slots as they are written down. */
  async ledger(): Promise<SlotLedger> {
    const { data } = await this.scene.client.get(configMaps, SYSTEM_NAMESPACE, LEDGER_NAME, this.scene.signal);
    return parseLedger(data ?? {});
  }
}
