import { objectAt, textAt } from '../../api/kinds/core/fields.ts';
import type { KubeObject } from '../../api/meta.ts';
import type { Stored } from '../storage/model.ts';
import type { Store } from '../storage/store.ts';
import { MIRROR_ANNOTATION, podReferences } from './pod-references.ts';

/** What pods refer to. */
export type Referenced = 'secrets' | 'configmaps' | 'persistentvolumeclaims' | 'serviceaccounts';

interface BoundPod {
  readonly node: string;
  /** Keys into the index. */
  readonly references: readonly string[];
}

const PODS = 'pods';
const DEBUG_CONTAINERS = '"ephemeralContainers"';

/**
 * Which nodes run pods that refer to what, in step with every commit: a question costs two look-ups. It keeps names
 * alone, of pods that are bound; the pods themselves are read as they pass by and not kept.
 */
export class NodePods {
  readonly #pods = new Map<string, BoundPod>();
  /** By what is referred to: the nodes, and by how many of their pods. */
  readonly #nodes = new Map<string, Map<string, number>>();

  constructor(store: Pick<Store, 'list' | 'subscribe'>) {
    store.subscribe(PODS, ({ stored, type }) => {
      if (type === 'put') this.#put(stored);
      else this.#forget(stored.key);
    });
    for (const stored of store.list(PODS).items) this.#put(stored);
  }

  /** Whether the pod is bound to the node. */
  isBound(node: string, namespace: string, name: string): boolean {
    return this.#pods.get(`${namespace}/${name}`)?.node === node;
  }

  /** Whether a pod that is bound to the node refers to this. */
  refers(node: string, what: Referenced, namespace: string, name: string): boolean {
    return this.#nodes.get(`${what}/${namespace}/${name}`)?.has(node) ?? false;
  }

  #put(stored: Stored): void {
    // A pod that is bound stays where it is, and so does what it refers to, but for containers that are added to look
    // into it. Its status changes often: that must not cost more than a look at the text.
    if (this.#pods.has(stored.key) && !stored.text.includes(DEBUG_CONTAINERS)) return;
    const pod = JSON.parse(stored.text) as KubeObject;
    const node = textAt(objectAt(pod, 'spec'), 'nodeName');
    this.#forget(stored.key);
    if (node === '') return;
    const references = keysOf(pod);
    this.#pods.set(stored.key, { node, references });
    for (const key of references) {
      let nodes = this.#nodes.get(key);
      if (!nodes) this.#nodes.set(key, (nodes = new Map()));
      nodes.set(node, (nodes.get(node) ?? 0) + 1);
    }
  }

  #forget(podKey: string): void {
    const pod = this.#pods.get(podKey);
    if (!pod) return;
    this.#pods.delete(podKey);
    for (const key of pod.references) {
      const nodes = this.#nodes.get(key);
      const count = nodes?.get(pod.node) ?? 0;
      if (count > 1) nodes?.set(pod.node, count - 1);
      else nodes?.delete(pod.node);
      if (nodes?.size === 0) this.#nodes.delete(key);
    }
  }
}

function keysOf(pod: KubeObject): string[] {
  const { namespace = '', annotations = {} } = pod.metadata;
  if (Object.hasOwn(annotations, MIRROR_ANNOTATION)) return [];
  const { secrets, configMaps, claims, serviceAccount } = podReferences(pod);
  const key = (what: Referenced) => (name: string) => `${what}/${namespace}/${name}`;
  return [
    ...[...secrets].map(key('secrets')),
    ...[...configMaps].map(key('configmaps')),
    ...[...claims].map(key('persistentvolumeclaims')),
    ...(serviceAccount === '' ? [] : [key('serviceaccounts')(serviceAccount)]),
  ];
}
