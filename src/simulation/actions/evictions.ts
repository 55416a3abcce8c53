import type { EvictionStrategy } from '../../api/kubevirt/eviction-strategy.ts';
import { formatTime, type KubeObject } from '../../api/meta.ts';
import type { VirtualMachine } from '../../api/kubevirt/virtual-machine.ts';
import { ApiError } from '../../api/status.ts';
import { nodes, pods } from '../../cluster/resources.ts';
import { cancelEvacuation } from '../../extension/subresources/evacuate-cancel.ts';
import { virtualMachines } from '../../kube/kubevirt-resources.ts';
import { controllerOf } from '../../kube/owner.ts';
import type { Node, Pod } from '../../migration/fit/objects.ts';
import { guestsOf } from '../moves.ts';
import { configurationIn } from '../protection.ts';
import { oneOf } from '../streams.ts';
import type { UserContext } from './context.ts';

/**
 * What drives guests off their nodes: people who drain, deschedulers, schedulers, taints, pods that need the room; and who
 * thinks better of it.
 */

const NAMESPACE = 'default';
const NAMES = ['db', 'mail', 'shop', 'web', 'wiki', 'cache'];
const MEMORY = ['32Mi', '64Mi', '128Mi'];
const GRACE_SECONDS_MAX = 30;
const STRATEGIES: readonly EvictionStrategy[] = [
  'LiveMigrate',
  'LiveMigrate',
  'LiveMigrate',
  'LiveMigrateIfPossible',
  'LiveMigrateIfPossible',
  'External',
  'None',
];
const DRAIN_TAINT = { key: 'kubevirt.io/drain', effect: 'NoSchedule' };
/** What pods are known by that need the room of guests. */
const URGENT = { app: 'urgent' };
const PREEMPTED = { type: 'DisruptionTarget', status: 'True', reason: 'PreemptionByScheduler' };

/** A machine that always runs, and that is moved, kept or ended when it has to leave. */
export async function createProtected({ client, random, signal }: UserContext): Promise<void> {
  const object = {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name: oneOf(random, NAMES) ?? '', namespace: NAMESPACE },
    spec: {
      runStrategy: 'Always',
      template: {
        spec: {
          domain: { devices: {}, memory: { guest: oneOf(random, MEMORY) ?? '' } },
          evictionStrategy: oneOf(random, STRATEGIES),
          terminationGracePeriodSeconds: Math.floor(random.number() * GRACE_SECONDS_MAX),
        },
      },
    },
  };
  await client.create(virtualMachines, object as unknown as VirtualMachine, signal);
}

/** Cordons a node and evicts all of its pods, as somebody who drains it; not all go on until it is empty. */
export async function drainNode(context: UserContext): Promise<void> {
  const { client, random, signal } = context;
  const name = someNode(context)?.metadata.name;
  if (name === undefined) return;
  await client.patch(nodes, '', name, { type: 'merge', body: { spec: { unschedulable: true } } }, signal);
  const rounds = 1 + Math.floor(random.number() * 3);
  for (let round = 0; round < rounds; round++)
    await Promise.allSettled(launchersOn(context, name).map((pod) => evict(pod, context)));
}

/** Somebody evicts a launcher for reasons of their own: its node goes on. */
export async function evictLauncher(context: UserContext): Promise<void> {
  const pod = someLauncher(context);
  if (pod) await evict(pod, context);
}

/** A descheduler would rather have a guest elsewhere. */
export async function deschedule(context: UserContext): Promise<void> {
  const pod = someLauncher(context);
  if (pod) await evict(pod, context, { 'requested-by': 'sigs.k8s.io/descheduler' });
}

/** A scheduler in need of room says why, and deletes a launcher. */
export async function preempt(context: UserContext): Promise<void> {
  const { client, nowMs, signal } = context;
  const pod = someLauncher(context);
  if (!pod) return;
  const { name = '', uid = '' } = pod.metadata;
  const condition = { ...PREEMPTED, lastTransitionTime: formatTime(nowMs) };
  const body = { metadata: { uid }, status: { conditions: [condition] } };
  await client.patch(pods, NAMESPACE, name, { type: 'strategic', body }, signal, { subresource: 'status' });
  await client.delete(pods, NAMESPACE, name, signal, { preconditions: { uid } });
}

/** A pod that is more urgent than any guest, and fits only where some guest is: the scheduler makes room for it. */
export async function needRoom(context: UserContext): Promise<void> {
  const { client, state, random, signal } = context;
  const node = state.get('nodes', someLauncher(context)?.spec?.nodeName ?? '') as Node | undefined;
  if (!node) return;
  const { memory = '' } = node.status?.allocatable ?? {};
  const object: KubeObject = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: `urgent-${Math.floor(random.number() * 1e6)}`, namespace: NAMESPACE, labels: URGENT },
    spec: {
      priorityClassName: 'high',
      nodeSelector: { 'kubernetes.io/hostname': node.metadata.name },
      // Nobody but who made it ends it: these nodes run nothing but guests.
      tolerations: [{ operator: 'Exists' }],
      containers: [{ name: 'main', image: 'none', resources: { requests: { memory } } }],
    },
  };
  await client.create(pods, object as Pod, signal);
}

/** Nobody needs the room any more. */
export async function leaveRoom({ client, state, signal }: UserContext): Promise<void> {
  for (const { metadata } of state.list('pods')) {
    const { name = '', labels } = metadata;
    if (labels?.['app'] !== URGENT.app) continue;
    await client.delete(pods, NAMESPACE, name, signal, { gracePeriodSeconds: 0 });
  }
}

/** Somebody has a guest stay that has to leave, whatever it has to leave for. */
export async function cancelLeaving({ client, state, random, signal }: UserContext): Promise<void> {
  const marked = guestsOf(state).filter(({ status }) => status?.evacuationNodeName !== undefined);
  const { name } = oneOf(random, marked)?.metadata ?? {};
  if (name === undefined) return;
  const wish = { resource: 'virtualmachineinstances', namespace: NAMESPACE, name, dryRun: false } as const;
  await cancelEvacuation(client, configurationIn(state), { ...wish, evacuationNodeName: undefined }, signal);
}

/** Wants a node empty by a taint, or takes it back. */
export function drainTaint(context: UserContext): Promise<void> {
  return toggleTaint(context, DRAIN_TAINT);
}

/** Drives all pods off a node that do not tolerate it, or lets them come back. */
export function executeTaint(context: UserContext): Promise<void> {
  return toggleTaint(context, { key: 'maintenance', effect: 'NoExecute' });
}

/** Whoever had a reason to taint nodes has none any more. */
export async function untaintAll(context: UserContext): Promise<void> {
  for (const { metadata } of context.state.list('nodes'))
    while (!(await isUntainted(context, metadata.name ?? ''))) context.signal.throwIfAborted();
}

/** False where somebody else wrote at the same time: whoever means it tries again. */
async function isUntainted({ client, signal }: UserContext, name: string): Promise<boolean> {
  const node = await client.get(nodes, '', name, signal);
  const taints = (node.spec?.taints ?? []).filter(({ key }) => key !== DRAIN_TAINT.key && key !== 'maintenance');
  if (taints.length === (node.spec?.taints ?? []).length) return true;
  node.spec = { ...node.spec, taints };
  try {
    await client.update(nodes, node, signal);
    return true;
  } catch (error) {
    if (error instanceof ApiError && error.code === 409) return false;
    throw error;
  }
}

async function toggleTaint(
  context: UserContext,
  taint: { readonly key: string; readonly effect: string },
): Promise<void> {
  const { client, signal } = context;
  const name = someNode(context)?.metadata.name;
  if (name === undefined) return;
  const node = await client.get(nodes, '', name, signal);
  const before = node.spec?.taints ?? [];
  const others = before.filter(({ key }) => key !== taint.key);
  node.spec = { ...node.spec, taints: others.length < before.length ? others : [...others, taint] };
  await client.update(nodes, node, signal);
}

async function evict(
  pod: Pod,
  { client, signal }: UserContext,
  annotations: Record<string, string> = {},
): Promise<void> {
  const { name = '' } = pod.metadata;
  const metadata = { name, namespace: NAMESPACE, annotations };
  const eviction: KubeObject = { apiVersion: 'policy/v1', kind: 'Eviction', metadata };
  await client.post(pods, NAMESPACE, name, 'eviction', eviction, signal);
}

function someNode({ state, random }: UserContext): Node | undefined {
  return oneOf(random, [...state.list('nodes')]);
}

function someLauncher(context: UserContext): Pod | undefined {
  return oneOf(
    context.random,
    launchers(context).filter(({ metadata }) => metadata.deletionTimestamp === undefined),
  );
}

function launchersOn(context: UserContext, node: string): Pod[] {
  return launchers(context).filter((pod) => pod.spec?.nodeName === node);
}

function launchers({ state }: UserContext): Pod[] {
  return [...(state.list('pods') as Iterable<Pod>)].filter(
    (pod) => controllerOf(pod)?.kind === 'VirtualMachineInstance' && pod.status?.phase === 'Running',
  );
}
