import { RESTORE_STRATEGY_ANNOTATION } from '../../api/kubevirt/well-known.ts';
import { effectiveRunStrategy } from '../../api/kubevirt/run-strategy.ts';
import { pairKeyOf } from '../../api/kubevirt/validate-migration.ts';
import {
  isFinalMigration,
  type VirtualMachineInstanceMigration,
} from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import type { JsonObject, KubeObject } from '../../api/meta.ts';
import { ApiError } from '../../api/status.ts';
import { type Env, sleep } from '../../env/ports.ts';
import type { Client } from '../../kube/client.ts';
import { virtualMachineInstanceMigrations, virtualMachines } from '../../kube/kubevirt-resources.ts';
import type { Resource } from '../../kube/resource.ts';
import { UserError } from '../failure.ts';
import { type Halves, halfOf, halvesOf, isHalfOf } from './halves.ts';
import { type MovePlan, plannedReceiver } from './plan.ts';
import { MOVE_LABEL } from './receiving-machine.ts';
import type { MoveRequest, SeenMove } from './seen.ts';
import type { Traces } from './traces.ts';

/** Makes what a move needs. */

export interface Making {
  readonly source: Client;
  readonly target: Client;
  readonly env: Env;
  readonly print: (line: string) => void;
  readonly traces: Traces;
}

const LOOK_AGAIN_MS = 500;
/** For how long it is waited until the target says where it is reached. */
const ADDRESS_MS_MAX = 60_000;
const CONFLICT = 409;

const machines = virtualMachines as unknown as Resource;

/**
 * Makes all that is missing at the target. What was made meanwhile by the same move is taken as it is. False where some of
 * that is being removed again, or is not as it was looked at.
 */
export async function makeObjects(
  plan: MovePlan,
  seen: SeenMove,
  making: Making,
  signal: AbortSignal,
): Promise<boolean> {
  for (const { state, resource, object } of [...plan.objects, plannedReceiver(plan)])
    if (state === 'missing' && !(await make(making.target, resource, object, plan.id, making, signal))) return false;
  return plan.machine.state !== 'taken back' || takeBack(plan, seen, making, signal);
}

/** Has a machine wait that was kept for its guest. False where it is not as it was looked at. */
async function takeBack(
  { id, machine }: Pick<MovePlan, 'id' | 'machine'>,
  seen: Pick<SeenMove, 'source'>,
  { target, print, traces }: Making,
  signal: AbortSignal,
): Promise<boolean> {
  const { namespace = '', name = '', uid = '', resourceVersion = '', labels } = machine.object.metadata;
  const strategy = effectiveRunStrategy(seen.source.machine.spec);
  const annotations = { [RESTORE_STRATEGY_ANNOTATION]: strategy };
  const body: JsonObject = {
    metadata: { uid, resourceVersion, annotations, labels: { [MOVE_LABEL]: id } },
    spec: { running: null, runStrategy: 'WaitAsReceiver' },
  };
  try {
    const waiting = await target.patch(machines, namespace, name, { type: 'merge', body }, signal);
    if (labels?.[MOVE_LABEL] === id) traces.found(machines, waiting);
    else traces.made(machines, waiting);
  } catch (error) {
    if (error instanceof ApiError && error.code === CONFLICT) return false;
    throw error;
  }
  print(`virtualmachine/${name} in ${namespace} waits for its guest`);
  return true;
}

/**
 * What is there then, made by whichever run of this move; undefined where it was in the way, and is gone, or going. Whatever
 * the server refused it for: that another run was first has many faces, as a quota that has room for it once.
 */
async function make<T extends KubeObject>(
  client: Client,
  resource: Resource<T>,
  object: T,
  id: string,
  { print, traces }: Pick<Making, 'print' | 'traces'>,
  signal: AbortSignal,
): Promise<T | undefined> {
  const { namespace = '', name = '' } = object.metadata;
  const where = namespace === '' ? '' : ` in ${namespace}`;
  const kind = resource as unknown as Resource;
  try {
    const made = await client.create(resource, object, signal);
    traces.made(kind, made);
    print(`${resource.kind.toLowerCase()}/${name}${where} created`);
    return made;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const there = await client.find(resource, namespace, name, signal);
    const isOwn = there?.metadata.labels?.[MOVE_LABEL] === id;
    if (there ? !isOwn : error.code !== CONFLICT) throw error;
    if (!there || there.metadata.deletionTimestamp !== undefined) return undefined;
    traces.found(kind, there);
    return there;
  }
}

/**
 * Makes the half where the guest goes. It is the first: then there is somebody to be found. Where somebody else has made
 * it, both halves are theirs. Undefined where it is over already: both sides have to be looked at again.
 */
export async function makeReceivingHalf(
  { id }: Pick<MovePlan, 'id'>,
  { key, receive }: Halves,
  { to }: Pick<MoveRequest, 'to'>,
  making: Making,
  signal: AbortSignal,
): Promise<Halves | undefined> {
  const half = halfOf(id, receive, to, { receive: { key, migrationID: key } });
  const there = await make(making.target, virtualMachineInstanceMigrations, half, id, making, signal);
  if (!there || isFinalMigration(there)) return undefined;
  if (!isHalfOf(there, id, 'target', to)) throw notAHalf(there);
  const chosen = pairKeyOf(there.spec);
  return chosen === undefined ? undefined : halvesOf(id, chosen);
}

function notAHalf({ metadata }: VirtualMachineInstanceMigration): UserError {
  const { namespace = '', name = '' } = metadata;
  return new UserError(
    `the migration ${name} in ${namespace} has the name of a half of this move, and is none; 'kubectl delete vmim ${name} -n ${namespace}' removes it`,
  );
}

/**
 * Where the target says that it is reached, as soon as its half does: a synchronization controller may be started by the
 * first half that there is. Undefined where it does not say so in time, or the half is gone, or over.
 */
export async function reachedAt(
  { key, receive }: Halves,
  { to }: Pick<MoveRequest, 'to'>,
  { target, env }: Pick<Making, 'target' | 'env'>,
  signal: AbortSignal,
): Promise<string | undefined> {
  for (let waitedMs = 0; waitedMs < ADDRESS_MS_MAX; waitedMs += LOOK_AGAIN_MS) {
    const half = await target.find(virtualMachineInstanceMigrations, to.namespace, receive, signal);
    if (!half || pairKeyOf(half.spec) !== key) return undefined;
    if (isFinalMigration(half) || half.metadata.deletionTimestamp !== undefined) return undefined;
    const { syncEndpoint } = half.status ?? {};
    if (syncEndpoint) return syncEndpoint;
    await sleep(env.clock, LOOK_AGAIN_MS, signal);
  }
  return undefined;
}

/** Makes the half where the guest is: from then on it moves. False where one of another key is in the way. */
export async function makeSendingHalf(
  { id }: Pick<MovePlan, 'id'>,
  connectURL: string,
  { key, send }: Halves,
  { from }: Pick<MoveRequest, 'from'>,
  making: Making,
  signal: AbortSignal,
): Promise<boolean> {
  const half = halfOf(id, send, from, { sendTo: { key, migrationID: key, connectURL } });
  const there = await make(making.source, virtualMachineInstanceMigrations, half, id, making, signal);
  if (there && !isHalfOf(there, id, 'source', from)) throw notAHalf(there);
  return there !== undefined && pairKeyOf(there.spec) === key;
}
