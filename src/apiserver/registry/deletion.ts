import { formatTime, type KubeObject } from '../../api/meta.ts';
import { bucketOf, type ResourceDefinition } from '../../api/resource.ts';
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
  const terms = termsFor(definition, object, options, nowMs);
  // What was promised a while ago is kept: neither its end nor its finalizers change.
  if (terms === 'as promised') return { kind: 'unchanged' };
  const { graceSeconds, deletionTimestamp } = terms;
  const finalizers = finalizersFor(definition, object, options);
  if (graceSeconds === 0 && finalizers.length === 0 && !isHeldBySpec(definition, object)) return { kind: 'removed' };
  const { metadata } = object;
  const isFirst = metadata.deletionTimestamp === undefined;
  const isSameGrace = graceSeconds === (metadata.deletionGracePeriodSeconds ?? 0);
  const isSame = isSameGrace && deletionTimestamp === metadata.deletionTimestamp;
  if (isSame && deepEqual(finalizers, metadata.finalizers ?? [])) return { kind: 'unchanged' };
  const marked: KubeObject = { ...object, metadata: { ...metadata, deletionTimestamp } };
  if (finalizers.length > 0) marked.metadata.finalizers = finalizers;
  else delete marked.metadata.finalizers;
  // A namespace ends when it is empty, whenever that is.
  if (isNamespace(definition)) marked['status'] = { ...(marked['status'] as object), phase: 'Terminating' };
  else marked.metadata.deletionGracePeriodSeconds = graceSeconds;
  if (isFirst && marked.metadata.generation !== undefined) marked.metadata.generation += 1;
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

interface Terms {
  readonly graceSeconds: number;
  readonly deletionTimestamp: string;
}

/** When it ends. Only pods are given time; the rest goes at once, or when it is let go. */
function termsFor(
  definition: ResourceDefinition,
  object: KubeObject,
  options: DeleteOptions,
  nowMs: number,
): Terms | 'as promised' {
  const { deletionTimestamp, deletionGracePeriodSeconds: promisedSeconds = 0 } = object.metadata;
  const isPod = definition.group === '' && definition.kind === 'Pod';
  if (deletionTimestamp === undefined) {
    const graceSeconds = isPod ? graceFor(object, options) : 0;
    return { graceSeconds, deletionTimestamp: formatTime(nowMs + graceSeconds * 1000) };
  }
  if (!isPod || promisedSeconds === 0) return { graceSeconds: 0, deletionTimestamp };
  const { gracePeriodSeconds: asked } = options;
  const askedSeconds = asked === undefined ? promisedSeconds : atLeastGraceful(asked);
  // A second request may only shorten what is left.
  if (askedSeconds >= promisedSeconds) return 'as promised';
  const endMs = Date.parse(deletionTimestamp) + (askedSeconds - promisedSeconds) * 1000;
  if (endMs >= nowMs) return { graceSeconds: askedSeconds, deletionTimestamp: formatTime(endMs) };
  // Nothing ends in the past; what is to end gracefully is given the shortest time that is still graceful.
  return { graceSeconds: Math.min(askedSeconds, 1), deletionTimestamp: formatTime(nowMs) };
}

/** Only pods that a node may be running need time. */
function graceFor(object: KubeObject, options: DeleteOptions): number {
  const spec = object['spec'] as { nodeName?: string; terminationGracePeriodSeconds?: number } | undefined;
  const phase = (object['status'] as { phase?: string } | undefined)?.phase;
  if (!spec?.nodeName || phase === 'Succeeded' || phase === 'Failed') return 0;
  return atLeastGraceful(options.gracePeriodSeconds ?? spec.terminationGracePeriodSeconds ?? 30);
}

/** Negative periods mean the shortest that is still graceful, as upstream has it. */
function atLeastGraceful(seconds: number): number {
  return seconds < 0 ? 1 : seconds;
}

/** Kinds that orphan their dependents unless they are told otherwise, for compatibility's sake. */
const ORPHANING: ReadonlySet<string> = new Set(['replicationcontrollers', 'jobs.batch']);

/** What whoever deletes should know. */
export function deletionWarnings(definition: ResourceDefinition, options: DeleteOptions): string[] {
  if (options.propagationPolicy !== undefined || bucketOf(definition) !== 'jobs.batch') return [];
  return [
    'child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning',
  ];
}

/** The finalizers that it ends with. Those of the garbage collector say what is to become of its dependents. */
function finalizersFor(definition: ResourceDefinition, object: KubeObject, options: DeleteOptions): string[] {
  const current = object.metadata.finalizers ?? [];
  // Nobody ever owns anything by an event, and no garbage collector looks at them.
  if (bucketOf(definition) === 'events') return current.filter((each) => !isCollectors(each));
  const isSaid = current.some(isCollectors);
  const policy = options.propagationPolicy ?? (!isSaid && ORPHANING.has(bucketOf(definition)) ? 'Orphan' : undefined);
  if (policy === undefined) return current;
  const kept = current.filter((each) => !isCollectors(each));
  switch (policy) {
    case 'Orphan':
      return [...kept, ORPHAN];
    case 'Foreground':
      return [...kept, FOREGROUND];
    case 'Background':
      return kept;
    default:
      return unreachable(policy);
  }
}

function isCollectors(finalizer: string): boolean {
  return finalizer === ORPHAN || finalizer === FOREGROUND;
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
