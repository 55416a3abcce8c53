import type { VirtualMachine } from '../../api/kubevirt/virtual-machine.ts';
import { formatTime, type JsonObject, type KubeObject } from '../../api/meta.ts';
import { ApiError, badRequest } from '../../api/status.ts';
import type { Clock } from '../../env/ports.ts';
import type { Client } from '../../kube/client.ts';
import type { EventRecorder } from '../../kube/event-recorder.ts';
import { virtualMachineInstances, virtualMachines } from '../../kube/kubevirt-resources.ts';
import { controllerOf } from '../../kube/owner.ts';
import type { Resource } from '../../kube/resource.ts';
import type { Node } from '../../migration/fit/objects.ts';
import { isOutOfService } from '../../migration/right-to-run/out-of-service.ts';
import { found } from '../find-object.ts';
import { planReclaim, type ReclaimFacts } from './reclaim-plan.ts';
import { type Keeping, planReclaimWithin } from './reclaim-within.ts';

/** Somebody's word that nothing of a guest runs at the other side of its migration, or but where they say. */
export interface ReclaimWish {
  readonly namespace: string;
  readonly name: string;
  readonly user: string;
  /** As it stands in the body. */
  readonly isFenced: unknown;
  /** Likewise: the node whose copy of a guest counts that is of this cluster alone. */
  readonly keep: unknown;
  /** Likewise: whether no copy of it does. */
  readonly afresh: unknown;
  readonly dryRun: boolean;
}

export interface ReclaimTools {
  readonly client: Client;
  readonly clock: Clock;
  readonly recorder: Pick<EventRecorder, 'event'>;
}

const nodes: Resource<Node> = { group: '', version: 'v1', plural: 'nodes', kind: 'Node', namespaced: false };
/** On a machine: who last said so, and when. */
const BY_ANNOTATION = 'godwit.dev/reclaimed-by';
const AT_ANNOTATION = 'godwit.dev/reclaimed-at';
/** How often it is decided anew when somebody else writes at the same time. */
const ATTEMPTS_MAX = 10;

/** Brings a guest back that the other side can run no more. Answers what becomes of it; rejects with what is in the way. */
export async function reclaim(tools: ReclaimTools, wish: ReclaimWish, signal: AbortSignal): Promise<string> {
  if (wish.isFenced !== true)
    throw badRequest('fenced has to be true: only who made sure that nothing runs at the other side may say so');
  const keeping = keepingOf(wish);
  for (let attempt = 1; ; attempt++) {
    try {
      return await attemptReclaim(tools, wish, keeping, signal);
    } catch (error) {
      if (!(error instanceof StaleError) || attempt === ATTEMPTS_MAX) throw error;
    }
  }
}

function keepingOf({ keep = null, afresh = null }: ReclaimWish): Keeping | undefined {
  const isKeep = typeof keep === 'string' && keep !== '';
  if ((keep !== null && !isKeep) || (afresh !== null && typeof afresh !== 'boolean'))
    throw badRequest('keep has to be the name of a node, and afresh true or false');
  if (isKeep && afresh === true) throw badRequest('keep and afresh exclude each other');
  if (isKeep) return { kind: 'keep', node: keep };
  return afresh === true ? { kind: 'afresh' } : undefined;
}

async function attemptReclaim(
  tools: ReclaimTools,
  wish: ReclaimWish,
  keeping: Keeping | undefined,
  signal: AbortSignal,
): Promise<string> {
  const { client, clock, recorder } = tools;
  const { namespace, name, user, dryRun } = wish;
  const facts = await observe(client, wish, keeping, clock.now(), signal);
  const plan = keeping ? planReclaimWithin(facts, keeping) : planReclaim(facts);
  const write = async <T extends KubeObject>(
    resource: Resource<T>,
    { metadata }: KubeObject,
    change: JsonObject,
    subresource?: string,
  ): Promise<T> => {
    const { uid = '', resourceVersion = '' } = metadata;
    const kept = { uid, resourceVersion, ...(change['metadata'] as JsonObject | undefined) };
    const patch = { type: 'merge', body: { ...change, metadata: kept } } as const;
    const how = { dryRun, ...(subresource === undefined ? {} : { subresource }) };
    return client.patch(resource, namespace, name, patch, signal, how).catch((error: unknown) => {
      throw error instanceof ApiError && error.code === 409 ? new StaleError(error) : error;
    });
  };
  // First of all: who does this is on record before anything comes of it.
  const annotations = { [BY_ANNOTATION]: user, [AT_ANNOTATION]: formatTime(clock.now()) };
  const noted: VirtualMachine = await write(virtualMachines, facts.machine, { metadata: { annotations } });
  const machine = dryRun ? facts.machine : noted;
  // Before the guest: by its record the machine would remember once more that it is away.
  if (plan.machine) await write(virtualMachines, machine, plan.machine, 'status');
  let { guest } = facts;
  // What is only tried is not there for the next change to follow it.
  for (const change of plan.guest?.slice(0, dryRun ? 1 : undefined) ?? [])
    guest &&= await write(virtualMachineInstances, guest, change, 'status');
  const message = `${user} says that the other side is fenced: ${plan.message}`;
  if (!dryRun) recorder.event(facts.machine, 'Warning', 'Reclaimed', message);
  return plan.message;
}

async function observe(
  client: Client,
  { namespace, name }: ReclaimWish,
  keeping: Keeping | undefined,
  nowMs: number,
  signal: AbortSignal,
): Promise<ReclaimFacts> {
  const machine = await found(client, virtualMachines, namespace, name, signal);
  const named = await client.find(virtualMachineInstances, namespace, name, signal);
  const guest = named && controllerOf(named)?.uid === machine.metadata.uid ? named : undefined;
  const holder = guest?.status?.rightToRun?.holder;
  const node = holder && (await client.find(nodes, '', holder.node, signal));
  const isHolderGone = node?.metadata.uid === holder?.nodeUID && isOutOfService(node);
  const kept = keeping?.kind === 'keep' ? await client.find(nodes, '', keeping.node, signal) : undefined;
  return { machine, guest, isHolderGone, keptNodeUID: kept?.metadata.uid, nowMs };
}

/** A conflict of writers, as opposed to one with what is asked for. */
class StaleError extends ApiError {
  constructor(cause: ApiError) {
    super(cause.code, cause.reason, cause.message, cause.details, cause);
  }
}
