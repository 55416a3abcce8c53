import type { ApiError } from '../api/status.ts';
import type { TransportError } from './transport.ts';

/**
 * What a reflector does next, given what it did and how that ended. Pure, since this is where informers of all languages
 * have had their bugs: hot loops, watches that nobody resumes, lists that an overloaded server could not afford.
 */

/** Stream: a watch that begins with everything there is. List: pages. Watch: changes after what is known. */
export type Step = 'stream' | 'list' | 'watch';

/** How a step ended. */
export type Ending =
  /** The list is complete. */
  | { readonly kind: 'listed' }
  /** The server ended the watch, which it may at any time. */
  | { readonly kind: 'ended' }
  /** Nothing came for too long. */
  | { readonly kind: 'silent' }
  /** An event came that does not fit what came before. */
  | { readonly kind: 'unclear' }
  /** The snapshot is older than what is known already. */
  | { readonly kind: 'past' }
  | { readonly kind: 'refused'; readonly error: ApiError }
  | { readonly kind: 'broken'; readonly error: TransportError };

/** What a reflector remembers from step to step. */
export interface Course {
  readonly step: Step;
  /** Whether the server is thought to offer initial events in a watch. */
  readonly canStream: boolean;
  /** Whether the list is taken in pages; one that expired between two pages is next asked for whole. */
  readonly isPaged: boolean;
  /** Watches in a row that the server refused. */
  readonly refusals: number;
}

export const START: Course = { step: 'stream', canStream: true, isPaged: true, refusals: 0 };

/**
 * So many refusals in a row, and the resourceVersion itself may be what the server does not like. Fewer would list from a
 * server that is merely overloaded.
 */
const REFUSALS_MAX = 5;

/** By these a server says that it knows no initial events; others say nothing about it. */
const NOT_OFFERED: ReadonlySet<number> = new Set([400, 405, 422]);

/** The next step. `hasSnapshot` says whether a watch can go on from where the step got to. */
export function nextCourse(course: Course, ending: Ending, hasSnapshot: boolean): Course {
  const snapshot: Course = { ...course, step: course.canStream ? 'stream' : 'list', isPaged: true, refusals: 0 };
  if (ending.kind === 'listed') return { ...course, step: 'watch', isPaged: true, refusals: 0 };
  if (course.step === 'list') return { ...course, isPaged: !(ending.kind === 'refused' && isExpired(ending.error)) };
  if (!hasSnapshot) return afterStream(course, ending);
  if (ending.kind === 'unclear') return snapshot;
  if (ending.kind !== 'refused') return { ...course, step: 'watch', refusals: 0 };
  const refusals = course.refusals + 1;
  if (isExpired(ending.error) || refusals >= REFUSALS_MAX) return snapshot;
  return { ...course, step: 'watch', refusals };
}

/** A stream that did not get as far as its mark. */
function afterStream(course: Course, ending: Ending): Course {
  if (ending.kind === 'refused' && NOT_OFFERED.has(ending.error.code))
    return { ...course, step: 'list', canStream: false };
  // A kube-apiserver whose etcd is too old for it fails inside, for as long as that is so.
  const hasFailedInside = ending.kind === 'refused' && ending.error.code === 500;
  // A server that does not know the mark ends the watch one day, or falls silent. A list is sure to have an end.
  return hasFailedInside || ending.kind === 'ended' || ending.kind === 'silent' ? { ...course, step: 'list' } : course;
}

/** Whether to wait before the next step: not after a success, not for what the server says it does not offer. */
export function needsDelay(course: Course, ending: Ending): boolean {
  if (ending.kind === 'listed') return false;
  return !(course.step === 'stream' && ending.kind === 'refused' && NOT_OFFERED.has(ending.error.code));
}

/** Whether somebody may have to put right what a server has refused: not where there is another way, which comes next. */
export function isTrouble(course: Course, ending: Ending, next: Course): boolean {
  const hasOtherWay = course.step === 'stream' && next.step === 'list';
  return ending.kind === 'refused' && needsDelay(course, ending) && !hasOtherWay;
}

/** 410, whichever of its two reasons it gives. */
export function isExpired(error: ApiError): boolean {
  return error.code === 410 || error.reason === 'Expired' || error.reason === 'Gone';
}
