import { withMigrationDefaults } from '../../api/kubevirt/complete-migration.ts';
import { migrationRole, pairKeyOf } from '../../api/kubevirt/validate-migration.ts';
import type { VirtualMachine } from '../../api/kubevirt/virtual-machine.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import {
  isFinalMigration,
  type VirtualMachineInstanceMigration,
} from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { RESTORE_STRATEGY_ANNOTATION } from '../../api/kubevirt/well-known.ts';
import { namespaces } from '../../cluster/resources.ts';
import type { Random } from '../../env/ports.ts';
import { virtualMachineInstanceMigrations as migrations, virtualMachines } from '../../kube/kubevirt-resources.ts';
import { changeTrust } from '../../sync/trust/store.ts';
import { VMIS } from '../buckets.ts';
import { migrationsOf } from '../moves.ts';
import { oneOf } from '../streams.ts';
import { revoking, trusting } from '../sync-trust.ts';
import type { UserCluster, UserContext } from './context.ts';

/** What people do who move guests between clusters, and between namespaces. They make mistakes with keys and addresses. */

/** Besides the one that every cluster has. */
export const FAR_NAMESPACE = 'far';
const NAMESPACES = ['default', FAR_NAMESPACE];
const NAMES = ['db', 'mail', 'shop', 'web'];
const MEMORY = ['64Mi', '256Mi'];

interface Placed {
  readonly cluster: UserCluster;
  readonly guest: VirtualMachineInstance;
}

interface Half {
  readonly cluster: UserCluster;
  readonly namespace: string;
  readonly guest: string;
  readonly spec: Partial<VirtualMachineInstanceMigration['spec']>;
}

/** A machine that always runs, in any of the clusters and namespaces. */
export async function createTraveller({ client, random, signal }: UserContext): Promise<void> {
  await client.create(virtualMachines, machine(random, drawMemory(random), 'Always'), signal);
}

/** Makes a machine that waits for some guest, and asks for both halves of the pair; most of the time all of it is right. */
export async function moveAway(context: UserContext): Promise<void> {
  const { clusters, random, signal } = context;
  const source = oneOf(random, guestsIn(context, 'Running'));
  const others = clusters.filter((each) => each !== source?.cluster);
  const cluster = oneOf(random, random.number() < 0.8 ? others : clusters);
  if (!source || !cluster) return;
  const memory = random.number() < 0.95 ? memoryOf(source.guest) : drawMemory(random);
  const receiver = machine(random, memory, 'WaitAsReceiver');
  const { name = '', namespace = '' } = receiver.metadata;
  const make = (): Promise<unknown> => cluster.client.create(virtualMachines, receiver, signal);
  const isLate = random.number() < 0.3;
  const isMade = isLate ? true : await succeeds(make);
  if (isMade) await pairUp(context, source, { cluster, namespace, guest: name });
  if (isLate) await make();
}

/** Asks for both halves of a pair with a guest that waits already. */
export async function pairAgain(context: UserContext): Promise<void> {
  const { random } = context;
  const source = oneOf(random, guestsIn(context, 'Running'));
  const target = oneOf(random, guestsIn(context, 'WaitingForSync'));
  if (!source || !target) return;
  const { name = '', namespace = '' } = target.guest.metadata;
  await pairUp(context, source, { cluster: target.cluster, namespace, guest: name });
}

/** Makes the other half of one that nobody has answered. */
export async function completePair(context: UserContext): Promise<void> {
  const { clusters, random } = context;
  const halves = underWay(context);
  const idOf = ({ spec }: VirtualMachineInstanceMigration): string => `${migrationRole(spec)} ${pairKeyOf(spec)}`;
  const known = new Set(halves.map(({ migration }) => idOf(migration)));
  const isLone = ({ migration: { spec } }: (typeof halves)[number]): boolean =>
    !known.has(`${migrationRole(spec) === 'source' ? 'target' : 'source'} ${pairKeyOf(spec)}`);
  const lone = oneOf(random, halves.filter(isLone));
  const key = lone && pairKeyOf(lone.migration.spec);
  if (!lone || key === undefined) return;
  if (migrationRole(lone.migration.spec) === 'source') {
    const target = oneOf(random, guestsIn(context, 'WaitingForSync'));
    if (target) await ask(context, halfOf(target, { receive: { key } }));
    return;
  }
  const source = oneOf(random, guestsIn(context, 'Running'));
  const cluster = random.number() < 0.9 ? lone.cluster : oneOf(random, clusters);
  if (source && cluster) await ask(context, halfOf(source, { sendTo: { key, connectURL: cluster.address } }));
}

/** Asks for a half of another guest with the key, and in the part, of one that is not over. */
export async function reuseKey(context: UserContext): Promise<void> {
  const { random } = context;
  const one = oneOf(random, underWay(context));
  if (!one) return;
  const { cluster, migration } = one;
  const { sendTo, receive } = migration.spec;
  const others = guestsIn(context, sendTo ? 'Running' : 'WaitingForSync').filter(
    (each) => each.cluster === cluster && each.guest.metadata.name !== migration.spec.vmName,
  );
  const other = oneOf(random, others);
  if (other) await ask(context, halfOf(other, sendTo ? { sendTo } : { receive }));
}

/** Thinks better of it, on one side or on both at once. */
export async function cancelPair(context: UserContext): Promise<void> {
  const { random, signal } = context;
  const halves = underWay(context);
  const one = oneOf(random, halves);
  if (!one) return;
  const key = pairKeyOf(one.migration.spec);
  const both = halves.filter(({ migration }) => pairKeyOf(migration.spec) === key);
  const deletions = (random.number() < 0.3 ? both : [one]).map(({ cluster, migration: { metadata } }) =>
    cluster.client.delete(migrations, metadata.namespace ?? '', metadata.name ?? '', signal),
  );
  await Promise.allSettled(deletions);
}

/** Two clusters take their trust in each other back, whatever is on its way between them. */
export async function revokeTrust({ clusters, random, signal }: UserContext): Promise<void> {
  const one = oneOf(random, clusters);
  const other = oneOf(
    random,
    clusters.filter((each) => each !== one),
  );
  if (!one || !other) return;
  const revocations = [
    [one, other],
    [other, one],
  ] as const;
  const all = revocations.map(([{ client }, { name }]) => changeTrust(client, (data) => revoking(data, name), signal));
  await Promise.allSettled(all);
}

/** All clusters trust each other, those, too, that trusted each other no more. */
export async function trustAll({ clusters, signal }: UserContext): Promise<void> {
  const all = clusters.map(({ client, name }) => {
    const others = clusters.flatMap((each) => (each.name === name ? [] : [each.name]));
    return changeTrust(client, (data) => trusting(data, others), signal);
  });
  await Promise.allSettled(all);
}

/** Gives up a namespace with all that is in it, and has come there; or makes it anew. */
export async function renewNamespace({ client, state, signal }: UserContext): Promise<void> {
  const metadata = { name: FAR_NAMESPACE };
  if (state.get('namespaces', FAR_NAMESPACE)) await client.delete(namespaces, '', FAR_NAMESPACE, signal);
  else await client.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata }, signal);
}

async function pairUp(context: UserContext, source: Placed, target: Omit<Half, 'spec'>): Promise<void> {
  const { clusters, random } = context;
  const key = drawKey(context);
  const otherKey = random.number() < 0.05 ? `${key}-x` : key;
  const address = (random.number() < 0.95 ? target.cluster : oneOf(random, clusters))?.address ?? '';
  const connectURL = random.number() < 0.97 ? address : 'nobody.home:9185';
  const halves = [halfOf(source, { sendTo: { key, connectURL } }), { ...target, spec: { receive: { key: otherKey } } }];
  const order = random.number() < 0.5 ? halves : halves.toReversed();
  const made = (random.number() < 0.15 ? order.slice(1) : order).map((half) => () => ask(context, half));
  for (const make of made) await succeeds(make);
}

/** Mostly a new one; some people take one that was used before, or still is. */
function drawKey(context: UserContext): string {
  const { random } = context;
  const used = context.clusters.flatMap(({ state }) => migrationsOf(state).map(({ spec }) => pairKeyOf(spec)));
  const fresh = `pair-${Math.floor(random.number() * 1e6)}`;
  return random.number() < 0.15 ? (oneOf(random, used) ?? fresh) : fresh;
}

async function ask({ random, signal }: UserContext, { cluster, namespace, guest, spec }: Half): Promise<void> {
  const object = {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstanceMigration',
    metadata: { name: `${guest}-${Math.floor(random.number() * 1e6)}`, namespace },
    spec: { vmiName: guest, ...spec },
  } as unknown as VirtualMachineInstanceMigration;
  // What a webhook sees to, where there is one.
  await cluster.client.create(migrations, withMigrationDefaults(object, { isOwnComponent: false }), signal);
}

function halfOf({ cluster, guest }: Placed, spec: Half['spec']): Half {
  const { name = '', namespace = '' } = guest.metadata;
  return { cluster, namespace, guest: name, spec };
}

function guestsIn({ clusters }: UserContext, phase: string): readonly Placed[] {
  return clusters.flatMap((cluster) =>
    ([...cluster.state.list(VMIS)] as VirtualMachineInstance[])
      .filter(({ status }) => status?.phase === phase)
      .map((guest) => ({ cluster, guest })),
  );
}

function underWay({ clusters }: UserContext) {
  return clusters.flatMap((cluster) =>
    migrationsOf(cluster.state)
      .filter((migration) => !isFinalMigration(migration) && pairKeyOf(migration.spec) !== undefined)
      .map((migration) => ({ cluster, migration })),
  );
}

function machine(random: Random, memory: string, runStrategy: string): VirtualMachine {
  const annotations = runStrategy === 'WaitAsReceiver' ? { [RESTORE_STRATEGY_ANNOTATION]: 'Always' } : {};
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name: oneOf(random, NAMES), namespace: oneOf(random, NAMESPACES), annotations },
    spec: {
      runStrategy,
      template: {
        spec: { domain: { devices: {}, memory: { guest: memory } }, terminationGracePeriodSeconds: 10 },
      },
    },
  } as unknown as VirtualMachine;
}

function drawMemory(random: Random): string {
  return oneOf(random, MEMORY) ?? '';
}

function memoryOf({ spec }: VirtualMachineInstance): string {
  return String(spec.domain.memory?.guest ?? '');
}

/** Whether it was done: people go on though something they did was refused. */
async function succeeds(act: () => Promise<unknown>): Promise<boolean> {
  try {
    await act();
    return true;
  } catch {
    return false;
  }
}
