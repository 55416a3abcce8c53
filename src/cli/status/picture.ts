import { causesOf } from '../../api/kubevirt/evacuation.ts';
import { progressSummary } from '../../api/kubevirt/migration-progress.ts';
import { isMigratable } from '../../api/kubevirt/eviction-strategy.ts';
import type { VirtualMachine } from '../../api/kubevirt/virtual-machine.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import { DRAIN_BLOCKED } from '../../control/evacuation/hindrances.ts';
import { findCondition, isConditionTrue } from '../../kube/conditions.ts';
import { keyOf } from '../../kube/resource.ts';
import { hasDrainTaint } from '../../migration/eviction/drain-taint.ts';
import type { Node } from '../../migration/fit/objects.ts';
import { sourceNodeOf } from '../../migration/phase/facts.ts';
import { type Moving, type Queue, queueOf } from '../queue/queue.ts';
import { waitingWords } from '../queue/queue-words.ts';
import type { SeenCluster } from '../seen/seen-cluster.ts';

/** The cluster in one picture: nodes, what runs on each, and what moves; pure. */

export interface MachinePicture {
  readonly name: string;
  /** In a word, as `kubectl get vm` says it. */
  readonly status: string;
  /** When it was made. */
  readonly since: string | undefined;
  readonly isMigratable: boolean;
  readonly move: MovePicture | undefined;
  /** Why it waits to move, if it does. */
  readonly waits: string | undefined;
  /** What somebody should know: why it does not start, or has to leave its node. */
  readonly note: string | undefined;
}

export interface MovePicture {
  readonly migration: string;
  readonly phase: string;
  readonly from: string | undefined;
  readonly to: string | undefined;
  readonly percent: number | undefined;
  readonly summary: string;
}

export interface NodePicture {
  readonly name: string;
  readonly isReady: boolean;
  /** Besides that: that it takes no pods, is being emptied, or cannot be. */
  readonly remarks: readonly string[];
  /** When it was made. */
  readonly since: string | undefined;
  readonly virtualMachines: readonly MachinePicture[];
  /** Who is on the way to it. */
  readonly arriving: readonly string[];
}

export interface ClusterPicture {
  readonly nodes: readonly NodePicture[];
  /** Those that are on no node. */
  readonly elsewhere: readonly MachinePicture[];
  readonly moving: number;
  readonly waiting: number;
  /** What may not be looked at. */
  readonly denied: readonly string[];
}

/** Makes the picture; of one namespace where one is given. */
export function pictureOf(seen: SeenCluster, namespace?: string): ClusterPicture {
  const queue = queueOf(seen);
  const guests = new Map(seen.guests.map((guest) => [keyOf(guest), guest]));
  const machines = new Map(seen.machines.map((machine) => [keyOf(machine), machine]));
  const byNode = new Map<string, MachinePicture[]>();
  const elsewhere: MachinePicture[] = [];
  const words = movesIn(queue, seen.nowMs);
  for (const key of [...new Set([...machines.keys(), ...guests.keys()])].toSorted()) {
    if (namespace !== undefined && !key.startsWith(`${namespace}/`)) continue;
    const guest = guests.get(key);
    const picture = machinePicture(key, machines.get(key), guest, words);
    const node = guest && isThere(guest) ? sourceNodeOf(guest) : undefined;
    if (node === undefined || node === '') elsewhere.push(picture);
    else byNode.set(node, [...(byNode.get(node) ?? []), picture]);
  }
  const known = new Map(seen.nodes.map((node) => [node.metadata.name ?? '', node]));
  // Whoever may not see nodes sees their guests on them.
  const names = [...new Set([...known.keys(), ...byNode.keys()])].toSorted();
  const isShown = ({ machine }: { readonly machine: string }): boolean =>
    namespace === undefined || machine.startsWith(`${namespace}/`);
  return {
    nodes: names.map((name) => ({
      ...nodePicture(name, known.get(name), seen),
      virtualMachines: byNode.get(name) ?? [],
      arriving: queue.moving.filter((move) => move.targetNode === name && isShown(move)).map(({ machine }) => machine),
    })),
    elsewhere,
    moving: queue.moving.filter(isShown).length,
    waiting: queue.waiting.filter(isShown).length,
    denied: seen.denied,
  };
}

interface MoveWords {
  readonly moving: ReadonlyMap<string, Moving>;
  readonly waiting: ReadonlyMap<string, string>;
}

function movesIn(queue: Queue, nowMs: number): MoveWords {
  return {
    moving: new Map(queue.moving.map((move) => [move.machine, move])),
    waiting: new Map(queue.waiting.map((each) => [each.machine, waitingWords(each, queue, nowMs).why])),
  };
}

function machinePicture(
  key: string,
  machine: VirtualMachine | undefined,
  guest: VirtualMachineInstance | undefined,
  { moving, waiting }: MoveWords,
): MachinePicture {
  const move = moving.get(key);
  return {
    name: key,
    status: machine?.status?.printableStatus ?? (guest?.status?.phase || 'Unknown'),
    since: (machine ?? guest)?.metadata.creationTimestamp ?? undefined,
    isMigratable: guest !== undefined && isMigratable(guest),
    move: move && movePicture(move, guest),
    waits: waiting.get(key),
    note: noteOf(machine, guest),
  };
}

function movePicture(
  { migration, sourceNode, targetNode }: Moving,
  guest: VirtualMachineInstance | undefined,
): MovePicture {
  const { phase = '' } = migration.status ?? {};
  const state = guest?.status?.migrationState;
  // The guest hears of it sooner than its migration.
  const own = state?.migrationUid === migration.metadata.uid ? state?.progress : undefined;
  const progress = own ?? migration.status?.progress;
  return {
    migration: keyOf(migration),
    phase,
    from: sourceNode,
    to: targetNode,
    percent: progress?.percent,
    summary: progress ? (progress.summary ?? progressSummary(progress)) : phase,
  };
}

/** Conditions that say why a guest does not start, if they are False. */
const STARTING = ['PodScheduled', 'Synchronized'];

function noteOf(machine: VirtualMachine | undefined, guest: VirtualMachineInstance | undefined): string | undefined {
  const failure = findCondition(machine?.status?.conditions, 'Failure');
  if (failure?.status === 'True') return failure.message ?? failure.reason;
  if (guest?.status?.phase === 'Running') {
    const causes = causesOf(guest).map(({ cause }) => cause);
    return causes.length > 0 ? `has to leave its node (${causes.join(', ')})` : undefined;
  }
  const wrong = STARTING.map((type) => findCondition(guest?.status?.conditions, type)).find(
    (condition) => condition?.status === 'False',
  );
  return wrong ? (wrong.message ?? wrong.reason) : undefined;
}

function isThere({ status }: VirtualMachineInstance): boolean {
  return status?.phase !== 'Succeeded' && status?.phase !== 'Failed';
}

function nodePicture(
  name: string,
  node: Node | undefined,
  { kubeVirt }: SeenCluster,
): Pick<NodePicture, 'name' | 'isReady' | 'remarks' | 'since'> {
  const conditions = (node?.status?.conditions ?? []) as Parameters<typeof isConditionTrue>[0];
  const isReady = isConditionTrue(conditions, 'Ready');
  const isCordoned = node?.spec?.unschedulable === true;
  const isTainted = node !== undefined && hasDrainTaint(node, kubeVirt?.spec.configuration ?? {});
  return {
    name,
    isReady,
    remarks: [
      ...(node ? [] : ['not to be seen']),
      ...(isCordoned ? ['cordoned'] : []),
      ...(isTainted ? ['drain taint'] : []),
      ...(isConditionTrue(conditions, DRAIN_BLOCKED) ? ['drain blocked'] : []),
    ],
    since: node?.metadata.creationTimestamp ?? undefined,
  };
}
