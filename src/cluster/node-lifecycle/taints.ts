import { formatTime } from '../../api/meta.ts';
import type { Node, Taint } from '../../migration/fit/objects.ts';
import { readinessOf } from './conditions.ts';

/** The taints that tell pods and schedulers what the conditions of a node tell people. */

const PREFIX = 'node.kubernetes.io/';
const NOT_READY = `${PREFIX}not-ready`;
const UNREACHABLE = `${PREFIX}unreachable`;
const UNSCHEDULABLE = `${PREFIX}unschedulable`;

/** By `type=status` of the condition. */
const TAINT_OF_CONDITION: ReadonlyMap<string, string> = new Map([
  ['Ready=False', NOT_READY],
  ['Ready=Unknown', UNREACHABLE],
  ['MemoryPressure=True', `${PREFIX}memory-pressure`],
  ['DiskPressure=True', `${PREFIX}disk-pressure`],
  ['PIDPressure=True', `${PREFIX}pid-pressure`],
  ['NetworkUnavailable=True', `${PREFIX}network-unavailable`],
]);
const SCHEDULING_KEYS: ReadonlySet<string> = new Set([...TAINT_OF_CONDITION.values(), UNSCHEDULABLE]);

/**
 * What is to become of the taints that make pods leave: `add` puts one on a node that is not ready, `keep` only changes
 * one that says the wrong thing, `remove` is for when too many are lost to believe it.
 */
export type Eviction = 'add' | 'keep' | 'remove';

/** The taint that makes pods leave the node as it is; undefined where they need not. */
function evictingKeyOf(node: Node): string | undefined {
  const readiness = readinessOf(node);
  if (readiness === 'False') return NOT_READY;
  return readiness === 'Unknown' ? UNREACHABLE : undefined;
}

/** Whether the node is one that pods should leave, and nothing makes them yet. */
export function awaitsEviction(node: Node): boolean {
  const hasOne = node.spec?.taints?.some((taint) => isEvicting(taint)) ?? false;
  return !hasOne && evictingKeyOf(node) !== undefined;
}

/** The taints that the node should have; undefined where it has them. Those of others stay as they are. */
export function taintsFor(node: Node, eviction: Eviction, nowMs: number): readonly Taint[] | undefined {
  const present = node.spec?.taints ?? [];
  const wanted = [...schedulingTaints(node), ...evictingTaint(node, eviction)];
  const isWanted = (taint: Taint): boolean => wanted.some((each) => isSame(each, taint));
  const kept = present.filter((taint) => !isOurs(taint, node) || isWanted(taint));
  const missing = wanted.filter((taint) => !present.some((each) => isSame(each, taint)));
  if (missing.length === 0 && kept.length === present.length) return undefined;
  return [...kept, ...missing.map((taint) => ({ ...taint, timeAdded: formatTime(nowMs) }))];
}

function schedulingTaints({ status, spec }: Node): Taint[] {
  const keys = (status?.conditions ?? []).map((each) => TAINT_OF_CONDITION.get(`${each.type}=${each.status}`));
  if (spec?.unschedulable === true) keys.push(UNSCHEDULABLE);
  return [...new Set(keys)].flatMap((key) => (key === undefined ? [] : [{ key, effect: 'NoSchedule' }]));
}

function evictingTaint(node: Node, eviction: Eviction): Taint[] {
  const key = evictingKeyOf(node);
  const isDue = eviction === 'add' || (eviction === 'keep' && !awaitsEviction(node));
  return key !== undefined && isDue ? [{ key, effect: 'NoExecute' }] : [];
}

/** A node of which nobody has said anything keeps what makes pods leave it. */
function isOurs(taint: Taint, node: Node): boolean {
  if (isEvicting(taint)) return readinessOf(node) !== undefined;
  return taint.effect === 'NoSchedule' && SCHEDULING_KEYS.has(taint.key);
}

function isEvicting({ key, effect }: Taint): boolean {
  return effect === 'NoExecute' && (key === NOT_READY || key === UNREACHABLE);
}

function isSame(a: Taint, b: Taint): boolean {
  return a.key === b.key && a.effect === b.effect;
}
