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
import { type Halves, isHalfOf, isOfAnotherRun } from './halves.ts';
import { knownUidOf, type Making, WRITES_MAX } from './making.ts';
import { type MovePlan, plannedReceiver } from './plan.ts';
import { isUsedBy, type PlannedObject } from './planned-objects.ts';
import { MOVE_LABEL, RUN_ANNOTATION } from './receiving-machine.ts';
import type { MoveRequest, SeenMove } from './seen.ts';
import { hasCome } from './verdict.ts';

/**
 * Removes what a move made. Whoever runs the same move anew makes objects of the same names and label meanwhile, or begins to
 * use those that are there: nothing is removed but by the UID that it was known by, and nothing that another attempt uses.
 */

/** For how long a machine that is removed is waited for before what it needs is removed, too. */
const GONE_MS_MAX = 120_000;
const LOOK_AGAIN_MS = 500;
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
      const attempt = { id, key: pairKeyOf(half.spec) ?? '' };
      if (await removeOwn(client, halves, half, attempt, making, signal)) continue;
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
  if (half && pairKeyOf(half.spec) === key) await removeOwn(making.target, halves, half, { id, key }, making, signal);
}

/** What a move leaves behind, in words, on each side. */
export interface Left {
  readonly source: readonly string[];
  readonly target: readonly string[];
}

/**
 * Removes what a move made that has failed: the halves, those of former runs, too, the machine that waits, then what it
 * needed, unless another machine needs it by now. A machine that was there before waits no more. Who was refused has not
 * seen the move fail, and others may be at it: `isOwnOnly` removes nothing but what this very run made. Answers what is
 * left.
 */
export async function removeMade(
  plan: MovePlan,
  pair: Pick<Halves, 'key'>,
  seen: SeenMove,
  making: Making,
  signal: AbortSignal,
  { isOwnOnly = false }: { readonly isOwnOnly?: boolean } = {},
): Promise<Left> {
  const isOurs = (object: KubeObject): boolean => !isOwnOnly || making.traces.isOwn(object);
  const found = await halvesMade(plan.id, seen.request, making, signal);
  if (found.some(({ half }) => isOfAnother(half, pair))) return LEFT_TO_ANOTHER;
  const left: { source: string[]; target: string[] } = { source: [], target: [] };
  for (const { side, half } of found) {
    const isGone =
      !isOurs(half) || (await removeOwn(making[side], halves, half, { ...pair, id: plan.id }, making, signal));
    if (!isGone) left[side].push(nameOf(halves, half));
  }
  // Whoever has begun anew since then needs what is there.
  const newer = await halvesMade(plan.id, seen.request, making, signal);
  if (newer.some(({ half }) => isOfAnother(half, pair))) return LEFT_TO_ANOTHER;
  left.target.push(...(await removeObjects(plan, pair, seen, making, signal, isOurs)));
  return left;
}

/** The same, of all but the halves: that is at the target. */
async function removeObjects(
  plan: MovePlan,
  pair: Pick<Halves, 'key'>,
  { request: { to } }: SeenMove,
  making: Making,
  signal: AbortSignal,
  isOurs: (object: KubeObject) => boolean,
): Promise<string[]> {
  const { target } = making;
  const attempt = { ...pair, id: plan.id };
  if (plan.machine.state === 'taken back') {
    if (isOurs(plan.machine.object)) await haltAgain(plan, pair, making, signal);
    // It needs them, as it did before.
    return named(plan.objects.filter(({ state }) => state === 'missing'));
  }
  if (plan.machine.state === 'there') return [];
  const guest = await target.find(virtualMachineInstances, to.namespace, to.name, signal);
  const waiting = await target.find(virtualMachines, to.namespace, to.name, signal);
  if (waiting) {
    const isKnown = waiting.metadata.uid === knownUidOf(plannedReceiver(plan), making) && isOurs(waiting);
    // Whatever was heard before: a machine that has the guest is not removed, nor one that somebody made something else of.
    const isRemovable = isKnown && !hasCome({ machine: waiting, guest });
    if (!isRemovable || !(await removeOwn(target, machines, waiting, attempt, making, signal)))
      return [nameOf(machines, waiting), ...named(plan.objects)];
  }
  const left: string[] = [];
  for (const planned of plan.objects.toReversed()) {
    const { resource, object, state } = planned;
    const uid = knownUidOf(planned, making);
    const known = { ...object, metadata: { ...object.metadata, uid: uid ?? '' } };
    if (state === 'there' || uid === undefined || !isOurs(known)) continue;
    const others = await machinesThatSee(planned, to.namespace, target, signal);
    const isFree = others !== undefined && !isUsedBy(others, planned);
    if (!isFree || !(await removeOwn(target, resource, known, attempt, making, signal))) left.push(...named([planned]));
  }
  return left;
}

const ANOTHERS = ['all that was made, which the same command goes on with that somebody else runs'];
const LEFT_TO_ANOTHER: Left = { source: ANOTHERS, target: ANOTHERS };

/** Whether a half is of a run that has begun anew, and is not over. */
function isOfAnother(half: VirtualMachineInstanceMigration, { key }: Pick<Halves, 'key'>): boolean {
  return pairKeyOf(half.spec) !== key && !isFinalMigration(half);
}

/** The halves that runs of a move have made, on both sides. */
async function halvesMade(
  id: string,
  { from, to }: Pick<MoveRequest, 'from' | 'to'>,
  making: Making,
  signal: AbortSignal,
): Promise<{ readonly side: keyof Left; readonly half: VirtualMachineInstanceMigration }[]> {
  const labelSelector = `${MOVE_LABEL}=${id}`;
  const sides = [
    { side: 'source', place: from },
    { side: 'target', place: to },
  ] as const;
  const made = [];
  for (const { side, place } of sides) {
    const { namespace } = place;
    const { items } = await making[side].list(virtualMachineInstanceMigrations, { namespace, labelSelector }, signal);
    for (const half of items) if (isHalfOf(half, id, side, place)) made.push({ side, half });
  }
  return made;
}

/** A machine that was kept for its guest is kept again, unless it has its guest, or somebody made something else of it. */
async function haltAgain(
  { id, machine }: Pick<MovePlan, 'id' | 'machine'>,
  pair: Pick<Halves, 'key'>,
  { target, print }: Making,
  signal: AbortSignal,
): Promise<void> {
  const { namespace = '', name = '', uid = '' } = machine.object.metadata;
  for (let writes = 0; writes < WRITES_MAX; writes++) {
    const there = await target.find(virtualMachines, namespace, name, signal);
    if (there?.metadata.uid !== uid || there.metadata.labels?.[MOVE_LABEL] !== id || isOfAnotherRun(there, pair))
      return;
    const guest = await target.find(virtualMachineInstances, namespace, name, signal);
    if (hasCome({ machine: there, guest })) return;
    const { resourceVersion = '' } = there.metadata;
    const annotations = { [RESTORE_STRATEGY_ANNOTATION]: null, [RUN_ANNOTATION]: null };
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

/** What is removed has to be of this move, and of no other attempt of it than the one of this key. */
interface RemovedAttempt extends Pick<Halves, 'key'> {
  readonly id: string;
}

/**
 * Whether this very object is gone, or never was ours. One of the same name that came after it is left alone; so is one that
 * another attempt has begun to use, until the very instant in which it is removed.
 */
async function removeOwn(
  client: Client,
  resource: Resource,
  known: KubeObject,
  attempt: RemovedAttempt,
  { env, print }: Making,
  signal: AbortSignal,
): Promise<boolean> {
  const { namespace = '', name = '', uid = '' } = known.metadata;
  let isDeleted = false;
  for (let waitedMs = 0; waitedMs < GONE_MS_MAX; waitedMs += LOOK_AGAIN_MS) {
    const object = await client.find(resource, namespace, name, signal);
    if (object?.metadata.uid !== uid || object.metadata.labels?.[MOVE_LABEL] !== attempt.id) return true;
    if (isDeleted) {
      await sleep(env.clock, LOOK_AGAIN_MS, signal);
      continue;
    }
    if (isOfAnotherRun(object, attempt)) return false;
    const { resourceVersion = '' } = object.metadata;
    try {
      await client.delete(resource, namespace, name, signal, { preconditions: { uid, resourceVersion } });
      isDeleted = true;
      print(`${nameOf(resource, object)} deleted`);
    } catch (error) {
      if (!(error instanceof ApiError) || (error.code !== NOT_FOUND && error.code !== CONFLICT)) throw error;
    }
  }
  return false;
}
