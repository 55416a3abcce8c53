import type { KubeObject, ObjectMeta } from '../../api/meta.ts';
import { ClusterState, type Lookups } from './cluster-state.ts';
import { fit } from './fit.ts';
import { nodeInfoOf } from './node-state.ts';
import type { Node, PersistentVolume, PersistentVolumeClaim, Pod, PodSpec, StorageClass } from './objects.ts';
import { podInfoOf } from './pod-info.ts';

/** Small clusters for tests. */

type Labels = Record<string, string>;

export function makeNode(
  name: string,
  more: { labels?: Labels; spec?: Node['spec']; allocatable?: Record<string, string> } = {},
): Node {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, labels: { 'kubernetes.io/hostname': name, ...more.labels } },
    spec: more.spec ?? {},
    status: { allocatable: more.allocatable ?? { cpu: '4', memory: '8Gi', pods: '110' } },
  };
}

export function makePod(name: string, spec: PodSpec = {}, metadata: ObjectMeta = {}, status: Pod['status'] = {}): Pod {
  const namespace = metadata.namespace ?? 'default';
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace, uid: `uid-${namespace}-${name}`, ...metadata },
    spec,
    status,
  };
}

/** A container that requests this much. */
export function asking(requests: Record<string, string>): PodSpec {
  return { containers: [{ resources: { requests } }] };
}

export interface Contents {
  readonly nodes: readonly Node[];
  /** Placed pods, by node. */
  readonly pods?: { readonly [node: string]: readonly Pod[] };
  readonly namespaces?: { readonly [name: string]: Labels };
  readonly claims?: readonly PersistentVolumeClaim[];
  readonly volumes?: readonly PersistentVolume[];
  readonly classes?: readonly StorageClass[];
}

export function makeCluster(contents: Contents): ClusterState {
  const find = <T extends KubeObject>(objects: readonly T[] | undefined, name: string): T | undefined =>
    objects?.find(({ metadata }) => metadata.name === name);
  const lookups: Lookups = {
    namespaceLabels: (name) => contents.namespaces?.[name],
    claim: (key) => contents.claims?.find(({ metadata }) => `${metadata.namespace}/${metadata.name}` === key),
    volume: (name) => find(contents.volumes, name),
    storageClass: (name) => find(contents.classes, name),
    unboundVolumes: (name) => (contents.volumes ?? []).filter(({ spec }) => (spec?.storageClassName ?? '') === name),
  };
  const cluster = new ClusterState(lookups);
  for (const node of contents.nodes) cluster.setNode(nodeInfoOf(node));
  for (const [node, pods] of Object.entries(contents.pods ?? {})) {
    for (const pod of pods) cluster.addPod(podInfoOf(pod), node);
  }
  return cluster;
}

/** What each node is refused for, by its name. */
export function refusals(pod: Pod, cluster: ClusterState): Record<string, string[]> {
  return Object.fromEntries(
    [...cluster.nodes].map(([name, node]) => [name, fit(pod, node, cluster).map(({ message }) => message)]),
  );
}
