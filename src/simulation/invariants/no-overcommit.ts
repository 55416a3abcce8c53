import { nodeInfoOf, NodeState } from '../../migration/fit/node-state.ts';
import type { Node, Pod } from '../../migration/fit/objects.ts';
import { podInfoOf } from '../../migration/fit/pod-info.ts';
import { shortages } from '../../migration/fit/resource-amounts.ts';
import type { Invariant } from '../invariant.ts';
import type { State } from '../observer.ts';

/** Whoever is given a node finds what it asks for there, beside all who were given that node before and have not ended. */
export function noOvercommit(): Invariant {
  return {
    name: 'no-overcommit',
    observe({ bucket, key, object, previous }, state) {
      if (bucket !== 'pods' || !object || !previous) return undefined;
      const pod = object as Pod;
      const node = pod.spec?.nodeName ?? '';
      if (node === '' || (previous as Pod).spec?.nodeName === node || isOver(pod)) return undefined;
      return shortage(pod, key, node, state);
    },
  };
}

function shortage(pod: Pod, key: string, name: string, state: State): string | undefined {
  const node = state.get('nodes', name);
  // A node that has just been registered says nothing of itself yet.
  if (!(node as Node | undefined)?.status?.allocatable) return undefined;
  const others = podsOn(name, state).filter(({ metadata }) => metadata.uid !== pod.metadata.uid);
  const { info, requested, pods } = new NodeState(nodeInfoOf(node as Node), others.map(podInfoOf));
  const short = [...shortages(podInfoOf(pod).requests, info.allocatable, requested)];
  if (pods.size + 1 > info.podCountMax) short.push('pods');
  if (short.length === 0) return undefined;
  const names = others.map(({ metadata }) => metadata.name).join(', ');
  return `pod ${key} was bound to ${name}, which has not enough ${short.join(' and ')} beside ${names}`;
}

function podsOn(node: string, state: State): Pod[] {
  return [...state.list('pods')].filter((pod: Pod) => pod.spec?.nodeName === node && !isOver(pod));
}

function isOver(pod: Pod): boolean {
  return pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed';
}
