import type { Change, Stored } from './model.ts';

/**
 * Who hears of a change. A thousand agents watch the pods of a thousand nodes, and each change concerns one of them: so
 * whoever can say by one property what concerns him is found by its value, and costs nobody anything else.
 */

export type ChangeListener = (change: Change) => void;

/** A property of objects. Two interests are looked up together when they have the very same one. */
export interface Facet {
  readonly valueOf: (stored: Stored) => string | undefined;
}

/** The changes of objects that have this value, before or after. */
export interface Interest {
  readonly facet: Facet;
  readonly value: string;
}

interface Subscription {
  readonly order: number;
  readonly listener: ChangeListener;
}

type Subscriptions = readonly Subscription[];

/** The listeners of one bucket. */
export class Audience {
  #everything: Subscriptions = [];
  readonly #byFacet = new Map<Facet, Map<string, Subscriptions>>();
  #next = 0;

  /** Adds a listener of what interests it; of all changes where that is undefined. Answers a function that removes it. */
  add(listener: ChangeListener, interest?: Interest): () => void {
    const subscription: Subscription = { order: this.#next++, listener };
    // Lists are replaced rather than changed: one who comes during a change must not get that change as well.
    this.#replace(interest, (before) => [...before, subscription]);
    return () => this.#replace(interest, (before) => before.filter((each) => each !== subscription));
  }

  /** All whom this change concerns, and perhaps some whom it does not, once each, in the order in which they came. */
  of(change: Change): readonly ChangeListener[] {
    const found = [...this.#byFacet].flatMap(([facet, byValue]) => concerned(facet, byValue, change));
    if (found.length === 0) return this.#everything.map(({ listener }) => listener);
    return [...this.#everything, ...found].sort((a, b) => a.order - b.order).map(({ listener }) => listener);
  }

  #replace(interest: Interest | undefined, change: (before: Subscriptions) => Subscriptions): void {
    if (interest === undefined) {
      this.#everything = change(this.#everything);
      return;
    }
    const { facet, value } = interest;
    const byValue = this.#byFacet.get(facet) ?? new Map<string, Subscriptions>();
    this.#byFacet.set(facet, byValue);
    const after = change(byValue.get(value) ?? []);
    if (after.length > 0) byValue.set(value, after);
    else byValue.delete(value);
    if (byValue.size === 0) this.#byFacet.delete(facet);
  }
}

function concerned(facet: Facet, byValue: ReadonlyMap<string, Subscriptions>, change: Change): Subscriptions {
  const previous = change.previous();
  let before: string | undefined;
  let after: string | undefined;
  try {
    before = previous && facet.valueOf(previous);
    after = facet.valueOf(change.stored);
  } catch {
    // What cannot be read has no known value. Each listener finds that out, and deals with it, by itself.
    return [...byValue.values()].flat();
  }
  const arrived = (after !== undefined && byValue.get(after)) || [];
  if (before === after || before === undefined) return arrived;
  return [...arrived, ...(byValue.get(before) ?? [])];
}
