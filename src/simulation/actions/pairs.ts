import { withMigrationDefaults } from '../../api/kubevirt/complete-migration.ts';
import type { VirtualMachine } from '../../api/kubevirt/virtual-machine.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { VirtualMachineInstanceMigration } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { RESTORE_STRATEGY_ANNOTATION } from '../../api/kubevirt/well-known.ts';
import { virtualMachineInstanceMigrations, virtualMachines } from '../../kube/kubevirt-resources.ts';
import { VMIS } from '../buckets.ts';
import { oneOf } from '../streams.ts';
import type { UserContext } from './context.ts';
import { RECEIVER_MEMORY } from './migrations.ts';

/** What people do who move guests to other objects. */

const NAMESPACE = 'default';
const RECEIVERS = ['far-db', 'far-mail', 'far-shop', 'far-web'];
/** How many ask for a pair where only one of both is there. */
const LONELY_SHARE = 0.1;

/** A machine that waits for a guest. */
export async function createReceiver({ client, random, signal }: UserContext): Promise<void> {
  const annotations = { [RESTORE_STRATEGY_ANNOTATION]: 'Always' };
  const object = {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name: oneOf(random, RECEIVERS) ?? '', namespace: NAMESPACE, annotations },
    spec: {
      runStrategy: 'WaitAsReceiver',
      template: {
        spec: { domain: { devices: {}, memory: { guest: RECEIVER_MEMORY } }, terminationGracePeriodSeconds: 10 },
      },
    },
  };
  await client.create(virtualMachines, object as unknown as VirtualMachine, signal);
}

/** Asks for both halves of a pair, in either order; now and then one of them is forgotten, or the key is not the same. */
export async function pair(context: UserContext): Promise<void> {
  const { clusters, state, random } = context;
  const connectURL = clusters[0]?.address ?? '';
  const guests = [...state.list(VMIS)] as VirtualMachineInstance[];
  const inPhase = (phase: string) => guests.filter(({ status }) => status?.phase === phase);
  const source = oneOf(random, inPhase('Running'));
  const target = oneOf(random, inPhase('WaitingForSync'));
  // A half that has nobody to meet keeps its guest from meeting anyone for minutes: one now and then is enough.
  if ((!source || !target) && random.number() > LONELY_SHARE) return;
  const key = `pair-${Math.floor(random.number() * 1e6)}`;
  const otherKey = random.number() < 0.05 ? `${key}-x` : key;
  const halves = [
    () => half(context, source, { sendTo: { key, connectURL } }),
    () => half(context, target, { receive: { key: otherKey } }),
  ];
  const order = random.number() < 0.5 ? halves : halves.toReversed();
  for (const make of random.number() < 0.05 ? order.slice(1) : order) await make();
}

async function half(
  { client, random, signal }: UserContext,
  guest: VirtualMachineInstance | undefined,
  spec: Partial<VirtualMachineInstanceMigration['spec']>,
): Promise<void> {
  const name = guest?.metadata.name;
  if (name === undefined) return;
  const object = {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstanceMigration',
    metadata: { name: `${name}-${Math.floor(random.number() * 1e6)}`, namespace: NAMESPACE },
    spec: { vmiName: name, ...spec },
  } as unknown as VirtualMachineInstanceMigration;
  // What a webhook sees to, where there is one.
  await client.create(
    virtualMachineInstanceMigrations,
    withMigrationDefaults(object, { isOwnComponent: false }),
    signal,
  );
}
