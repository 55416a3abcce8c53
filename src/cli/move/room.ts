import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import { ApiError } from '../../api/status.ts';
import { errorMessage } from '../../api/error-message.ts';
import { machineNeeds } from '../../control/migration/machine-needs.ts';
import { TargetFitness } from '../../control/migration/target-fitness.ts';
import { targetPodOf } from '../../control/migration/target-pod.ts';
import {
  namespaces,
  nodes,
  persistentVolumeClaims,
  persistentVolumes,
  pods,
  storageClasses,
} from '../../control/resources.ts';
import { type Env, sleep } from '../../env/ports.ts';
import type { Client } from '../../kube/client.ts';
import type { Resource } from '../../kube/resource.ts';
import { SharedInformers } from '../../kube/shared-informers.ts';
import type { Pod } from '../../migration/fit/objects.ts';
import type { MovePlan } from './plan.ts';
import type { SeenMove } from './seen.ts';

/** Whether a node of the target could take the guest as things are. The scheduler there has the last word. */

const LOOK_MS_MAX = 30_000;

/** What was found: room, none (node by node), or that one may not look. */
export type Room =
  | { readonly kind: 'room' }
  | { readonly kind: 'none'; readonly why: string }
  | { readonly kind: 'unknown'; readonly why: string };

/** The pod that the guest will come to, as far as that can be told. */
export async function launcherOf(
  { source, target }: SeenMove,
  { receiver }: Pick<MovePlan, 'receiver'>,
  client: Client,
  signal: AbortSignal,
): Promise<Pod | undefined> {
  const { guest } = source;
  if (!receiver || !guest) return undefined;
  const needs = await needsOf(guest, client, signal);
  const isBlock = (name: string): boolean => target.claims.get(name)?.spec?.volumeMode === 'Block';
  const migration = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstanceMigration', metadata: {}, spec: {} };
  const configuration = target.configuration ?? {};
  return targetPodOf(receiver, migration, needs, { image: 'launcher', configuration, isBlock });
}

/** What the guest's machine needs of nodes; nothing, where one may not look at the node that it is on. */
async function needsOf(guest: VirtualMachineInstance, client: Client, signal: AbortSignal) {
  const node = await unlessDenied(client.find(nodes, '', guest.status?.nodeName ?? '', signal));
  return machineNeeds(guest, node?.metadata.labels ?? {});
}

/** Looks at all nodes and pods of the target. */
export async function roomFor(
  pod: Pod | undefined,
  { target }: SeenMove,
  { receiver }: Pick<MovePlan, 'receiver'>,
  clients: { readonly target: Client; readonly env: Env },
  signal: AbortSignal,
): Promise<Room> {
  if (!pod || !receiver) return { kind: 'unknown', why: 'no guest could be made' };
  try {
    return await heldAgainstNodes(receiver, withoutUnboundClaims(pod, target.claims), clients, signal);
  } catch (error) {
    if (error instanceof ApiError && error.code === 403) return { kind: 'unknown', why: errorMessage(error) };
    throw error;
  }
}

async function unlessDenied<T>(answer: Promise<T | undefined>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof ApiError && error.code === 403) return undefined;
    throw error;
  }
}

/** Claims that are not there yet are on no node. */
function withoutUnboundClaims(pod: Pod, claims: SeenMove['target']['claims']): Pod {
  const volumes = (pod.spec?.volumes ?? []).filter(({ persistentVolumeClaim }) => {
    const name = persistentVolumeClaim?.claimName;
    return name === undefined || claims.get(name)?.spec?.volumeName !== undefined;
  });
  return { ...pod, spec: { ...pod.spec, volumes } };
}

async function heldAgainstNodes(
  receiver: VirtualMachineInstance,
  pod: Pod,
  { target, env }: { readonly target: Client; readonly env: Env },
  signal: AbortSignal,
): Promise<Room> {
  await mayLook(target, signal);
  const informers = new SharedInformers({ client: target, env });
  const fitness = new TargetFitness(informers);
  const ended = new AbortController();
  const following = informers.all().map((informer) => informer.run(ended.signal));
  try {
    const synced = Promise.all(informers.all().map((informer) => informer.synced)).then(() => true);
    const late = sleep(env.clock, LOOK_MS_MAX, AbortSignal.any([signal, ended.signal])).then(
      () => false,
      () => false,
    );
    const failed = Promise.all(following).then(() => false);
    if (!(await Promise.race([synced, late, failed])))
      return { kind: 'unknown', why: 'the nodes could not be looked at in time' };
    const why = fitness.unfitness(receiver, pod);
    return why === undefined ? { kind: 'room' } : { kind: 'none', why };
  } finally {
    ended.abort();
    await Promise.allSettled(following);
  }
}

/** Informers try again for ever where they are refused. */
async function mayLook(client: Client, signal: AbortSignal): Promise<void> {
  for (const resource of [nodes, pods, persistentVolumeClaims, persistentVolumes, storageClasses, namespaces])
    await client.list(resource as unknown as Resource, { limit: 1 }, signal);
}
