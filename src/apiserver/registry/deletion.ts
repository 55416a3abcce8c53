import { formatTime, type KubeObject } from '../../api/meta.ts';
import type { ResourceDefinition } from '../../api/resource.ts';
import { ApiError } from '../../api/status.ts';
import { unreachable } from '../../api/unreachable.ts';
import { deepEqual } from '../../machinery/equal.ts';
import type { DeleteOptions, Target } from './contract.ts';

/** What a DELETE does to an object: pure, so that every combination of grace, finalizers and policy can be tabled. */

const ORPHAN = 'orphan';
const FOREGROUND = 'foregroundDeletion';

export type Deletion =
  /** Nothing to write: it is already on its way out at least this fast. */
  | { readonly kind: 'unchanged' }
  /** Marked; a kubelet, a finalizer's owner or a controller finishes it. */
  | { readonly kind: 'marked'; readonly object: KubeObject }
  | { readonly kind: 'removed' };

/** Decides without changing `object`. */
export function decideDeletion(
  definition: ResourceDefinition,
  object: KubeObject,
  options: DeleteOptions,
  nowMs: number,
): Deletion {
  const graceSeconds = graceFor(definition, object, options);
  const finalizers = finalizersFor(object, options);
  const { deletionTimestamp, deletionGracePeriodSeconds: oldGraceSeconds = 0 } = object.metadata;
  const hasNewFinalizers = !deepEqual(finalizers, object.metadata.finalizers ?? []);
  const isHeld = finalizers.length > 0 || isHeldBySpec(definition, object);
  if (graceSeconds === 0 && !isHeld) return { kind: 'removed' };
  const marked: KubeObject = { ...object, metadata: { ...object.metadata } };
  if (finalizers.length > 0) marked.metadata.finalizers = finalizers;
  else delete marked.metadata.finalizers;
  if (deletionTimestamp !== undefined) {
    // A second request may only shorten what is left.
    if (graceSeconds >= oldGraceSeconds)
      return hasNewFinalizers ? { kind: 'marked', object: marked } : { kind: 'unchanged' };
    marked.metadata.deletionTimestamp = formatTime(
      Date.parse(deletionTimestamp) + (graceSeconds - oldGraceSeconds) * 1000,
    );
    marked.metadata.deletionGracePeriodSeconds = graceSeconds;
    return { kind: 'marked', object: marked };
  }
  marked.metadata.deletionTimestamp = formatTime(nowMs + graceSeconds * 1000);
  // A namespace ends when it is empty, whenever that is.
  if (!isNamespace(definition)) marked.metadata.deletionGracePeriodSeconds = graceSeconds;
  if (marked.metadata.generation !== undefined) marked.metadata.generation += 1;
  if (isNamespace(definition)) marked['status'] = { ...(marked['status'] as object), phase: 'Terminating' };
  return { kind: 'marked', object: marked };
}

/** Whether a terminating object has nothing left to wait for. */
export function isReadyToGo(definition: ResourceDefinition, object: KubeObject): boolean {
  const { deletionTimestamp, deletionGracePeriodSeconds = 0, finalizers = [] } = object.metadata;
  return (
    deletionTimestamp !== undefined &&
    finalizers.length === 0 &&
    deletionGracePeriodSeconds === 0 &&
    !isHeldBySpec(definition, object)
  );
}

function isNamespace(definition: ResourceDefinition): boolean {
  return definition.group === '' && definition.kind === 'Namespace';
}

function isHeldBySpec(definition: ResourceDefinition, object: KubeObject): boolean {
  if (!isNamespace(definition)) return false;
  const spec = object['spec'] as { finalizers?: string[] } | undefined;
  return (spec?.finalizers ?? []).length > 0;
}

/** Only pods that a node may be running are given time; the rest goes at once. */
function graceFor(definition: ResourceDefinition, object: KubeObject, options: DeleteOptions): number {
  if (definition.group !== '' || definition.kind !== 'Pod') return 0;
  const spec = object['spec'] as { nodeName?: string; terminationGracePeriodSeconds?: number } | undefined;
  const phase = (object['status'] as { phase?: string } | undefined)?.phase;
  if (!spec?.nodeName || phase === 'Succeeded' || phase === 'Failed') return 0;
  const seconds = options.gracePeriodSeconds ?? spec.terminationGracePeriodSeconds ?? 30;
  // Negative periods mean the shortest that is still graceful, as upstream has it.
  return seconds < 0 ? 1 : seconds;
}

function finalizersFor(object: KubeObject, options: DeleteOptions): string[] {
  const current = object.metadata.finalizers ?? [];
  if (options.propagationPolicy === undefined) return current;
  const kept = current.filter((each) => each !== ORPHAN && each !== FOREGROUND);
  switch (options.propagationPolicy) {
    case 'Orphan':
      return [...kept, ORPHAN];
    case 'Foreground':
      return [...kept, FOREGROUND];
    case 'Background':
      return kept;
    default:
      return unreachable(options.propagationPolicy);
  }
}

/** Throws 409 where the object is not the one, or not in the state, that a deletion was meant for. */
export function checkDeletePreconditions(target: Target, current: KubeObject, options: DeleteOptions): void {
  const { kind } = target.definition;
  const refuse = (what: string, wanted: string, actual: string | undefined, guess: string): never => {
    const detail = `the ${what} in the precondition (${wanted}) does not match the ${what} in record (${actual}). The object might have been ${guess}`;
    const message = `Operation cannot be fulfilled on ${kind} "${target.name}": ${detail}`;
    throw new ApiError(409, 'Conflict', message, { name: target.name, kind });
  };
  const { uid, resourceVersion } = options.preconditions ?? {};
  if (uid !== undefined && uid !== current.metadata.uid)
    refuse('UID', uid, current.metadata.uid, 'deleted and then recreated');
  if (resourceVersion !== undefined && resourceVersion !== current.metadata.resourceVersion)
    refuse('ResourceVersion', resourceVersion, current.metadata.resourceVersion, 'modified');
}
