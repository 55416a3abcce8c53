import type { KubeObject } from '../api/meta.ts';
import { namespaces, nodes, podDisruptionBudgets, pods } from '../cluster/resources.ts';
import type { Client } from '../kube/client.ts';
import type { Resource } from '../kube/resource.ts';
import type { Node, Pod } from '../migration/fit/objects.ts';
import { ENDS_AFTER_ANNOTATION } from './kubelet.ts';
import type { Action, UserContext } from './actions/context.ts';
import {
  cancelLeaving,
  createProtected,
  deschedule,
  drainNode,
  drainTaint,
  evictLauncher,
  executeTaint,
  leaveRoom,
  needRoom,
  preempt,
  untaintAll,
} from './actions/evictions.ts';
import {
  cancelPair,
  completePair,
  createTraveller,
  moveAway,
  pairAgain,
  renewNamespace,
  reuseKey,
  revokeTrust,
  trustAll,
} from './actions/clusters.ts';
import { createNamespace, deleteNamespace, fillNamespace, releaseThings } from './actions/namespaces.ts';
import { createThings, deleteQuota, deleteThings, setQuota } from './actions/quotas.ts';
import { adoptMember, createFamily, deleteMember } from './actions/ownership.ts';
import {
  createGuest,
  createMachine,
  deleteGuest,
  deleteLauncher,
  deleteMachine,
  setRunStrategy,
} from './actions/virtual-machines.ts';
import {
  createMovable,
  createSender,
  deleteMigration,
  deletePolicy,
  easeMoves,
  holdMoves,
  migrate,
  migrateAll,
  migrateTwice,
  resetLimits,
  setLimits,
  setPolicy,
  slowMoves,
} from './actions/migrations.ts';
import { createReceiver, pair } from './actions/pairs.ts';
import { oneOf } from './streams.ts';

/**
 * A model of users and admins: each thing that they do is drawn from a stream of its own, and aims at what there is when
 * its time has come. What they choose from is what is durable: people, too, know more than a cache.
 */

const NAMESPACE = 'default';
const CPUS = ['100m', '500m', '1', '2', '3500m'];
const APPS = ['web', 'db', 'batch'];

const priorityClasses: Resource = {
  group: 'scheduling.k8s.io',
  version: 'v1',
  plural: 'priorityclasses',
  kind: 'PriorityClass',
  namespaced: false,
};

/** Priority classes that are there from the beginning. */
export const PRIORITIES: readonly { readonly name: string; readonly value: number }[] = [
  { name: 'low', value: -10 },
  { name: 'high', value: 1000 },
];

/** Makes what the actions take for granted. */
export async function prepare(
  client: Client,
  signal: AbortSignal,
  moreNamespaces: readonly string[] = [],
): Promise<void> {
  for (const name of moreNamespaces)
    await client.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } }, signal);
  for (const { name, value } of PRIORITIES) {
    const object = { apiVersion: 'scheduling.k8s.io/v1', kind: 'PriorityClass', metadata: { name }, value };
    await client.create(priorityClasses, object, signal);
  }
}

async function createPod({ client, random, signal }: UserContext, cpus: readonly string[]): Promise<void> {
  const app = oneOf(random, APPS) ?? '';
  const priorityClassName = oneOf(random, ['', '', 'low', 'high']) ?? '';
  const cpu = oneOf(random, cpus) ?? '';
  const isShort = random.number() < 0.2;
  const object: KubeObject = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: `${app}-${Math.floor(random.number() * 1e6)}`,
      namespace: NAMESPACE,
      labels: { app },
      ...(isShort ? { annotations: { [ENDS_AFTER_ANNOTATION]: String(Math.floor(random.number() * 120_000)) } } : {}),
    },
    spec: {
      containers: [{ name: 'main', image: 'none', resources: { requests: { cpu, memory: '128Mi' } } }],
      terminationGracePeriodSeconds: Math.floor(random.number() * 60),
      ...(priorityClassName === '' ? {} : { priorityClassName }),
      ...(random.number() < 0.2 ? { tolerations: [{ key: 'maintenance', operator: 'Exists' }] } : {}),
      ...placementOf(random.number(), app),
    },
  };
  await client.create(pods, object as Pod, signal);
}

/** What some pods ask of where they are placed. */
function placementOf(draw: number, app: string): object {
  const labelSelector = { matchLabels: { app } };
  if (draw < 0.1) return { nodeSelector: { zone: 'a' } };
  if (draw < 0.25) {
    const term = { labelSelector, topologyKey: 'kubernetes.io/hostname' };
    return { affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term] } } };
  }
  if (draw > 0.35) return {};
  const constraint = { maxSkew: 1, topologyKey: 'zone', whenUnsatisfiable: 'DoNotSchedule', labelSelector };
  return { topologySpreadConstraints: [constraint] };
}

async function createPods(context: UserContext): Promise<void> {
  const count = 1 + Math.floor(context.random.number() * 5);
  for (let index = 0; index < count; index++) await createPod(context, CPUS);
}

/** Pods that find room almost anywhere. */
async function createSmallPods(context: UserContext): Promise<void> {
  for (let index = 0; index < 3; index++) await createPod(context, ['10m']);
}

function somePod({ state, random }: UserContext): Pod | undefined {
  return oneOf(
    random,
    [...state.list('pods')].filter(({ metadata }) => metadata.deletionTimestamp === undefined),
  );
}

async function deletePod(context: UserContext): Promise<void> {
  const pod = somePod(context);
  if (pod) await context.client.delete(pods, NAMESPACE, pod.metadata.name ?? '', context.signal);
}

/** Takes a pod away without waiting for its node. */
async function forceDeletePod(context: UserContext): Promise<void> {
  const name = somePod(context)?.metadata.name;
  if (name === undefined) return;
  await context.client.delete(pods, NAMESPACE, name, context.signal, { gracePeriodSeconds: 0 });
}

async function evictPod(context: UserContext): Promise<void> {
  const pod = somePod(context);
  if (pod) await evict(pod, context);
}

/** Evicts all pods of a node at once, whatever is answered. */
async function drain(context: UserContext): Promise<void> {
  const name = someNode(context)?.metadata.name;
  const there = [...context.state.list('pods')].filter((pod: Pod) => pod.spec?.nodeName === name);
  await Promise.allSettled(there.map((pod) => evict(pod, context)));
}

async function evict(pod: Pod, { client, signal }: UserContext): Promise<void> {
  const { name = '' } = pod.metadata;
  const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace: NAMESPACE } };
  await client.post(pods, NAMESPACE, name, 'eviction', eviction, signal);
}

function someNode({ state, random }: UserContext): Node | undefined {
  return oneOf(random, [...state.list('nodes')]);
}

async function cordon(context: UserContext): Promise<void> {
  const node = someNode(context);
  if (!node) return;
  const body = { spec: { unschedulable: node.spec?.unschedulable !== true } };
  await context.client.patch(nodes, '', node.metadata.name ?? '', { type: 'merge', body }, context.signal);
}

/** Whoever had a reason to cordon nodes has none any more. */
async function uncordonAll({ client, state, signal }: UserContext): Promise<void> {
  for (const node of state.list('nodes') as Iterable<Node>) {
    if (node.spec?.unschedulable !== true) continue;
    const body = { spec: { unschedulable: false } };
    await client.patch(nodes, '', node.metadata.name ?? '', { type: 'merge', body }, signal);
  }
}

/** Its kubelet, if that is alive, brings it back. */
async function deleteNode(context: UserContext): Promise<void> {
  const name = someNode(context)?.metadata.name;
  if (name !== undefined) await context.client.delete(nodes, '', name, context.signal);
}

/** Sets a taint, or takes it off again. */
async function taint(context: UserContext): Promise<void> {
  const { client, random, signal } = context;
  const node = someNode(context);
  if (!node) return;
  const live = await client.get(nodes, '', node.metadata.name ?? '', signal);
  const others = (live.spec?.taints ?? []).filter(({ key }) => key !== 'maintenance');
  const isTainted = others.length !== (live.spec?.taints ?? []).length;
  const effect = oneOf(random, ['NoSchedule', 'NoExecute']) ?? '';
  live.spec = { ...live.spec, taints: isTainted ? others : [...others, { key: 'maintenance', effect }] };
  await client.update(nodes, live, signal);
}

async function setBudget({ client, state, random, signal }: UserContext): Promise<void> {
  const app = oneOf(random, APPS) ?? '';
  const minAvailable = Math.floor(random.number() * 4);
  const selector = { matchLabels: { app } };
  if (state.get('poddisruptionbudgets.policy', `${NAMESPACE}/${app}`)) {
    const body = { spec: { minAvailable } };
    await client.patch(podDisruptionBudgets, NAMESPACE, app, { type: 'merge', body }, signal);
    return;
  }
  const metadata = { name: app, namespace: NAMESPACE };
  const object = { apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', metadata, spec: { minAvailable, selector } };
  await client.create(podDisruptionBudgets, object, signal);
}

async function deleteBudget({ client, random, signal }: UserContext): Promise<void> {
  await client.delete(podDisruptionBudgets, NAMESPACE, oneOf(random, APPS) ?? '', signal);
}

export const ACTIONS = {
  createPods,
  createSmallPods,
  deletePod,
  forceDeletePod,
  evictPod,
  drain,
  cordon,
  uncordonAll,
  deleteNode,
  taint,
  setBudget,
  deleteBudget,
  createFamily,
  deleteMember,
  adoptMember,
  createNamespace,
  fillNamespace,
  deleteNamespace,
  releaseThings,
  setQuota,
  deleteQuota,
  createThings,
  deleteThings,
  createMachine,
  createGuest,
  setRunStrategy,
  deleteMachine,
  deleteGuest,
  deleteLauncher,
  createMovable,
  createSender,
  migrate,
  migrateTwice,
  migrateAll,
  deleteMigration,
  setLimits,
  resetLimits,
  holdMoves,
  slowMoves,
  easeMoves,
  setPolicy,
  deletePolicy,
  createReceiver,
  pair,
  createTraveller,
  moveAway,
  pairAgain,
  reuseKey,
  completePair,
  cancelPair,
  revokeTrust,
  trustAll,
  renewNamespace,
  createProtected,
  drainNode,
  evictLauncher,
  deschedule,
  preempt,
  needRoom,
  leaveRoom,
  cancelLeaving,
  drainTaint,
  executeTaint,
  untaintAll,
} as const satisfies { readonly [name: string]: Action };

export type ActionName = keyof typeof ACTIONS;
