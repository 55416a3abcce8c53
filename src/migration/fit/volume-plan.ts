import { compareQuantities } from '../../api/quantity.ts';
import { SELECTED_NODE } from '../../api/storage.ts';
import type { Lookups } from './cluster-state.ts';
import { type NodePredicate, nodeSelectorPredicate, type SelectableNode } from './node-selector.ts';
import type { PersistentVolume, PersistentVolumeClaim, StorageClass } from './objects.ts';
import type { PodInfo } from './pod-info.ts';
import {
  fittingVolumes,
  isBindCompleted,
  isReservedFor,
  requestedStorage,
  storageClassNameOf,
} from './volume-match.ts';

/** What has to happen to a pod's claims before it can run on a node. */
export interface VolumePlan {
  /** Volumes that are there, and whose they become. */
  readonly bindings: readonly { readonly claim: PersistentVolumeClaim; readonly volume: PersistentVolume }[];
  /** Claims for which volumes are made. */
  readonly provisions: readonly PersistentVolumeClaim[];
}

interface Candidate {
  readonly volume: PersistentVolume;
  readonly reaches: NodePredicate;
}

/** A claim that waits for its pod, and what could become of it. */
interface WaitingClaim {
  readonly claim: PersistentVolumeClaim;
  readonly selectedNode: string | undefined;
  /** The volume that is set aside for it, and no other will do. */
  readonly reserved: Candidate | undefined;
  readonly candidates: readonly Candidate[];
  /** Where a volume can be made for it; undefined for nowhere. */
  readonly canProvision: NodePredicate | undefined;
}

/** Whether a claim has its volume. One that was asked for by name is not yet one that was given. */
export function isBound(claim: PersistentVolumeClaim): boolean {
  if ((claim.spec?.volumeName ?? '') === '') return false;
  return claim.status?.phase === 'Bound' || isBindCompleted(claim);
}

/** Whether nothing is done about a claim until a pod needs it. */
export function waitsForPod(claim: PersistentVolumeClaim, lookups: Lookups): boolean {
  if ((claim.spec?.volumeName ?? '') !== '') return false;
  return lookups.storageClass(storageClassNameOf(claim))?.volumeBindingMode === 'WaitForFirstConsumer';
}

/** The claims that the pod mounts, as far as they are there. */
export function claimsOf(pod: PodInfo, lookups: Lookups): PersistentVolumeClaim[] {
  return pod.claims.flatMap(({ name }) => lookups.claim(`${pod.namespace}/${name}`) ?? []);
}

/** Which nodes a volume can be reached from. */
export function reachOf({ spec }: PersistentVolume): NodePredicate {
  const required = spec?.nodeAffinity?.required;
  return required ? nodeSelectorPredicate(required.nodeSelectorTerms ?? []) : () => true;
}

/** Makes plans for the claims of a pod that wait for it; undefined where none does. */
export function volumePlanner(
  pod: PodInfo,
  lookups: Lookups,
): ((node: SelectableNode) => VolumePlan | undefined) | undefined {
  if (pod.claims.length === 0) return undefined;
  const waiting = claimsOf(pod, lookups)
    .filter((claim) => !isBound(claim))
    // The smallest first, or a small claim could take the one volume that does for a large one.
    .sort((a, b) => compareQuantities(requestedStorage(a), requestedStorage(b)))
    .map((claim) => optionsOf(claim, lookups));
  return waiting.length === 0 ? undefined : (node) => planOn(node, waiting);
}

function optionsOf(claim: PersistentVolumeClaim, lookups: Lookups): WaitingClaim {
  const className = storageClassNameOf(claim);
  const volumes = [...lookups.unboundVolumes(className)];
  const reserved = volumes.find((volume) => isReservedFor(volume, claim));
  return {
    claim,
    selectedNode: claim.metadata.annotations?.[SELECTED_NODE],
    reserved: reserved && candidateOf(reserved),
    candidates: fittingVolumes(claim, volumes).map(candidateOf),
    canProvision: provisioning(lookups.storageClass(className)),
  };
}

function candidateOf(volume: PersistentVolume): Candidate {
  return { volume, reaches: reachOf(volume) };
}

function provisioning(storageClass: StorageClass | undefined): NodePredicate | undefined {
  const { provisioner = '', allowedTopologies = [] } = storageClass ?? {};
  if (provisioner === '' || provisioner === 'kubernetes.io/no-provisioner') return undefined;
  if (allowedTopologies.length === 0) return () => true;
  return ({ labels }) =>
    allowedTopologies.some(({ matchLabelExpressions = [] }) =>
      matchLabelExpressions.every(
        ({ key, values }) => Object.hasOwn(labels, key) && values.includes(labels[key] ?? ''),
      ),
    );
}

function planOn(node: SelectableNode, waiting: readonly WaitingClaim[]): VolumePlan | undefined {
  const taken = new Set<PersistentVolume>();
  const bindings: { claim: PersistentVolumeClaim; volume: PersistentVolume }[] = [];
  const provisions: PersistentVolumeClaim[] = [];
  for (const { claim, selectedNode, reserved, candidates, canProvision } of waiting) {
    const found = selectedNode === undefined ? (reserved ?? firstOf(candidates, taken, node)) : undefined;
    if (found) {
      if (!found.reaches(node)) return undefined;
      taken.add(found.volume);
      bindings.push({ claim, volume: found.volume });
    } else {
      // Where a volume is being made already, its place is settled.
      if (selectedNode !== undefined && selectedNode !== node.name) return undefined;
      if (selectedNode === undefined && canProvision?.(node) !== true) return undefined;
      provisions.push(claim);
    }
  }
  return { bindings, provisions };
}

function firstOf(
  candidates: readonly Candidate[],
  taken: ReadonlySet<PersistentVolume>,
  node: SelectableNode,
): Candidate | undefined {
  return candidates.find(({ volume, reaches }) => !taken.has(volume) && reaches(node));
}
