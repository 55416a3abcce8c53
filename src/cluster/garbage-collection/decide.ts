import type { OwnerReference } from '../../api/meta.ts';
import { FOREGROUND_FINALIZER, type NodeMetadata, ORPHAN_FINALIZER } from './graph.ts';

/** What becomes of an object, given what the server says of its owners. */

/** What a reference is worth: its owner lives, lives only until its dependents are gone, or does not exist. */
export type Verdict = 'solid' | 'waiting' | 'dangling';

/** An owner reference and what it is worth. */
export interface Judged {
  readonly reference: OwnerReference;
  readonly verdict: Verdict;
}

export type Action =
  | { readonly kind: 'keep' }
  /** Somebody else still owns it: only these references are left. */
  | { readonly kind: 'keepReferences'; readonly references: readonly OwnerReference[] }
  | {
      readonly kind: 'delete';
      readonly propagationPolicy: 'Orphan' | 'Background' | 'Foreground';
      /** What its references have to be before it is deleted; as they are where absent. */
      readonly references?: readonly OwnerReference[];
    };

/** What is known of the dependents of the object itself. */
export interface OwnDependents {
  readonly hasAny: boolean;
  /** Whether one of them waits for its own dependents, of which this object may be one. */
  readonly isAnyWaiting: boolean;
}

/** Decides. The object is the server's, and is not being deleted yet. */
export function decide(metadata: NodeMetadata, owners: readonly Judged[], dependents: OwnDependents): Action {
  if (owners.length === 0) return { kind: 'keep' };
  const solid = owners.filter(({ verdict }) => verdict === 'solid');
  if (solid.length === owners.length) return { kind: 'keep' };
  // An owner that waits would wait forever for an object that stays for the sake of another.
  if (solid.length > 0) return { kind: 'keepReferences', references: solid.map(({ reference }) => reference) };
  const isWaitedFor = owners.some(({ verdict }) => verdict === 'waiting');
  if (!isWaitedFor || !dependents.hasAny) return { kind: 'delete', propagationPolicy: policyOf(metadata) };
  const all = owners.map(({ reference }) => reference);
  const isBlocking = all.some(({ blockOwnerDeletion }) => blockOwnerDeletion === true);
  // In a circle everybody would wait for everybody.
  return dependents.isAnyWaiting && isBlocking
    ? { kind: 'delete', propagationPolicy: 'Foreground', references: all.map(unblocked) }
    : { kind: 'delete', propagationPolicy: 'Foreground' };
}

/** What was asked for when it was made holds when it is collected. */
function policyOf({ finalizers = [] }: NodeMetadata): 'Orphan' | 'Background' | 'Foreground' {
  if (finalizers.includes(ORPHAN_FINALIZER)) return 'Orphan';
  return finalizers.includes(FOREGROUND_FINALIZER) ? 'Foreground' : 'Background';
}

function unblocked(reference: OwnerReference): OwnerReference {
  return reference.blockOwnerDeletion === true ? { ...reference, blockOwnerDeletion: false } : reference;
}
