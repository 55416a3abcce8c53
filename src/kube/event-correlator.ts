import { formatTime, type KubeObject } from '../api/meta.ts';
import { LruMap } from './lru-map.ts';
import { TokenBucket } from './rate-limits.ts';

/**
 * Keeps events from flooding a cluster, as client-go does, in three steps: events that differ only in their message are
 * told as one when there are too many of them; the same event again raises a count instead of being another one; and of
 * what is left, each object gets so many, and then one every five minutes. Pure but for what it remembers, and told the
 * time by its caller.
 */

export interface ObjectReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly namespace?: string | undefined;
  readonly uid?: string | undefined;
  readonly resourceVersion?: string | undefined;
  readonly fieldPath?: string | undefined;
}

/** core/v1 Event, as far as we write it. */
export interface CoreEvent extends KubeObject {
  readonly metadata: { readonly name: string; readonly namespace: string };
  readonly involvedObject: ObjectReference;
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
  readonly source: { readonly component: string; readonly host?: string };
  readonly reportingComponent: string;
  readonly reportingInstance: string;
  readonly firstTimestamp: string;
  readonly lastTimestamp: string;
  readonly count: number;
}

/** An event as it is to be written. Those of the same key are the same object, which grows. */
export interface CorrelatedEvent {
  readonly key: string;
  readonly event: CoreEvent;
}

/** Events, groups and objects that are remembered: more than a recorder lets wait, or one that waits would begin anew. */
const REMEMBERED_MAX = 16_384;
/** So many different messages within so long make one event of what follows. */
const SIMILAR_MAX = 10;
const SIMILAR_MS_MAX = 600_000;
/** Events about one object: so many at once, and then one each five minutes. */
const SPAM_BURST = 25;
const SPAM_PER_SECOND = 1 / 300;

interface Group {
  readonly messages: Set<string>;
  lastMs: number;
}

interface Sighting {
  readonly name: string;
  readonly firstTimestamp: string;
  readonly count: number;
}

export class EventCorrelator {
  readonly #groups = new LruMap<string, Group>(REMEMBERED_MAX);
  readonly #sightings = new LruMap<string, Sighting>(REMEMBERED_MAX);
  readonly #budgets = new LruMap<string, TokenBucket>(REMEMBERED_MAX);

  /** What to write for an event that has just happened; undefined when it is one too many. */
  correlate(event: CoreEvent, nowMs: number): CorrelatedEvent | undefined {
    const counted = this.#count(this.#group(event, nowMs));
    return this.#isAffordable(event, nowMs) ? counted : undefined;
  }

  #group(event: CoreEvent, nowMs: number): CorrelatedEvent {
    const key = keyOf(event, event.type, event.reason);
    let group = this.#groups.get(key);
    if (!group || nowMs - group.lastMs > SIMILAR_MS_MAX) group = { messages: new Set(), lastMs: nowMs };
    group.lastMs = nowMs;
    group.messages.add(event.message);
    this.#groups.set(key, group);
    if (group.messages.size < SIMILAR_MAX) {
      return {
        key: keyOf(event, event.type, event.reason, event.involvedObject.fieldPath ?? '', event.message),
        event,
      };
    }
    for (const any of group.messages) {
      // The set must not grow any further, and the next one must be too many again.
      group.messages.delete(any);
      break;
    }
    return { key, event: { ...event, message: `(combined from similar events): ${event.message}` } };
  }

  #count({ key, event }: CorrelatedEvent): CorrelatedEvent {
    const known = this.#sightings.get(key);
    const { name, firstTimestamp, count } = known
      ? { ...known, count: known.count + 1 }
      : { name: event.metadata.name, firstTimestamp: event.firstTimestamp, count: event.count };
    this.#sightings.set(key, { name, firstTimestamp, count });
    return { key, event: { ...event, metadata: { ...event.metadata, name }, firstTimestamp, count } };
  }

  #isAffordable(event: CoreEvent, nowMs: number): boolean {
    const key = keyOf(event, event.type);
    const budget = this.#budgets.get(key) ?? new TokenBucket(SPAM_PER_SECOND, SPAM_BURST, nowMs);
    this.#budgets.set(key, budget);
    return budget.tryTake(nowMs);
  }
}

/** A new event, seen once. */
export function newEvent(
  about: Pick<CoreEvent, 'involvedObject' | 'type' | 'reason' | 'message' | 'source'>,
  name: string,
  nowMs: number,
): CoreEvent {
  const { involvedObject, source } = about;
  const time = formatTime(nowMs);
  return {
    apiVersion: 'v1',
    kind: 'Event',
    // Events about objects that are in no namespace are in this one.
    metadata: { name, namespace: involvedObject.namespace || 'default' },
    ...about,
    reportingComponent: source.component,
    reportingInstance: source.host ?? '',
    firstTimestamp: time,
    lastTimestamp: time,
    count: 1,
  };
}

/** Who says something about what; and what it is, as far as it is given. */
function keyOf({ source, involvedObject }: CoreEvent, ...what: readonly string[]): string {
  const { kind, namespace = '', name, uid = '', apiVersion } = involvedObject;
  return JSON.stringify([source.component, source.host ?? '', kind, namespace, name, uid, apiVersion, ...what]);
}
