import { pairKeyOf } from '../../api/kubevirt/validate-migration.ts';
import type { VirtualMachine } from '../../api/kubevirt/virtual-machine.ts';
import {
  isFinalMigration,
  type VirtualMachineInstanceMigration,
} from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { RESTORE_STRATEGY_ANNOTATION } from '../../api/kubevirt/well-known.ts';
import type { JsonObject, KubeObject } from '../../api/meta.ts';
import { ApiError } from '../../api/status.ts';
import { sleep } from '../../env/ports.ts';
import type { Client } from '../../kube/client.ts';
import {
  virtualMachineInstanceMigrations,
  virtualMachineInstances,
  virtualMachines,
} from '../../kube/kubevirt-resources.ts';
import type { Resource } from '../../kube/resource.ts';
import { UserError } from '../failure.ts';
import { type Halves, isHalfOf } from './halves.ts';
import type { Making } from './making.ts';
import { type MovePlan, plannedReceiver } from './plan.ts';
import { isUsedBy, type PlannedObject } from './planned-objects.ts';
import { MOVE_LABEL } from './receiving-machine.ts';
import type { MoveRequest, SeenMove } from './seen.ts';
import { hasCome } from './verdict.ts';

/**
 * Removes what a move made. Whoever runs the same move anew makes objects of the same names and label meanwhile: nothing is
 * removed but by the UID that it was known by.
 */

/** For how long a machine that is removed is waited for before what it needs is removed, too. */
const GONE_MS_MAX = 120_000;
const LOOK_AGAIN_MS = 500;
/** How often a machine is written to that others write to, too. */
const WRITES_MAX = 10;
const FORBIDDEN = 403;
const NOT_FOUND = 404;
const CONFLICT = 409;

const halves = virtualMachineInstanceMigrations as unknown as Resource;
const machines = virtualMachines as unknown as Resource;

/** Removes the halves of former runs that were over when both sides were looked at, so that there can be new ones. */
export async function removeLeftovers(
  { id }: Pick<MovePlan, 'id'>,
  { source, target, request }: Pick<SeenMove, 'source' | 'target' | 'request'>,
  making: Making,
  signal: AbortSignal,
): Promise<void> {
  const sides = [
    { client: making.source, role: 'source', place: request.from, migrations: source.migrations },
    { client: making.target, role: 'target', place: request.to, migrations: target.migrations },
  ] as const;
  for (const { client, role, place, migrations } of sides)
    for (const half of migrations) {
      if (!isHalfOf(half, id, role, place) || !isFinalMigration(half)) continue;
      if (await removeOwn(client, halves, half, id, making, signal)) continue;
      const { namespace, name } = half.metadata;
      throw new UserError(
        `${name} in ${namespace}, of an earlier move, is over and cannot be removed until the other side has heard of it; see that both sides reach each other, and try again`,
      );
    }
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
  if (half && pairKeyOf(half.spec) === key) await removeOwn(making.target, halves, half, id, making, signal);
}

/**
 * Removes what a move made that has failed: the halves, those of former runs, too, the machine that waits, then what it
 * needed, unless another machine needs it by now. A machine that was there before waits no more. Who was refused has not
 * seen the move fail, and others may be at it: `isOwnOnly` removes nothing but what this very run made. Answers what is
 * left, in words.
 */
export async function removeMade(
  plan: MovePlan,
  { key }: Pick<Halves, 'key'>,
  seen: SeenMove,
  making: Making,
  signal: AbortSignal,
  { isOwnOnly = false }: { readonly isOwnOnly?: boolean } = {},
): Promise<string[]> {
  const { target, traces } = making;
  const { to } = seen.request;
  const left: string[] = [];
  const isOurs = (object: KubeObject): boolean => !isOwnOnly || traces.isOwn(object);
  const remove = async (client: Client, resource: Resource, object: KubeObject): Promise<void> => {
    if (!(await removeOwn(client, resource, object, plan.id, making, signal))) left.push(nameOf(resource, object));
  };
  const found = await halvesMade(plan.id, seen.request, making, signal);
  if (found.some(({ half }) => isOfAnother(half, key))) return LEFT_TO_ANOTHER;
  for (const { client, half } of found) if (isOurs(half)) await remove(client, halves, half);
  // Whoever has begun anew since then needs what is there.
  const newer = await halvesMade(plan.id, seen.request, making, signal);
  if (newer.some(({ half }) => isOfAnother(half, key))) return LEFT_TO_ANOTHER;
  if (plan.machine.state === 'taken back') {
    if (isOurs(plan.machine.object)) await haltAgain(plan, making, signal);
    // It needs them, as it did before.
    return [...left, ...named(plan.objects.filter(({ state }) => state === 'missing'))];
  }
  if (plan.machine.state === 'there') return left;
  const guest = await target.find(virtualMachineInstances, to.namespace, to.name, signal);
  const waiting = await target.find(virtualMachines, to.namespace, to.name, signal);
  if (waiting) {
    const machine = nameOf(machines, waiting);
    const isKnown = waiting.metadata.uid === knownUidOf(plannedReceiver(plan), making) && isOurs(waiting);
    // Whatever was heard before: a machine that has the guest is not removed, nor one that somebody made something else of.
    if (!isKnown || hasCome({ machine: waiting, guest })) return [...left, machine, ...named(plan.objects)];
    await remove(target, machines, waiting);
    if (left.includes(machine)) return [...left, ...named(plan.objects)];
  }
  for (const planned of plan.objects.toReversed()) {
    const { resource, object, state } = planned;
    const uid = knownUidOf(planned, making);
    const known = { ...object, metadata: { ...object.metadata, uid: uid ?? '' } };
    if (state === 'there' || uid === undefined || !isOurs(known)) continue;
    const others = await machinesThatSee(planned, to.namespace, target, signal);
    if (!others) left.push(...named([planned]));
    else if (!isUsedBy(others, planned)) await remove(target, resource, known);
  }
  return left;
}

const LEFT_TO_ANOTHER = ['all that was made, which the same command goes on with that somebody else runs'];

/** What this run knows a planned object by: as it has made it, or found it, or seen it before. */
function knownUidOf({ resource, object, state }: PlannedObject, { traces }: Making): string | undefined {
  return state === 'missing' ? traces.uidOf(resource, object) : object.metadata.uid;
}

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
  const sides = [
    { client: source, role: 'source', place: from },
    { client: target, role: 'target', place: to },
  ] as const;
  const made = [];
  for (const { client, role, place } of sides) {
    const { namespace } = place;
    const { items } = await client.list(virtualMachineInstanceMigrations, { namespace, labelSelector }, signal);
    for (const half of items) if (isHalfOf(half, id, role, place)) made.push({ client, half });
  }
  return made;
}

/** A machine that was kept for its guest is kept again, unless it has its guest, or somebody made something else of it. */
async function haltAgain(
  { id, machine }: Pick<MovePlan, 'id' | 'machine'>,
  { target, print }: Making,
  signal: AbortSignal,
): Promise<void> {
  const { namespace = '', name = '', uid = '' } = machine.object.metadata;
  for (let writes = 0; writes < WRITES_MAX; writes++) {
    const there = await target.find(virtualMachines, namespace, name, signal);
    if (there?.metadata.uid !== uid || there.metadata.labels?.[MOVE_LABEL] !== id) return;
    const guest = await target.find(virtualMachineInstances, namespace, name, signal);
    if (hasCome({ machine: there, guest })) return;
    const { resourceVersion = '' } = there.metadata;
    const annotations = { [RESTORE_STRATEGY_ANNOTATION]: null };
    const body: JsonObject = {
      metadata: { uid, resourceVersion, annotations, labels: { [MOVE_LABEL]: null } },
      spec: { running: null, runStrategy: 'Halted' },
    };
    try {
      await target.patch(machines, namespace, name, { type: 'merge', body }, signal);
    } catch (error) {
      if (error instanceof ApiError && error.code === CONFLICT) continue;
      throw error;
    }
    print(`virtualmachine/${name} in ${namespace} is halted again`);
    return;
  }
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
    if (error instanceof ApiError && error.code === FORBIDDEN) return undefined;
    throw error;
  }
}

function named(objects: readonly PlannedObject[]): string[] {
  return objects
    .filter(({ state }) => state !== 'there')
    .map(({ resource, object }) => `${resource.kind.toLowerCase()}/${object.metadata.name}`);
}

function nameOf({ kind }: Resource, { metadata }: KubeObject): string {
  const { namespace = '', name = '' } = metadata;
  return `${kind.toLowerCase()}/${name}${namespace === '' ? '' : ` in ${namespace}`}`;
}

/** Whether this very object is gone, or never was ours. One of the same name that came after it is left alone. */
async function removeOwn(
  client: Client,
  resource: Resource,
  known: KubeObject,
  id: string,
  { env, print }: Making,
  signal: AbortSignal,
): Promise<boolean> {
  const { namespace = '', name = '', uid = '' } = known.metadata;
  const object = await client.find(resource, namespace, name, signal);
  if (object?.metadata.uid !== uid || object.metadata.labels?.[MOVE_LABEL] !== id) return true;
  try {
    await client.delete(resource, namespace, name, signal, { preconditions: { uid } });
    print(`${nameOf(resource, object)} deleted`);
  } catch (error) {
    if (!(error instanceof ApiError) || (error.code !== NOT_FOUND && error.code !== CONFLICT)) throw error;
  }
  for (let waitedMs = 0; waitedMs < GONE_MS_MAX; waitedMs += LOOK_AGAIN_MS) {
    const now = await client.find(resource, namespace, name, signal);
    if (now?.metadata.uid !== uid) return true;
    await sleep(env.clock, LOOK_AGAIN_MS, signal);
  }
  return false;
}
