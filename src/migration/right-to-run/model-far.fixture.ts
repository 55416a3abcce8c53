import { isAway } from '../../api/kubevirt/right-to-run-transition.ts';
import { NONE } from './model-identity.fixture.ts';
import type { Message } from './plan.ts';
import { reclaimAcross, seizeTarget } from './seize.ts';
import {
  attemptOf,
  type Far,
  messagesOf,
  runnerOf,
  type SideName,
  type World,
  withRecord,
  withSide,
} from './model-world.fixture.ts';

/** What there is only where a guest goes to another object: letters between two API servers, and admins who reclaim. */

/** What an admin does who has lost the target. */
export const RECLAIM = 'the admin fences the target, and reclaims';

/** What happens by itself. */
export function farHappenings(world: World): [string, World | undefined][] {
  if (!world.far) return [];
  return [
    ["the letter of b arrives at a's", letterArrived(world, world.far)],
    ['b is asked to refuse arrives', askedToRefuse(world)],
    [RECLAIM, world.outOfService.includes('b') ? reclaimedAcross(world) : undefined],
  ];
}

/** What the target did, by what lasts there: its journal, or its record. */
function settlement({ sides }: World, { record }: Far): 'taken' | 'refused' | undefined {
  if (record !== undefined) return 'taken';
  const { standing, isNodeUp } = sides.b;
  if (!isNodeUp) return undefined;
  if (standing.kind === 'refused') return 'refused';
  return 'taken' in standing && standing.taken !== undefined ? 'taken' : undefined;
}

/** While the target can be asked itself, its letters need not be read: that keeps the model small. */
function letterArrived(world: World, far: Far): World | undefined {
  const { a, b } = world.sides;
  const letter = settlement(world, far);
  if (letter === undefined || far.letter !== undefined || (a.isNodeUp && b.isNodeUp)) return undefined;
  const arrived = { ...world, far: { ...far, letter } };
  const isHeard = !a.isNodeUp || a.inbox.some(({ kind }) => kind === letter);
  return isHeard ? arrived : withSide(arrived, 'a', { inbox: messagesOf(...a.inbox, ...letterTo(arrived, 'a')) });
}

/** Who seizes asks whoever may have been granted the right. */
function askedToRefuse(world: World): World | undefined {
  const { b } = world.sides;
  const isAsked = b.inbox.some(({ kind }) => kind === 'please-refuse');
  if (!world.outOfService.includes('a') || !b.isNodeUp || b.standing.kind !== 'receiving' || isAsked) return undefined;
  const message: Message = { kind: 'please-refuse', attempt: attemptOf(world, 'a') };
  return withSide(world, 'b', { inbox: messagesOf(...b.inbox, message) });
}

/** What an agent finds when it starts again. */
export function letterTo(world: World, name: SideName): readonly Message[] {
  const kind = name === 'a' ? world.far?.letter : undefined;
  return kind === undefined ? NONE : messagesOf({ kind, attempt: attemptOf(world, 'b') });
}

/** Letters that came are lost with the data that was restored; they come again. */
export function withoutLetter({ letter, ...far }: Far, where: 'a' | 'b'): Far {
  return where === 'a' || letter === undefined ? far : { ...far, letter };
}

/** The source says that `b` took the guest, and `b` is gone before it wrote so: it is written for it. */
export function takenAndSeized(world: World): World | undefined {
  const { across, epoch, target } = attemptOf(world, 'b');
  const gone = world.outOfService.map((it) => ({ uid: runnerOf(it).nodeUID, isOutOfService: true }));
  const step = seizeTarget(target, across?.targetEpoch ?? epoch, gone).steps[0];
  return isAway(world.record) && step?.kind === 'record' ? withRecord(world, 'b', step.to) : undefined;
}

/**
 * Where the target is gone for good, and said nothing: the admin fences it, and has the source go on. Who heard at the same
 * time that it was taken writes that over it; then it is said once more, here once all have come to rest.
 */
export function reclaimedAcross(world: World, isAtRest = false): World | undefined {
  const { far, record, sides } = world;
  if (!far || !record || record.across !== true) return undefined;
  if (far.isFenced ? !isAtRest && !isAway(record) : isAway(record)) return undefined;
  if (sides.b.isNodeUp || (far.record !== undefined && !far.isFenced)) return undefined;
  const step = reclaimAcross(record, world.outOfService.includes('a')).steps[0];
  if (step?.kind !== 'record') return undefined;
  const fenced = { ...world, far: { ...far, isFenced: true }, isLossExcused: true, isCancelled: true };
  return withRecord(fenced, 'a', step.to);
}

/** What is wrong with two records, once all is at rest and `holder` executes the guest. */
export function farRestlessness({ far, record }: World, holder: SideName): string | undefined {
  if (!far) return undefined;
  if (far.record?.successor !== undefined) return 'a successor is still named there';
  const isThere = holder === 'b' || holder === 'd';
  if (isThere && !isAway(record)) return 'the record that the guest left does not say that it is away';
  if (!isThere && far.record?.holder !== undefined && !far.isFenced) return 'two records name somebody';
  return undefined;
}
