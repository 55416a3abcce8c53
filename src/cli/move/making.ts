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
import { type Halves, halfOf, halvesOf, isHalfOf, runOf } from './halves.ts';
import { type MovePlan, plannedReceiver } from './plan.ts';
import type { PlannedObject } from './planned-objects.ts';
import { MOVE_LABEL, RUN_ANNOTATION } from './receiving-machine.ts';
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
/** How often an object is written to that others write to, too. */
export const WRITES_MAX = 10;
const NOT_FOUND = 404;
const CONFLICT = 409;

const machines = virtualMachines as unknown as Resource;

/**
 * Makes all that is missing at the target. What was made meanwhile by the same move is taken as it is. False where some of
 * that is being removed again, or is not as it was looked at.
 */
export async function makeObjects(
  plan: MovePlan,
  seen: SeenMove,
  halves: Pick<Halves, 'key'>,
  making: Making,
  signal: AbortSignal,
): Promise<boolean> {
  for (const { state, resource, object } of [...plan.objects, plannedReceiver(plan)]) {
    const { metadata } = object;
    const annotations = { ...metadata.annotations, [RUN_ANNOTATION]: runOf(halves) };
    const own = { ...object, metadata: { ...metadata, annotations } };
    if (state === 'missing' && !(await make(making.target, resource, own, plan.id, making, signal))) return false;
  }
  return plan.machine.state !== 'taken back' || takeBack(plan, seen, making, signal);
}

/** What this run knows a planned object by: as it has made it, or found it, or seen it before. */
export function knownUidOf({ resource, object, state }: PlannedObject, { traces }: Making): string | undefined {
  return state === 'missing' ? traces.uidOf(resource, object) : object.metadata.uid;
}

/**
 * Says on all that was made that the attempt of these halves uses it: whoever is about to remove what an attempt before it
 * made, or shares it, leaves that alone from then on. False where some of it is gone, or going.
 */
export async function claimObjects(
  plan: MovePlan,
  halves: Pick<Halves, 'key'>,
  making: Making,
  signal: AbortSignal,
): Promise<boolean> {
  const machine = plannedReceiver(plan);
  const isTakenBack = plan.machine.state === 'taken back';
  for (const planned of [...plan.objects, isTakenBack ? { ...machine, state: 'made' as const } : machine]) {
    const uid = knownUidOf(planned, making);
    if (planned.state === 'there' || uid === undefined) continue;
    if (!(await claim(planned, uid, runOf(halves), making, signal))) return false;
  }
  return true;
}

async function claim(
  { resource, object }: PlannedObject,
  uid: string,
  run: string,
  { target }: Making,
  signal: AbortSignal,
): Promise<boolean> {
  const { namespace = '', name = '' } = object.metadata;
  for (let writes = 0; writes < WRITES_MAX; writes++) {
    const there = await target.find(resource, namespace, name, signal);
    if (there?.metadata.uid !== uid || there.metadata.deletionTimestamp !== undefined) return false;
    if (there.metadata.annotations?.[RUN_ANNOTATION] === run) return true;
    const { resourceVersion = '' } = there.metadata;
    const body: JsonObject = { metadata: { uid, resourceVersion, annotations: { [RUN_ANNOTATION]: run } } };
    try {
      await target.patch(resource, namespace, name, { type: 'merge', body }, signal);
      return true;
    } catch (error) {
      if (!(error instanceof ApiError) || (error.code !== NOT_FOUND && error.code !== CONFLICT)) throw error;
    }
  }
  return false;
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
