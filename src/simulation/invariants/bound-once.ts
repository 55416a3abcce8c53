import type { Pod } from '../../migration/fit/objects.ts';
import type { Invariant } from '../invariant.ts';

/** A pod that has been given a node keeps it for as long as it lives: its containers may be running there. */
export function boundOnce(): Invariant {
  const nodes = new Map<string, string>();
  return {
    name: 'bound-once',
    observe({ bucket, key, object }) {
      if (bucket !== 'pods' || !object) return undefined;
      const { uid = '' } = object.metadata;
      const node = (object as Pod).spec?.nodeName ?? '';
      const before = nodes.get(uid);
      if (node !== '') nodes.set(uid, node);
      if (before === undefined || before === node) return undefined;
      return `pod ${key} (${uid}) was bound to ${before} and is now bound to ${node === '' ? 'no node' : node}`;
    },
  };
}
