import type { KubeObject } from '../../api/meta.ts';
import { ApiError } from '../../api/status.ts';
import { pods, resourceQuotas } from '../../control/resources.ts';
import type { Env } from '../../env/ports.ts';
import type { Client } from '../../kube/client.ts';
import type { Resource } from '../../kube/resource.ts';
import type { Pod } from '../../migration/fit/objects.ts';
import { type MovePlan, plannedReceiver } from './plan.ts';
import type { Obstacle } from './planned-objects.ts';
import type { Place } from './receiving-machine.ts';
import { type Made, quotaObstacles } from './quotas.ts';
import { missingRights } from './rights.ts';

/**
 * Whether the target would take what is to be made: it is asked to make it without doing so, each by itself; whether quotas
 * leave room for all of it is reckoned here.
 */

/** What the target says to it. `notes`: what could not be tried. */
export interface Trial {
  readonly obstacles: readonly Obstacle[];
  readonly notes: readonly string[];
}

/** Who tries may do all that it takes to make the objects; whether they may make pods is asked. */
export async function tryOut(
  plan: MovePlan,
  pod: Pod | undefined,
  { namespace }: Place,
  { target: client, env }: { readonly target: Client; readonly env: Env },
  signal: AbortSignal,
): Promise<Trial> {
  const obstacles: Obstacle[] = [];
  const missing = plan.objects.filter(({ state }) => state === 'missing');
  const machine = plannedReceiver(plan);
  // Where its instance type is not there yet, nobody knows what would be said to the machine.
  const isSized = !missing.some(({ resource }) => resource.group === 'instancetype.kubevirt.io');
  for (const { resource, object } of machine.state === 'missing' && isSized ? [...missing, machine] : missing) {
    const why = await refusal(client, resource, object, signal);
    if (why !== undefined) obstacles.push(refused(`${resource.kind} ${object.metadata.name}`, why));
  }
  const own = machine.state === 'missing' ? [...missing, machine] : missing;
  if (!pod) return together(obstacles, own, namespace, { client, env }, signal);
  const launchers = pods as unknown as Resource;
  const right = { verb: 'create', resource: launchers, namespace };
  if ((await missingRights(client, [right], '', signal)).length > 0) {
    const trial = await together(obstacles, own, namespace, { client, env }, signal);
    const unseen = `whether quotas of ${namespace} leave room for its pod was not seen: you may not look`;
    return { ...trial, notes: [...trial.notes, unseen] };
  }
  const launcher = ofNobody(pod, namespace);
  const why = await refusal(client, launchers, launcher, signal);
  if (why !== undefined) obstacles.push(refused('the pod of the guest', why));
  return together(obstacles, [...own, { resource: launchers, object: launcher }], namespace, { client, env }, signal);
}

/** What quotas say to all of it, where they have nothing against each. */
async function together(
  obstacles: readonly Obstacle[],
  all: readonly Made[],
  namespace: string,
  { client, env }: { readonly client: Client; readonly env: Env },
  signal: AbortSignal,
): Promise<Trial> {
  if (obstacles.length > 0) return { obstacles, notes: [] };
  try {
    const { items } = await client.list(resourceQuotas, { namespace }, signal);
    return { obstacles: quotaObstacles(items, all, env.clock.now()), notes: [] };
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== FORBIDDEN) throw error;
    return {
      obstacles,
      notes: [`whether quotas of ${namespace} leave room for all of it was not seen: you may not look`],
    };
  }
}

function refused(what: string, why: string): Obstacle {
  return { what: `the target would refuse ${what}: ${why}`, fix: 'see to that there, or ask whoever made the rule' };
}

/** As nobody has made it yet, it belongs to nobody. */
function ofNobody(pod: Pod, namespace: string): Pod {
  const { ownerReferences: _, ...metadata } = pod.metadata;
  return { ...pod, metadata: { ...metadata, namespace } };
}

const FORBIDDEN = 403;
const CONFLICT = 409;
const TROUBLE = 500;

/** Why the server would not take it. That it cannot be tried, or is there by now, is no reason. */
async function refusal(
  client: Client,
  resource: Resource,
  object: KubeObject,
  signal: AbortSignal,
): Promise<string | undefined> {
  try {
    await client.create(resource, object, signal, { dryRun: true });
    return undefined;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const { code, message } = error;
    const isUntried = code >= TROUBLE || code === CONFLICT || /dry.?run/i.test(message);
    return isUntried ? undefined : message;
  }
}
