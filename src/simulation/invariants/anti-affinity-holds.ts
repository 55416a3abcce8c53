import type { Pod } from '../../migration/fit/objects.ts';
import type { Invariant } from '../invariant.ts';

/**
 * No pod is given a node where another is whose company it refuses, or which refuses its own. Looks at required
 * anti-affinity by node and by labels alone, which is what the scenarios have.
 */
export function antiAffinityHolds(): Invariant {
  return {
    name: 'anti-affinity-holds',
    observe({ bucket, key, object, previous }, state) {
      if (bucket !== 'pods' || !object || !previous) return undefined;
      const pod = object as Pod;
      const node = pod.spec?.nodeName ?? '';
      if (node === '' || (previous as Pod).spec?.nodeName === node || isOver(pod)) return undefined;
      for (const other of state.list('pods') as Iterable<Pod>) {
        if (other.metadata.uid === pod.metadata.uid || other.spec?.nodeName !== node || isOver(other)) continue;
        if (refuses(pod, other) || refuses(other, pod))
          return `pod ${key} was bound to ${node}, where ${other.metadata.name} is: one refuses the other`;
      }
      return undefined;
    },
  };
}

function refuses(pod: Pod, other: Pod): boolean {
  const terms = pod.spec?.affinity?.podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? [];
  return terms.some(({ labelSelector }) =>
    Object.entries(labelSelector?.matchLabels ?? {}).every(([key, value]) => other.metadata.labels?.[key] === value),
  );
}

function isOver(pod: Pod): boolean {
  return pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed';
}
