import { sourceAnnotation, withoutCauses } from '../../api/kubevirt/evacuation.ts';
import type { KubeVirtConfiguration } from '../../api/kubevirt/kube-virt.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import { CREATED_BY_LABEL } from '../../api/kubevirt/well-known.ts';
import type { KubeObject } from '../../api/meta.ts';
import { ApiError, badRequest, conflict } from '../../api/status.ts';
import type { Client } from '../../kube/client.ts';
import { virtualMachineInstances, virtualMachines } from '../../kube/kubevirt-resources.ts';
import { controllerOf } from '../../kube/owner.ts';
import type { Resource } from '../../kube/resource.ts';
import { statusPatch } from '../../kube/status-patch.ts';
import { drainTaintKey, hasDrainTaint } from '../../migration/eviction/drain-taint.ts';
import type { Node } from '../../migration/fit/objects.ts';
import { found } from '../find-object.ts';

/** Somebody's wish that a guest which has to leave its node may stay. */
export interface StayWish {
  readonly resource: 'virtualmachines' | 'virtualmachineinstances';
  readonly namespace: string;
  readonly name: string;
  /** The node that it is marked for, where the body says so: another mark is not meant. */
  readonly evacuationNodeName: unknown;
  readonly dryRun: boolean;
}

const GUEST = { group: 'kubevirt.io', plural: 'virtualmachineinstance' };
const pods: Resource = { group: '', version: 'v1', plural: 'pods', kind: 'Pod', namespaced: true };
const nodes: Resource<Node> = { group: '', version: 'v1', plural: 'nodes', kind: 'Node', namespaced: false };
/** How often it is decided anew when somebody else writes at the same time. */
const ATTEMPTS_MAX = 10;

/**
 * Takes back that a guest has to leave its node, for all causes. What was made to move it and has not begun is taken back by
 * who made it. Rejects with what is in the way: a taint by which it would be told to leave again, or a pod that ends anyway.
 */
export async function cancelEvacuation(
  client: Client,
  configuration: KubeVirtConfiguration,
  wish: StayWish,
  signal: AbortSignal,
): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const guest = await guestOf(client, wish, signal);
    const marked = guest.status?.evacuationNodeName;
    if (!marked) return;
    await refuseFutile(client, configuration, guest, wish, signal);
    try {
      return await unmark(client, guest, wish.dryRun, signal);
    } catch (error) {
      const isStale = error instanceof ApiError && error.code === 409;
      if (!isStale || attempt === ATTEMPTS_MAX) throw error;
    }
  }
}

/** The guest itself, or that of a machine. */
async function guestOf(
  client: Client,
  { resource, namespace, name }: StayWish,
  signal: AbortSignal,
): Promise<VirtualMachineInstance> {
  if (resource === 'virtualmachines') await found(client, virtualMachines, namespace, name, signal);
  return found(client, virtualMachineInstances, namespace, name, signal);
}

async function refuseFutile(
  client: Client,
  configuration: KubeVirtConfiguration,
  guest: VirtualMachineInstance,
  { evacuationNodeName: wanted }: StayWish,
  signal: AbortSignal,
): Promise<void> {
  const { name = '' } = guest.metadata;
  const marked = guest.status?.evacuationNodeName ?? '';
  if (wanted !== undefined && wanted !== '' && wanted !== marked)
    throw conflict(GUEST, name, `it has to leave node ${JSON.stringify(marked)}, not ${JSON.stringify(wanted)}`);
  const node = await client.find(nodes, '', marked, signal);
  if (node && hasDrainTaint(node, configuration))
    throw badRequest(
      `Node ${JSON.stringify(marked)} has NodeDrainTaintKey ${JSON.stringify(drainTaintKey(configuration))}`,
    );
  const pod = await endingPod(client, guest, signal);
  if (pod)
    throw conflict(GUEST, name, `its pod ${pod.metadata.name} is terminating: it has to move, or is shut down with it`);
}

/** The guest's pod, where that is being deleted: nobody can take that back. */
async function endingPod(
  client: Client,
  { metadata, status }: VirtualMachineInstance,
  signal: AbortSignal,
): Promise<KubeObject | undefined> {
  const { namespace = '', uid = '' } = metadata;
  const labelSelector = `${CREATED_BY_LABEL}=${uid}`;
  const { items } = await client.list(pods, { namespace, labelSelector }, signal);
  const holder = status?.rightToRun?.holder?.podUID;
  return items
    .filter((pod) => controllerOf(pod)?.uid === uid && pod.metadata.deletionTimestamp !== undefined)
    .find((pod) => holder === undefined || pod.metadata.uid === holder);
}

async function unmark(
  client: Client,
  guest: VirtualMachineInstance,
  dryRun: boolean,
  signal: AbortSignal,
): Promise<void> {
  const { namespace = '', name = '', uid = '' } = guest.metadata;
  const body = statusPatch(
    guest,
    withoutCauses(guest, () => true),
  );
  if (!body) return;
  const how = { subresource: 'status', dryRun };
  const patch = { type: 'merge', body } as const;
  const unmarked = await client.patch(virtualMachineInstances, namespace, name, patch, signal, how);
  const annotations = sourceAnnotation(unmarked);
  if (!annotations) return;
  const change = { type: 'merge', body: { metadata: { uid, annotations } } } as const;
  await client.patch(virtualMachineInstances, namespace, name, change, signal, { dryRun });
}
