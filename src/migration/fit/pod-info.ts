import { type AffinityTerm, affinityTermOf, type LabelledPod, type WeightedTerm } from './affinity-term.ts';
import { type HostPort, hostPortsOf } from './host-ports.ts';
import { type NodePredicate, nodeTermPredicate, requiredNodeNames, requiredNodePredicate } from './node-selector.ts';
import type { Pod, PodAffinity, Toleration } from './objects.ts';
import { groupKeyOf } from './pod-groups.ts';
import { requestedAmounts, type ResourceAmounts, weighedAmounts } from './resource-amounts.ts';
import { type SpreadConstraint, spreadConstraintOf } from './spread-constraint.ts';

/** What a pod says about where it can be, read once for the many times that it is asked. */
export interface PodInfo {
  readonly pod: Pod;
  /** `namespace/name`. */
  readonly key: string;
  readonly uid: string;
  readonly namespace: string;
  readonly labels: { readonly [key: string]: string };
  readonly groupKey: string;
  readonly priority: number;
  readonly isTerminating: boolean;
  readonly requests: ResourceAmounts;
  /** What it counts for when nodes are compared. */
  readonly weighed: { readonly cpu: number; readonly memory: number };
  readonly hostPorts: readonly HostPort[];
  readonly tolerations: readonly Toleration[];
  /** The node it wants by name, empty for any. */
  readonly nodeName: string;
  /** The only nodes that its affinity names; undefined for any. */
  readonly nodeNames: ReadonlySet<string> | undefined;
  /** Whether a node is one that it asks for; undefined for any. */
  readonly acceptsNode: NodePredicate | undefined;
  readonly preferredNodes: readonly { readonly matches: NodePredicate; readonly weight: number }[];
  readonly affinity: AffinityTerms;
  readonly antiAffinity: AffinityTerms;
  readonly spread: readonly SpreadConstraint[];
  /** Names of the claims that it mounts; the owner must be the pod itself where a claim is made for it. */
  readonly claims: readonly ClaimUse[];
}

export interface AffinityTerms {
  readonly required: readonly AffinityTerm[];
  readonly preferred: readonly WeightedTerm[];
}

export interface ClaimUse {
  readonly name: string;
  readonly isEphemeral: boolean;
}

/** Reads a pod. */
export function podInfoOf(pod: Pod): PodInfo {
  const { namespace = '', name = '', uid = '', labels = {}, deletionTimestamp } = pod.metadata;
  const spec = pod.spec ?? {};
  const isTerminating = deletionTimestamp !== undefined;
  const owner: LabelledPod = { namespace, labels };
  const requests = requestedAmounts(pod);
  const { affinity } = spec;
  return {
    pod,
    key: `${namespace}/${name}`,
    uid,
    namespace,
    labels,
    groupKey: groupKeyOf(labels, isTerminating),
    priority: spec.priority ?? 0,
    isTerminating,
    requests,
    weighed: weighedAmounts(pod, requests),
    hostPorts: hostPortsOf(pod),
    tolerations: spec.tolerations ?? [],
    nodeName: spec.nodeName ?? '',
    nodeNames: requiredNodeNames(pod),
    acceptsNode: requiredNodePredicate(pod),
    preferredNodes: (affinity?.nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []).map(
      ({ weight, preference }) => ({ matches: nodeTermPredicate(preference), weight }),
    ),
    affinity: termsOf(affinity?.podAffinity, owner),
    antiAffinity: termsOf(affinity?.podAntiAffinity, owner),
    spread: (spec.topologySpreadConstraints ?? []).map((each) => spreadConstraintOf(each, owner)),
    claims: claimsOf(pod),
  };
}

const NO_TERMS: AffinityTerms = { required: [], preferred: [] };

function termsOf(affinity: PodAffinity | undefined, owner: LabelledPod): AffinityTerms {
  if (!affinity) return NO_TERMS;
  return {
    required: (affinity.requiredDuringSchedulingIgnoredDuringExecution ?? []).map((each) =>
      affinityTermOf(each, owner),
    ),
    preferred: (affinity.preferredDuringSchedulingIgnoredDuringExecution ?? []).map(({ weight, podAffinityTerm }) => ({
      term: affinityTermOf(podAffinityTerm, owner),
      weight,
    })),
  };
}

function claimsOf(pod: Pod): readonly ClaimUse[] {
  return (pod.spec?.volumes ?? []).flatMap(({ name = '', persistentVolumeClaim, ephemeral }): ClaimUse[] => {
    if (persistentVolumeClaim) return [{ name: persistentVolumeClaim.claimName ?? '', isEphemeral: false }];
    return ephemeral ? [{ name: `${pod.metadata.name}-${name}`, isEphemeral: true }] : [];
  });
}
