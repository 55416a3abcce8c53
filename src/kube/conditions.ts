import type { Condition } from '../api/meta.ts';
import { formatTime } from '../api/meta.ts';

/** Conditions of a status, as pure functions: a list goes in, a list comes out, the same one where nothing changed. */

export function findCondition<C extends Condition>(conditions: readonly C[] | undefined, type: string): C | undefined {
  return conditions?.find((condition) => condition.type === type);
}

/** True when the condition is there and True; neither Unknown nor absent is. */
export function isConditionTrue(conditions: readonly Condition[] | undefined, type: string): boolean {
  return findCondition(conditions, type)?.status === 'True';
}

/**
 * The conditions with one set. Its lastTransitionTime says when its status last changed: where the status is what it
 * was, the time is too, whatever happens to reason and message; else it is the given one, or now. Fields that the
 * change does not mention stay as they were.
 */
export function setCondition<C extends Condition>(
  conditions: readonly C[] | undefined,
  change: C,
  nowMs: number,
): readonly C[] {
  const known = conditions ?? [];
  const index = known.findIndex((condition) => condition.type === change.type);
  const old = known[index];
  const isTransition = old?.status !== change.status;
  const lastTransitionTime = isTransition ? (change.lastTransitionTime ?? formatTime(nowMs)) : old?.lastTransitionTime;
  const next: C = { ...old, ...change, ...(lastTransitionTime === undefined ? {} : { lastTransitionTime }) };
  if (!old) return [...known, next];
  return isSame(old, next) ? known : known.with(index, next);
}

/** The conditions without one. */
export function removeCondition<C extends Condition>(conditions: readonly C[] | undefined, type: string): readonly C[] {
  const known = conditions ?? [];
  return known.some((condition) => condition.type === type) ? known.filter((each) => each.type !== type) : known;
}

/** Conditions hold nothing but scalars. */
function isSame(a: Condition, b: Condition): boolean {
  const [fieldsOfA, fieldsOfB] = [new Map(Object.entries(a)), Object.entries(b)];
  return fieldsOfA.size === fieldsOfB.length && fieldsOfB.every(([name, value]) => fieldsOfA.get(name) === value);
}
