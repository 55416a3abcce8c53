import { ClusterState } from '../../migration/fit/cluster-state.ts';
import { Demand } from '../../migration/fit/fit.ts';
import { nodeInfoOf } from '../../migration/fit/node-state.ts';
import type { Node, Pod } from '../../migration/fit/objects.ts';
import { podInfoOf } from '../../migration/fit/pod-info.ts';
import { keyOf } from '../../kube/resource.ts';
import type { Invariant, Unsettled } from '../invariant.ts';
import type { State } from '../observer.ts';

/** In the end every pod runs, or has run, or there is no node for it. */
export function podsSettle(): Invariant {
  return {
    name: 'pods-settle',
    unsettled({ state }) {
      const cluster = clusterOf(state);
      return [...state.list('pods')].flatMap((pod): Unsettled[] => {
        const what = unsettled(pod, cluster);
        return what === undefined ? [] : [{ key: keyOf(pod), what }];
      });
    },
  };
}

function unsettled(pod: Pod, cluster: ClusterState): string | undefined {
  const { phase = 'Pending' } = pod.status ?? {};
  const node = pod.spec?.nodeName ?? '';
  if (node !== '' && !cluster.nodes.has(node)) return `is on ${node}, which is not there`;
  if (phase !== 'Pending') return undefined;
  if (node !== '') return `is on ${node} and does not run`;
  const demand = new Demand(podInfoOf(pod), cluster);
  for (const [name, candidate] of cluster.nodes)
    if (demand.reasons(candidate).length === 0) return `has no node, though ${name} would do`;
  return undefined;
}

function clusterOf(state: State): ClusterState {
  const cluster = new ClusterState({
    namespaceLabels: (name) => state.get('namespaces', name)?.metadata.labels,
    claim: (key) => state.get('persistentvolumeclaims', key),
    volume: (name) => state.get('persistentvolumes', name),
    storageClass: (name) => state.get('storageclasses.storage.k8s.io', name),
    unboundVolumes: () => [],
  });
  for (const node of state.list('nodes')) cluster.setNode(nodeInfoOf(node as Node));
  for (const pod of state.list('pods') as Iterable<Pod>) {
    const isOver = pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed';
    const node = pod.spec?.nodeName ?? '';
    if (node !== '' && !isOver) cluster.addPod(podInfoOf(pod), node);
  }
  return cluster;
}
