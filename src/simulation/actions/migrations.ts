import { withMigrationDefaults } from '../../api/kubevirt/complete-migration.ts';
import type { JsonObject } from '../../api/meta.ts';
import type { MigrationPolicy } from '../../api/kubevirt/migration-policy.ts';
import { MIGRATION_PRIORITIES } from '../../api/kubevirt/migration-priority.ts';
import type { VirtualMachine } from '../../api/kubevirt/virtual-machine.ts';
import {
  isFinalMigration,
  type VirtualMachineInstanceMigration,
} from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import { SYSTEM_NAMESPACE } from '../../api/kubevirt/well-known.ts';
import {
  kubeVirts,
  migrationPolicies,
  virtualMachineInstanceMigrations,
  virtualMachines,
} from '../../kube/kubevirt-resources.ts';
import { MIGRATIONS, VMIS } from '../buckets.ts';
import { between, oneOf } from '../streams.ts';
import type { UserContext } from './context.ts';

/** What people do who move guests, and who say how they may be moved. */

const NAMESPACE = 'default';
const NAMES = ['db', 'mail', 'shop', 'web', 'wiki'];
const MEMORY = ['64Mi', '256Mi', '512Mi', '1Gi'];
/** Of those that wait for guests of others. */
export const RECEIVER_MEMORY = '256Mi';
const APPS = ['busy', 'calm'];
const GRACE_SECONDS_MAX = 30;
/** How many of those that move take a disk along. */
const DISK_SHARE = 0.3;
/** Its size is up to the model of its machine. */
const DISK = { name: 'own', disk: { bus: 'virtio' } };
const VOLUME = { name: 'own', emptyDisk: { capacity: '1Gi' } };
/** The cluster's configuration, as it is installed. */
const CONFIGURATION = 'kubevirt';

/** A machine that always runs, larger or smaller; some have a disk that moves with them. */
export function createMovable(context: UserContext): Promise<void> {
  return create(context, MEMORY, DISK_SHARE);
}

/** The same as those who wait for guests of others are, without a disk: most could go there, and some do not fit. */
export function createSender(context: UserContext): Promise<void> {
  return create(context, [RECEIVER_MEMORY, RECEIVER_MEMORY, RECEIVER_MEMORY, '1Gi'], 0);
}

async function create(
  { client, random, signal }: UserContext,
  memory: readonly string[],
  diskShare: number,
): Promise<void> {
  const [name, app, guest] = [oneOf(random, NAMES), oneOf(random, APPS), oneOf(random, memory)];
  const terminationGracePeriodSeconds = Math.floor(random.number() * GRACE_SECONDS_MAX);
  const hasDisk = random.number() < diskShare;
  const object = {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name: name ?? '', namespace: NAMESPACE },
    spec: {
      runStrategy: 'Always',
      template: {
        metadata: { labels: { app: app ?? '' } },
        spec: {
          domain: { devices: hasDisk ? { disks: [DISK] } : {}, memory: { guest: guest ?? '' } },
          ...(hasDisk ? { volumes: [VOLUME] } : {}),
          terminationGracePeriodSeconds,
        },
      },
    },
  };
  await client.create(virtualMachines, object as unknown as VirtualMachine, signal);
}

/** Asks that a guest be moved, in some class; now and then to a node that there is not. */
export async function migrate(context: UserContext): Promise<void> {
  const guest = someGuest(context);
  if (guest !== undefined) await ask(context, guest);
}

/** Two people have the same idea. */
export async function migrateTwice(context: UserContext): Promise<void> {
  const guest = someGuest(context);
  if (guest === undefined) return;
  await Promise.allSettled([ask(context, guest), ask(context, guest)]);
}

/** Asks that all guests be moved. */
export async function migrateAll(context: UserContext): Promise<void> {
  const guestsNow = [...context.state.list(VMIS)];
  for (const { metadata } of guestsNow) {
    const name = metadata.name ?? '';
    if (!isAsked(context, name) || context.random.number() < 0.1) await ask(context, name);
  }
}

async function ask({ client, random, signal }: UserContext, guest: string): Promise<void> {
  const priority = oneOf(random, [undefined, ...MIGRATION_PRIORITIES]);
  const isNowhere = random.number() < 0.05;
  const object = {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstanceMigration',
    metadata: { name: `${guest}-${Math.floor(random.number() * 1e6)}`, namespace: NAMESPACE },
    spec: {
      vmiName: guest,
      ...(priority === undefined ? {} : { priority }),
      ...(isNowhere ? { addedNodeSelector: { zone: 'nowhere' } } : {}),
    },
  };
  // What a webhook sees to, where there is one.
  const asked = object as unknown as VirtualMachineInstanceMigration;
  const migration = withMigrationDefaults(asked, { isOwnComponent: false });
  await client.create(virtualMachineInstanceMigrations, migration, signal);
}

/** Cancels a migration, or tidies up one that is over. */
export async function deleteMigration({ client, state, random, signal }: UserContext): Promise<void> {
  const all = [...state.list(MIGRATIONS)] as VirtualMachineInstanceMigration[];
  const underWay = all.filter((each) => !isFinalMigration(each));
  const chosen = oneOf(random, underWay.length > 0 && random.number() < 0.9 ? underWay : all);
  const { name, namespace = NAMESPACE } = chosen?.metadata ?? {};
  if (name !== undefined) await client.delete(virtualMachineInstanceMigrations, namespace, name, signal);
}

/** Changes how many guests may move at once. */
export async function setLimits({ client, random, signal }: UserContext): Promise<void> {
  const draw = (): number => Math.floor(random.number() ** 2 * 4);
  await setMigrations(client, signal, {
    parallelMigrationsPerCluster: draw(),
    parallelOutboundMigrationsPerNode: draw(),
    parallelInboundMigrationsPerNode: draw(),
  });
}

/** Lets nobody begin to move. */
export async function holdMoves({ client, signal }: UserContext): Promise<void> {
  await setMigrations(client, signal, { parallelMigrationsPerCluster: 0 });
}

/** Lets one move after the other. */
export async function slowMoves({ client, signal }: UserContext): Promise<void> {
  await setMigrations(client, signal, { parallelMigrationsPerCluster: 1 });
}

/** Lets as many move as there may be where nobody has said anything. */
export async function resetLimits({ client, signal }: UserContext): Promise<void> {
  await setMigrations(client, signal, {
    parallelMigrationsPerCluster: null,
    parallelOutboundMigrationsPerNode: null,
    parallelInboundMigrationsPerNode: null,
  });
}

/** Lets all guests move that are asked to, whatever they write meanwhile, over the slowest of links. */
export async function easeMoves({ client, signal }: UserContext): Promise<void> {
  await setMigrations(client, signal, { allowPostCopy: true, completionTimeoutPerGiB: 1000 });
}

async function setMigrations(
  client: UserContext['client'],
  signal: AbortSignal,
  migrations: JsonObject,
): Promise<void> {
  const body = { spec: { configuration: { migrations } } };
  await client.patch(kubeVirts, SYSTEM_NAMESPACE, CONFIGURATION, { type: 'merge', body }, signal);
}

/** Changes how some guests are moved. */
export async function setPolicy({ client, state, random, signal }: UserContext): Promise<void> {
  const name = oneOf(random, APPS) ?? '';
  const spec = {
    selectors: { virtualMachineInstanceSelector: { app: name } },
    allowPostCopy: random.number() < 0.7,
    allowAutoConverge: random.number() < 0.5,
    // Follows the post-copy where nobody says anything.
    ...(random.number() < 0.3 ? { allowWorkloadDisruption: random.number() < 0.5 } : {}),
    bandwidthPerMigration: oneOf(random, ['0', '0', '4Mi', '32Mi', '128Mi']) ?? '',
    completionTimeoutPerGiB: Math.ceil(between(random, 2, 150)),
    progressTimeout: Math.ceil(between(random, 10, 150)),
    maxDowntimeMs: Math.ceil(between(random, 50, 900)),
  };
  if (state.get('migrationpolicies.migrations.kubevirt.io', name)) {
    await client.patch(migrationPolicies, '', name, { type: 'merge', body: { spec } }, signal);
    return;
  }
  const object = { apiVersion: 'migrations.kubevirt.io/v1alpha1', kind: 'MigrationPolicy', metadata: { name }, spec };
  await client.create(migrationPolicies, object as unknown as MigrationPolicy, signal);
}

export async function deletePolicy({ client, random, signal }: UserContext): Promise<void> {
  await client.delete(migrationPolicies, '', oneOf(random, APPS) ?? '', signal);
}

/** A guest that runs; sometimes any other. */
function someGuest(context: UserContext): string | undefined {
  const { state, random } = context;
  const all = [...state.list(VMIS)] as VirtualMachineInstance[];
  const running = all.filter(({ status }) => status?.phase === 'Running');
  const free = running.filter(({ metadata }) => !isAsked(context, metadata.name ?? ''));
  const draw = random.number();
  return oneOf(random, draw < 0.85 ? free : draw < 0.95 ? running : all)?.metadata.name;
}

/** Whether a migration of the guest is under way. */
function isAsked({ state }: UserContext, guest: string): boolean {
  return ([...state.list(MIGRATIONS)] as VirtualMachineInstanceMigration[]).some(
    (each) => each.spec.vmiName === guest && !isFinalMigration(each),
  );
}
