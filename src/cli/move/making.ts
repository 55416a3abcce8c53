import { RESTORE_STRATEGY_ANNOTATION } from '../../api/kubevirt/well-known.ts';
import { effectiveRunStrategy } from '../../api/kubevirt/run-strategy.ts';
import type { VirtualMachine } from '../../api/kubevirt/virtual-machine.ts';
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
import { MOVE_LABEL } from './receiving-machine.ts';
import type { MoveRequest, SeenMove } from './seen.ts';
import { hasRight } from './verdict.ts';

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

/** Makes both halves of the migration, where they are not there. The target's is first: then there is somebody to be found. */
export async function makeHalves(
  { id, connectURL }: Pick<MovePlan, 'id' | 'connectURL'>,
  { key, send, receive }: Halves,
  { from, to }: Pick<MoveRequest, 'from' | 'to'>,
  making: Making,
  signal: AbortSignal,
): Promise<void> {
  const both = { key, migrationID: key };
  const object = (name: string, place: { namespace: string; name: string }, spec: object): KubeObject => ({
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstanceMigration',
    metadata: { name, namespace: place.namespace, labels: { [MOVE_LABEL]: id } },
    spec: { vmName: place.name, vmiName: place.name, ...spec },
  });
  await make(making.target, halves, object(receive, to, { receive: both }), id, making, signal);
  await make(making.source, halves, object(send, from, { sendTo: { ...both, connectURL } }), id, making, signal);
}

/**
 * Removes what a move made that has failed: the halves, the machine that waits, then what it needed, unless another machine
 * needs it by now. A machine that was there before waits no more. Answers what is left, in words.
 */
export async function removeMade(
  plan: MovePlan,
  { send, receive }: Halves,
  seen: SeenMove,
  making: Making,
  signal: AbortSignal,
): Promise<string[]> {
  const { from, to } = seen.request;
  const left: string[] = [];
  const remove = async (client: Client, resource: Resource, namespace: string, name: string): Promise<void> => {
    if (!(await removeOwn(client, resource, namespace, name, plan.id, making, signal)))
      left.push(`${resource.kind.toLowerCase()}/${name}${namespace === '' ? '' : ` in ${namespace}`}`);
  };
  await remove(making.source, halves, from.namespace, send);
  await remove(making.target, halves, to.namespace, receive);
  if (plan.machine.state === 'taken back') {
    const body: JsonObject = {
      metadata: { annotations: { [RESTORE_STRATEGY_ANNOTATION]: null }, labels: { [MOVE_LABEL]: null } },
      spec: { running: null, runStrategy: 'Halted' },
    };
    await making.target.patch(machines, to.namespace, to.name, { type: 'merge', body }, signal);
    making.print(`virtualmachine/${to.name} in ${to.namespace} is halted again`);
    return left;
  }
  if (plan.machine.state === 'there') return left;
  const guest = await making.target.find(virtualMachineInstances, to.namespace, to.name, signal);
  const machine = `virtualmachine/${to.name} in ${to.namespace}`;
  // Whatever was heard before: a machine that has the guest is not removed.
  if (hasRight(guest)) return [...left, machine, ...named(plan.objects)];
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
