import type { Pod } from '../migration/fit/objects.ts';
import { START_MS } from './virtual-clock.ts';
import type { State } from './observer.ts';

/** How many there are of what a quota counts, by its name there, at that time. */
export function countOf(name: string, namespace: string, state: State, elapsedMs: number): number {
  const bucket = name === 'pods' ? 'pods' : name.replace('count/', '');
  return [...state.list(bucket)].filter(
    (object) => object.metadata.namespace === namespace && (name !== 'pods' || !isOver(object, elapsedMs)),
  ).length;
}

/** The clock of whoever counts may be ahead by so much. */
const SKEW_MS = 60_000;

/** Pods that have ended are not counted, nor those that should have ended long ago. */
function isOver({ metadata, status }: Pod, elapsedMs: number): boolean {
  if (status?.phase === 'Succeeded' || status?.phase === 'Failed') return true;
  const { deletionTimestamp, deletionGracePeriodSeconds: graceSeconds = 0 } = metadata;
  if (deletionTimestamp === undefined) return false;
  return START_MS + elapsedMs > Date.parse(deletionTimestamp) + graceSeconds * 1000 - SKEW_MS;
}
