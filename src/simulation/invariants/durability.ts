import type { Invariant } from '../invariant.ts';

/** What was durable once, and so may have been acknowledged or seen, is there after every crash. */
export function durability(): Invariant {
  return {
    name: 'durability',
    reloaded: ({ revision, knownRevision }) =>
      revision < knownRevision
        ? `the store came back at revision ${revision}, though ${knownRevision} had been durable`
        : undefined,
    observe({ bucket, key, object, previous, isFound }) {
      if (!isFound || !object || !previous) return undefined;
      const [before, after] = [previous.metadata.resourceVersion, object.metadata.resourceVersion];
      return Number(after) < Number(before) ? `${bucket} ${key} went back from ${before} to ${after}` : undefined;
    },
  };
}
