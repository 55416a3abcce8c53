import { CPU_FEATURE_PREFIX, HOST_MODEL_PREFIX } from '../../api/kubevirt/node-labels.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { Informer } from '../../kube/informer.ts';
import type { SharedInformers } from '../../kube/shared-informers.ts';
import { deepEqual } from '../../machinery/equal.ts';
import { ClusterState } from '../../migration/fit/cluster-state.ts';
import { Demand } from '../../migration/fit/fit.ts';
import { nodeInfoOf } from '../../migration/fit/node-state.ts';
import type { Node, PersistentVolume, Pod } from '../../migration/fit/objects.ts';
import { podInfoOf } from '../../migration/fit/pod-info.ts';
import { sourceNodeOf } from '../../migration/phase/facts.ts';
import type { Resource } from '../../kube/resource.ts';
import { unfitnessText } from './unfitness-text.ts';
import { namespaces, nodes, persistentVolumeClaims, persistentVolumes, pods, storageClasses } from '../resources.ts';

const allPods = pods as unknown as Resource<Pod>;

/**
 * Whether any node can take a target pod, by our own reckoning, which is there at once and says of each node what it
 * lacks. The scheduler of the cluster has the last word, and may know better.
 */
export class TargetFitness {
  readonly #cluster: ClusterState;
  readonly #volumes: Informer<PersistentVolume>;

  constructor(informers: SharedInformers) {
    const claims = informers.of(persistentVolumeClaims);
    const classes = informers.of(storageClasses);
    const spaces = informers.of(namespaces);
    this.#volumes = informers.of(persistentVolumes, { unbound: unboundClass });
    this.#cluster = new ClusterState({
      namespaceLabels: (name) => spaces.get(name)?.metadata.labels,
      claim: (key) => claims.get(key),
      volume: (name) => this.#volumes.get(name),
      storageClass: (name) => classes.get(name),
      unboundVolumes: (name) => this.#volumes.byIndex('unbound', name),
    });
    informers.of(nodes).onChange(({ type, object, old }) => {
      if (type === 'deleted') this.#cluster.removeNode(object.metadata.name ?? '');
      else if (!old || isNodeChanged(object, old)) this.#cluster.setNode(nodeInfoOf(object));
    });
    informers.of(allPods).onChange(({ type, object, old }) => {
      if (old && old.metadata.uid !== object.metadata.uid) this.#cluster.removePod(old.metadata.uid ?? '');
      if (type === 'deleted' || isFinished(object)) this.#cluster.removePod(object.metadata.uid ?? '');
      else if (object.spec?.nodeName) this.#cluster.addPod(podInfoOf(object), object.spec.nodeName);
    });
  }

  /** Why no node takes the pod, of each of them; undefined where one does. */
  unfitness(guest: VirtualMachineInstance, pod: Pod): string | undefined {
    const demand = new Demand(podInfoOf(pod), this.#cluster);
    const sourceNode = sourceNodeOf(guest);
    const lacks = new Map<string, string>();
    for (const node of this.#cluster.nodes.values()) {
      const reasons = demand.reasons(node);
      const isSource = node.name === sourceNode;
      if (reasons.length === 0 && !isSource) return undefined;
      lacks.set(node.name, isSource ? 'the guest runs there' : reasons.map(({ message }) => message).join(', '));
    }
    return unfitnessText(lacks);
  }

  /** Whether the pod asks for the very processor of the node that its guest leaves, and no other node has it. */
  hasOnlyProcessor(guest: VirtualMachineInstance, { spec }: Pod): boolean {
    const wanted = Object.keys(spec?.nodeSelector ?? {});
    if (!wanted.some((key) => key.startsWith(HOST_MODEL_PREFIX))) return false;
    const traits = wanted.filter((key) => key.startsWith(HOST_MODEL_PREFIX) || key.startsWith(CPU_FEATURE_PREFIX));
    const sourceNode = sourceNodeOf(guest);
    const others = [...this.#cluster.nodes.values()].filter(({ name }) => name !== sourceNode);
    return !others.some(({ info }) => traits.every((key) => Object.hasOwn(info.labels, key)));
  }
}

function unboundClass({ spec, status }: PersistentVolume): readonly string[] {
  return status?.phase === 'Bound' ? [] : [spec?.storageClassName ?? ''];
}

/** Most changes of nodes are heartbeats. */
function isNodeChanged(node: Node, old: Node): boolean {
  return !(
    deepEqual(node.metadata.labels, old.metadata.labels) &&
    deepEqual(node.spec, old.spec) &&
    deepEqual(node.status?.allocatable, old.status?.allocatable)
  );
}

function isFinished({ status }: Pod): boolean {
  return status?.phase === 'Succeeded' || status?.phase === 'Failed';
}
