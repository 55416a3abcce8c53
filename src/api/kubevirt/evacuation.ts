import type { EvacuationCause } from './evacuation-cause.ts';
import type { VirtualMachineInstance } from './virtual-machine-instance.ts';
import { EVICTION_SOURCE_ANNOTATION } from './well-known.ts';

/**
 * The mark of a guest that has to leave its node, and the causes that it is there for. Several components write both: each
 * takes what these functions answer into one patch of the status, for the version of the guest that it looked at.
 */

/** The two fields of a guest's status that are the mark; undefined for what is to be absent. */
export interface Mark {
  readonly evacuationNodeName: string | undefined;
  readonly evacuationCauses: EvacuationCause[] | undefined;
}

const NO_MARK: Mark = { evacuationNodeName: undefined, evacuationCauses: undefined };

type Guest = Pick<VirtualMachineInstance, 'status'>;

/** Whether the guest has to leave the node that it is on. A mark for any other node is none. */
export function isMarked({ status }: Guest): boolean {
  return Boolean(status?.nodeName) && status?.evacuationNodeName === status?.nodeName;
}

/** Why the guest has to leave its node; nothing where it need not. */
export function causesOf(guest: Guest): readonly EvacuationCause[] {
  return isMarked(guest) ? (guest.status?.evacuationCauses ?? []) : [];
}

/** The mark with one more cause, or with what is new of it. The guest must be on a node. */
export function withCause(guest: Guest, cause: EvacuationCause): Mark {
  const { nodeName } = guest.status ?? {};
  if (!nodeName) throw new Error('a guest that is on no node cannot be told to leave it');
  const before = causesOf(guest);
  const index = before.findIndex((each) => each.cause === cause.cause);
  const known = before[index];
  const causes = known ? before.with(index, merged(known, cause)) : [...before, cause];
  return { evacuationNodeName: nodeName, evacuationCauses: causes };
}

/**
 * A cause that comes up again is as old as it was. Who wanted the guest to go whatever becomes of the node still wants
 * that when the node is drained besides.
 */
function merged(known: EvacuationCause, { untilUncordon, ...cause }: EvacuationCause): EvacuationCause {
  const { untilUncordon: before, ...rest } = known;
  const isUntilUncordon = before === true && untilUncordon === true;
  return {
    ...rest,
    ...cause,
    ...(known.since === undefined ? {} : { since: known.since }),
    ...(isUntilUncordon ? { untilUncordon } : {}),
  };
}

/** The mark without the causes that are over; it goes with the last one, and with those of another node. */
export function withoutCauses(guest: Guest, isOver: (cause: EvacuationCause) => boolean): Mark {
  const left = causesOf(guest).filter((cause) => !isOver(cause));
  if (left.length === 0) return NO_MARK;
  return { evacuationNodeName: guest.status?.evacuationNodeName, evacuationCauses: left };
}

/**
 * The merge patch of annotations by which the guest says that it is the descheduler who wants it to leave, as KubeVirt has
 * it; undefined where they are as they should be.
 */
export function sourceAnnotation(guest: VirtualMachineInstance): Record<string, string | null> | undefined {
  const isWanted = causesOf(guest).some(({ cause }) => cause === 'Descheduler');
  const wanted = isWanted ? 'descheduler' : null;
  const found = guest.metadata.annotations?.[EVICTION_SOURCE_ANNOTATION] ?? null;
  return found === wanted ? undefined : { [EVICTION_SOURCE_ANNOTATION]: wanted };
}
