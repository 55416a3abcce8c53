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
import { derivedSuffix } from '../../machinery/derived-identity.ts';
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

const halves = virtualMachineInstanceMigrations as unknown as Resource;
const machines = virtualMachines as unknown as Resource;

/** Makes all that is missing at the target. What was made meanwhile by the same move is taken as it is. */
export async function makeObjects(plan: MovePlan, seen: SeenMove, making: Making, signal: AbortSignal): Promise<void> {
  for (const planned of [...plan.objects, plannedReceiver(plan)])
    if (planned.state === 'missing')
      await make(making.target, planned.resource, planned.object, plan.id, making, signal);
  if (plan.machine.state !== 'taken back') return;
  const { namespace, name } = seen.request.to;
  const strategy = effectiveRunStrategy(seen.source.machine.spec);
  const body: JsonObject = {
    metadata: { annotations: { [RESTORE_STRATEGY_ANNOTATION]: strategy }, labels: { [MOVE_LABEL]: plan.id } },
    spec: { running: null, runStrategy: 'WaitAsReceiver' },
  };
  await making.target.patch(machines, namespace, name, { type: 'merge', body }, signal);
  making.print(`virtualmachine/${name} in ${namespace} waits for its guest`);
}

async function make(
  client: Client,
  resource: Resource,
  object: KubeObject,
  id: string,
  { print }: Pick<Making, 'print'>,
  signal: AbortSignal,
): Promise<void> {
  const { namespace = '', name = '' } = object.metadata;
  const where = namespace === '' ? '' : ` in ${namespace}`;
  try {
    await client.create(resource, object, signal);
    print(`${resource.kind.toLowerCase()}/${name}${where} created`);
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 409) throw error;
    const there = await client.find(resource, namespace, name, signal);
    if (there?.metadata.labels?.[MOVE_LABEL] !== id) throw error;
  }
}

/** The names of both halves. */
export interface Halves {
  readonly key: string;
  readonly send: string;
  readonly receive: string;
}

/** The halves of a key. */
export function halvesOf(id: string, key: string): Halves {
  const suffix = `${id}-${derivedSuffix(key, 'halves')}`;
  return { key, send: `send-${suffix}`, receive: `receive-${suffix}` };
}

/** A key that nobody guesses. */
export function newKey(id: string, { random }: Pick<Env, 'random'>): string {
  return `move-${id}-${random.uuid()}`;
}

/** Makes the half where the guest goes, where it is not there. It is the first: then there is somebody to be found. */
export async function makeReceivingHalf(
  { id }: Pick<MovePlan, 'id'>,
  { key, receive }: Halves,
  { to }: Pick<MoveRequest, 'to'>,
  making: Making,
  signal: AbortSignal,
): Promise<void> {
  const half = halfOf(id, receive, to, { receive: { key, migrationID: key } });
  await make(making.target, halves, half, id, making, signal);
}

/** Makes the half where the guest is, where it is not there: from then on it moves. */
export async function makeSendingHalf(
  { id, connectURL }: Pick<MovePlan, 'id' | 'connectURL'>,
  { key, send }: Halves,
  { from }: Pick<MoveRequest, 'from'>,
  making: Making,
  signal: AbortSignal,
): Promise<void> {
  const half = halfOf(id, send, from, { sendTo: { key, migrationID: key, connectURL } });
  await make(making.source, halves, half, id, making, signal);
}

function halfOf(id: string, name: string, place: Place, spec: object): KubeObject {
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
  if (found.some(({ half }) => pairKeyOf(half.spec) !== key && !isFinalMigration(half)))
    return ['all that was made, which the same command goes on with that somebody else runs'];
  for (const { client, half } of found)
    await remove(client, halves, half.metadata.namespace ?? '', half.metadata.name ?? '');
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
