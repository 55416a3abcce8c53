import type { RunStrategy } from '../../api/kubevirt/run-strategy.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { VirtualMachine } from '../../api/kubevirt/virtual-machine.ts';
import type { KubeObject } from '../../api/meta.ts';
import { pods } from '../../cluster/resources.ts';
import type { DeleteOptions } from '../../kube/client.ts';
import { virtualMachineInstances, virtualMachines } from '../../kube/kubevirt-resources.ts';
import { VMIS, VMS } from '../buckets.ts';
import { oneOf } from '../streams.ts';
import type { UserContext } from './context.ts';

/** What owners of virtual machines do. There are few names, so that what is deleted is soon made anew. */

const NAMESPACE = 'default';
const NAMES = ['db', 'mail', 'shop', 'web'];
const STRATEGIES: readonly RunStrategy[] = ['Always', 'Always', 'Always', 'RerunOnFailure', 'Manual', 'Once', 'Halted'];
const GRACE_SECONDS_MAX = 60;

export async function createMachine({ client, random, signal }: UserContext): Promise<void> {
  const object = {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name: oneOf(random, NAMES) ?? '', namespace: NAMESPACE },
    spec: { runStrategy: oneOf(random, STRATEGIES), template: { spec: guestSpec(random) } },
  };
  await client.create(virtualMachines, object as unknown as VirtualMachine, signal);
}

/** A guest without a virtual machine: it runs once. */
export async function createGuest({ client, random, signal }: UserContext): Promise<void> {
  const object = {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { name: `lone-${oneOf(random, NAMES) ?? ''}`, namespace: NAMESPACE },
    spec: guestSpec(random),
  };
  await client.create(virtualMachineInstances, object as unknown as VirtualMachineInstance, signal);
}

function guestSpec(random: UserContext['random']): object {
  return {
    domain: { devices: {}, memory: { guest: '64Mi' } },
    terminationGracePeriodSeconds: Math.floor(random.number() * GRACE_SECONDS_MAX),
  };
}

export async function setRunStrategy({ client, state, random, signal }: UserContext): Promise<void> {
  const { name, namespace } = some(state.list(VMS), random);
  if (name === undefined) return;
  const body = { spec: { runStrategy: oneOf(random, STRATEGIES) ?? '' } };
  await client.patch(virtualMachines, namespace, name, { type: 'merge', body }, signal);
}

export async function deleteMachine({ client, state, random, signal }: UserContext): Promise<void> {
  const { name, namespace } = some(state.list(VMS), random);
  const propagationPolicy = oneOf(random, ['Background', 'Foreground', 'Orphan'] as const);
  const options: DeleteOptions = propagationPolicy ? { propagationPolicy } : {};
  if (name !== undefined) await client.delete(virtualMachines, namespace, name, signal, options);
}

export async function deleteGuest({ client, state, random, signal }: UserContext): Promise<void> {
  const { name, namespace } = some(state.list(VMIS), random);
  if (name !== undefined) await client.delete(virtualMachineInstances, namespace, name, signal);
}

/** Deletes a launcher pod behind everybody's back, with or without grace. */
export async function deleteLauncher({ client, state, random, signal }: UserContext): Promise<void> {
  const { name, namespace } = some(state.list('pods'), random);
  const options = random.number() < 0.3 ? { gracePeriodSeconds: 0 } : {};
  if (name !== undefined) await client.delete(pods, namespace, name, signal, options);
}

function some(
  objects: Iterable<KubeObject>,
  random: UserContext['random'],
): { readonly name?: string | undefined; readonly namespace: string } {
  const chosen = oneOf(
    random,
    [...objects].filter(({ metadata }) => metadata.deletionTimestamp === undefined),
  );
  return { name: chosen?.metadata.name, namespace: chosen?.metadata.namespace ?? NAMESPACE };
}
