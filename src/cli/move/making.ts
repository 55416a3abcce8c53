import { RESTORE_STRATEGY_ANNOTATION } from '../../api/kubevirt/well-known.ts';
import { effectiveRunStrategy } from '../../api/kubevirt/run-strategy.ts';
import { pairKeyOf } from '../../api/kubevirt/validate-migration.ts';
import type { VirtualMachine } from '../../api/kubevirt/virtual-machine.ts';
import {
  isFinalMigration,
  type VirtualMachineInstanceMigration,
} from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import type { JsonObject, KubeObject } from '../../api/meta.ts';
import { ApiError } from '../../api/status.ts';
import { type Env, sleep } from '../../env/ports.ts';
import type { Client } from '../../kube/client.ts';
import {
  virtualMachineInstanceMigrations,
  virtualMachineInstances,
  virtualMachines,
} from '../../kube/kubevirt-resources.ts';
import type { Resource } from '../../kube/resource.ts';
import { UserError } from '../failure.ts';
import { type MovePlan, plannedReceiver } from './plan.ts';
import { isUsedBy, type PlannedObject } from './planned-objects.ts';
import { MOVE_LABEL, type Place } from './receiving-machine.ts';
import type { MoveRequest, SeenMove } from './seen.ts';
import { hasCome } from './verdict.ts';

/** Makes what a move needs, and removes it again. */

export interface Making {
  readonly source: Client;
  readonly target: Client;
  readonly env: Env;
  readonly print: (line: string) => void;
}

/** For how long a machine that is removed is waited for before what it needs is removed, too. */
const GONE_MS_MAX = 120_000;
const LOOK_AGAIN_MS = 500;
/** For how long it is waited until the target says where it is reached. */
const ADDRESS_MS_MAX = 60_000;

const halves = virtualMachineInstanceMigrations as unknown as Resource;
const machines = virtualMachines as unknown as Resource;

/**
 * Makes all that is missing at the target. What was made meanwhile by the same move is taken as it is. False where some of
 * that is being removed again.
 */
export async function makeObjects(
  plan: MovePlan,
  seen: SeenMove,
  making: Making,
  signal: AbortSignal,
): Promise<boolean> {
  for (const { state, resource, object } of [...plan.objects, plannedReceiver(plan)])
    if (state === 'missing' && !(await make(making.target, resource, object, plan.id, making, signal))) return false;
  if (plan.machine.state !== 'taken back') return true;
  const { namespace, name } = seen.request.to;
  const strategy = effectiveRunStrategy(seen.source.machine.spec);
  const body: JsonObject = {
    metadata: { annotations: { [RESTORE_STRATEGY_ANNOTATION]: strategy }, labels: { [MOVE_LABEL]: plan.id } },
    spec: { running: null, runStrategy: 'WaitAsReceiver' },
  };
  await making.target.patch(machines, namespace, name, { type: 'merge', body }, signal);
  making.print(`virtualmachine/${name} in ${namespace} waits for its guest`);
  return true;
}

/** What is there then, made by whichever run of this move; undefined where it was in the way, and is gone. */
async function make<T extends KubeObject>(
  client: Client,
  resource: Resource<T>,
  object: T,
  id: string,
  { print }: Pick<Making, 'print'>,
  signal: AbortSignal,
): Promise<T | undefined> {
  const { namespace = '', name = '' } = object.metadata;
  const where = namespace === '' ? '' : ` in ${namespace}`;
  try {
    const made = await client.create(resource, object, signal);
    print(`${resource.kind.toLowerCase()}/${name}${where} created`);
    return made;
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 409) throw error;
    const there = await client.find(resource, namespace, name, signal);
    if (there && there.metadata.labels?.[MOVE_LABEL] !== id) throw error;
    return there;
  }
}

/** The names of both halves, which follow from the move, and what they know each other by. */
export interface Halves {
  readonly key: string;
  readonly send: string;
  readonly receive: string;
}

/** The halves of a move. There is one of each at a time: whoever makes the receiving one has chosen the key of both. */
export function halvesOf(id: string, key: string): Halves {
  return { key, send: `send-${id}`, receive: `receive-${id}` };
}

/** A key that nobody guesses. */
export function newKey(id: string, { random }: Pick<Env, 'random'>): string {
  return `move-${id}-${random.uuid()}`;
}

/** Removes the halves of former runs that were over when both sides were looked at, so that there can be new ones. */
export async function removeLeftovers(
  { id }: Pick<MovePlan, 'id'>,
  { source, target }: Pick<SeenMove, 'source' | 'target'>,
  making: Making,
  signal: AbortSignal,
): Promise<void> {
  for (const [client, { migrations }] of [[making.source, source] as const, [making.target, target] as const])
    for (const half of migrations) {
      const { namespace = '', name = '', uid = '', labels } = half.metadata;
      if (labels?.[MOVE_LABEL] !== id || !isFinalMigration(half)) continue;
      const there = await client.find(halves, namespace, name, signal);
      if (there?.metadata.uid !== uid || (await removeOwn(client, halves, namespace, name, id, making, signal)))
        continue;
      throw new UserError(
        `${name} in ${namespace}, of an earlier move, is over and cannot be removed until the other side has heard of it; see that both sides reach each other, and try again`,
      );
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
  const chosen = there && pairKeyOf(there.spec);
  const isOver = !there || isFinalMigration(there) || there.metadata.deletionTimestamp !== undefined;
  return isOver || chosen === undefined ? undefined : halvesOf(id, chosen);
}

/**
 * Where the target says that it is reached, as soon as its half does: a synchronization controller may be started by the
 * first half that there is. Undefined where it does not say so in time, or the half is gone.
 */
export async function reachedAt(
  { key, receive }: Halves,
  { to }: Pick<MoveRequest, 'to'>,
  { target, env }: Making,
  signal: AbortSignal,
): Promise<string | undefined> {
  for (let waitedMs = 0; waitedMs < ADDRESS_MS_MAX; waitedMs += LOOK_AGAIN_MS) {
    const half = await target.find(virtualMachineInstanceMigrations, to.namespace, receive, signal);
    if (!half || pairKeyOf(half.spec) !== key) return undefined;
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
  return there !== undefined && pairKeyOf(there.spec) === key;
}

/** Takes the receiving half back: the one that would send under its key cannot be made. */
export async function withdrawReceivingHalf(
  { id }: Pick<MovePlan, 'id'>,
  { key, receive }: Halves,
  { to }: Pick<MoveRequest, 'to'>,
  making: Making,
  signal: AbortSignal,
): Promise<void> {
  const half = await making.target.find(virtualMachineInstanceMigrations, to.namespace, receive, signal);
  if (half && pairKeyOf(half.spec) === key)
    await removeOwn(making.target, halves, to.namespace, receive, id, making, signal);
}

function halfOf(id: string, name: string, place: Place, spec: object): VirtualMachineInstanceMigration {
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstanceMigration',
    metadata: { name, namespace: place.namespace, labels: { [MOVE_LABEL]: id } },
    spec: { vmName: place.name, vmiName: place.name, ...spec },
  };
}

/**
 * Removes what a move made that has failed: the halves, those of former runs, too, the machine that waits, then what it
 * needed, unless another machine needs it by now. A machine that was there before waits no more. Answers what is left, in
 * words.
 */
export async function removeMade(
  plan: MovePlan,
  { key }: Pick<Halves, 'key'>,
  seen: SeenMove,
  making: Making,
  signal: AbortSignal,
): Promise<string[]> {
  const { to } = seen.request;
  const left: string[] = [];
  const remove = async (client: Client, resource: Resource, namespace: string, name: string): Promise<void> => {
    if (!(await removeOwn(client, resource, namespace, name, plan.id, making, signal)))
      left.push(`${resource.kind.toLowerCase()}/${name}${namespace === '' ? '' : ` in ${namespace}`}`);
  };
  const found = await halvesMade(plan.id, seen.request, making, signal);
  if (found.some(({ half }) => isOfAnother(half, key))) return LEFT_TO_ANOTHER;
  for (const { client, half } of found)
    await remove(client, halves, half.metadata.namespace ?? '', half.metadata.name ?? '');
  // Whoever has begun anew since then needs what is there.
  const newer = await halvesMade(plan.id, seen.request, making, signal);
  if (newer.some(({ half }) => isOfAnother(half, key))) return LEFT_TO_ANOTHER;
  if (plan.machine.state === 'taken back') {
    await haltAgain(seen.request, making, signal);
    // It needs them, as it did before.
    return [...left, ...named(plan.objects.filter(({ state }) => state === 'missing'))];
  }
  if (plan.machine.state === 'there') return left;
  const guest = await making.target.find(virtualMachineInstances, to.namespace, to.name, signal);
  const waiting = await making.target.find(virtualMachines, to.namespace, to.name, signal);
  const machine = `virtualmachine/${to.name} in ${to.namespace}`;
  // Whatever was heard before: a machine that has the guest is not removed, nor one that somebody made something else of.
  if (hasCome({ machine: waiting, guest })) return [...left, machine, ...named(plan.objects)];
  await remove(making.target, machines, to.namespace, to.name);
  if (left.includes(machine)) return [...left, ...named(plan.objects)];
  for (const planned of plan.objects.toReversed()) {
    const { resource, object, state } = planned;
    if (state === 'there') continue;
    const others = await machinesThatSee(planned, to.namespace, making.target, signal);
    if (!others) left.push(...named([planned]));
    else if (!isUsedBy(others, planned))
      await remove(making.target, resource, object.metadata.namespace ?? '', object.metadata.name ?? '');
  }
  return left;
}

const LEFT_TO_ANOTHER = ['all that was made, which the same command goes on with that somebody else runs'];

/** Whether a half is of a run that has begun anew, and is not over. */
function isOfAnother(half: VirtualMachineInstanceMigration, key: string): boolean {
  return pairKeyOf(half.spec) !== key && !isFinalMigration(half);
}

/** The halves that runs of a move have made, on both sides. */
async function halvesMade(
  id: string,
  { from, to }: Pick<MoveRequest, 'from' | 'to'>,
  { source, target }: Making,
  signal: AbortSignal,
): Promise<{ readonly client: Client; readonly half: VirtualMachineInstanceMigration }[]> {
  const labelSelector = `${MOVE_LABEL}=${id}`;
  const listed = async (client: Client, { namespace }: Place) => {
    const { items } = await client.list(virtualMachineInstanceMigrations, { namespace, labelSelector }, signal);
    return items.map((half) => ({ client, half }));
  };
  return [...(await listed(source, from)), ...(await listed(target, to))];
}

/** A machine that was kept for its guest is kept again. */
async function haltAgain({ to }: Pick<MoveRequest, 'to'>, making: Making, signal: AbortSignal): Promise<void> {
  const body: JsonObject = {
    metadata: { annotations: { [RESTORE_STRATEGY_ANNOTATION]: null }, labels: { [MOVE_LABEL]: null } },
    spec: { running: null, runStrategy: 'Halted' },
  };
  await making.target.patch(machines, to.namespace, to.name, { type: 'merge', body }, signal);
  making.print(`virtualmachine/${to.name} in ${to.namespace} is halted again`);
}

/** The machines that could refer to an object; undefined where one may not list them. */
async function machinesThatSee(
  { resource }: PlannedObject,
  namespace: string,
  client: Client,
  signal: AbortSignal,
): Promise<readonly VirtualMachine[] | undefined> {
  try {
    return (await client.list(virtualMachines, { namespace: resource.namespaced ? namespace : '' }, signal)).items;
  } catch (error) {
    if (error instanceof ApiError && error.code === 403) return undefined;
    throw error;
  }
}

function named(objects: readonly PlannedObject[]): string[] {
  return objects
    .filter(({ state }) => state !== 'there')
    .map(({ resource, object }) => `${resource.kind.toLowerCase()}/${object.metadata.name}`);
}

/** Whether it is gone, or never was ours. */
async function removeOwn(
  client: Client,
  resource: Resource,
  namespace: string,
  name: string,
  id: string,
  { env, print }: Making,
  signal: AbortSignal,
): Promise<boolean> {
  const object = await client.find(resource, namespace, name, signal);
  if (!object || object.metadata.labels?.[MOVE_LABEL] !== id) return true;
  const { uid = '' } = object.metadata;
  try {
    await client.delete(resource, namespace, name, signal, { preconditions: { uid } });
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 404) throw error;
  }
  print(`${resource.kind.toLowerCase()}/${name}${namespace === '' ? '' : ` in ${namespace}`} deleted`);
  for (let waitedMs = 0; waitedMs < GONE_MS_MAX; waitedMs += LOOK_AGAIN_MS) {
    const now = await client.find(resource, namespace, name, signal);
    if (now?.metadata.uid !== uid) return true;
    await sleep(env.clock, LOOK_AGAIN_MS, signal);
  }
  return false;
}
