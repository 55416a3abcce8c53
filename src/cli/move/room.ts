import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import { ApiError } from '../../api/status.ts';
import { errorMessage } from '../../api/error-message.ts';
import { machineNeeds } from '../../control/migration/machine-needs.ts';
import { TargetFitness } from '../../control/migration/target-fitness.ts';
import { targetPodOf } from '../../control/migration/target-pod.ts';
import { nodes, persistentVolumeClaims } from '../../control/resources.ts';
import { type Env, sleep } from '../../env/ports.ts';
import type { Client } from '../../kube/client.ts';
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

/** Looks at all nodes and pods of the target. */
export async function roomFor(
  seen: SeenMove,
  plan: Pick<MovePlan, 'receiver'>,
  clients: { readonly source: Client; readonly target: Client; readonly env: Env },
): Promise<Room> {
  const { receiver } = plan;
  const { guest } = seen.source;
  if (!receiver || !guest) return { kind: 'unknown', why: 'no guest could be made' };
  try {
    const needs = await needsOf(guest, clients.source);
    const pod = podOf(receiver, needs, seen);
    return await heldAgainstNodes(receiver, pod, clients);
  } catch (error) {
    if (error instanceof ApiError && error.code === 403) return { kind: 'unknown', why: errorMessage(error) };
    throw error;
  }
}

async function needsOf(guest: VirtualMachineInstance, client: Client): Promise<ReturnType<typeof machineNeeds>> {
  const node = await client.find(nodes, '', guest.status?.nodeName ?? '', new AbortController().signal);
  return machineNeeds(guest, node?.metadata.labels ?? {});
}

/** The pod that will be made, without claims: those that are not there yet are on no node. */
function podOf(receiver: VirtualMachineInstance, needs: ReturnType<typeof machineNeeds>, { target }: SeenMove): Pod {
  const isBlock = (name: string): boolean => target.claims.get(name)?.spec?.volumeMode === 'Block';
  const migration = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstanceMigration', metadata: {}, spec: {} };
  const configuration = target.configuration ?? {};
  const pod = targetPodOf(receiver, migration, needs, { image: '', configuration, isBlock });
  const volumes = (pod.spec?.volumes ?? []).filter(({ persistentVolumeClaim }) => {
    const name = persistentVolumeClaim?.claimName;
    return name === undefined || target.claims.get(name)?.spec?.volumeName !== undefined;
  });
  return { ...pod, spec: { ...pod.spec, volumes } };
}

async function heldAgainstNodes(
  receiver: VirtualMachineInstance,
  pod: Pod,
  { target, env }: { readonly target: Client; readonly env: Env },
): Promise<Room> {
  await mayLook(target);
  const informers = new SharedInformers({ client: target, env });
  const fitness = new TargetFitness(informers);
  const ended = new AbortController();
  const following = informers.all().map((informer) => informer.run(ended.signal));
  try {
    const synced = Promise.all(informers.all().map((informer) => informer.synced)).then(() => true);
    const late = sleep(env.clock, LOOK_MS_MAX, ended.signal).then(
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
async function mayLook(client: Client): Promise<void> {
  const { signal } = new AbortController();
  await client.list(nodes, { limit: 1 }, signal);
  await client.list(persistentVolumeClaims, { limit: 1 }, signal);
}
