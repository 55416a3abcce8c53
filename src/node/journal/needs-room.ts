import type { JournaledStanding } from '../../migration/right-to-run/journal.ts';

/** Whether there may be something to say of a pod yet: then the journal has room set aside for it. */
export function needsRoom(standing: JournaledStanding): boolean {
  return standing.kind !== 'none' && standing.kind !== 'ended' && standing.kind !== 'refused';
}
