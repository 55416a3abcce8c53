/** What the store keeps and tells: objects as text, changes, and the ways in which a request can miss them. */

/** One state of one object. Never changed once made, but for the registry's memo. */
export interface Stored {
  /** `namespace/name`, or `name` for cluster-scoped objects. */
  readonly key: string;
  /** The write that made this state. */
  readonly revision: number;
  /** The object as JSON, its resourceVersion included. */
  readonly text: string;
  /** A memo for the registry: parsed labels and selectable fields. Lives as long as this state is in memory. */
  selectable?: unknown;
  /** Another: the object itself, for a while after it was written. */
  parsed?: unknown;
}

/**
 * One durable write, as subscribers and resumed watches see it. The texts of a change from `changesSince` may be read
 * from disk when asked for, which throws ExpiredRevision for those who kept the change until it was compacted.
 */
export interface Change {
  readonly revision: number;
  readonly type: 'put' | 'delete';
  readonly bucket: string;
  readonly key: string;
  /** The state that the write made; for a deletion the last state, with the deletion's revision. */
  readonly stored: Stored;
  /** The state before, undefined for a creation. */
  previous(): Stored | undefined;
}

/** The newest state is not the one that a write was based on. */
export class RevisionMismatch extends Error {
  /** The newest state, staged writes included; undefined when there is no such object. */
  readonly latest: Stored | undefined;

  constructor(key: string, expected: number, latest: Stored | undefined) {
    super(`${key} is at revision ${latest?.revision ?? 0}, not ${expected}`);
    this.name = 'RevisionMismatch';
    this.latest = latest;
  }
}

/** The asked revision is outside of the history that is kept: compacted, or (from another store) never written. */
export class ExpiredRevision extends Error {
  readonly revision: number;

  constructor(revision: number, oldestRevision: number, newestRevision?: number) {
    const until = newestRevision === undefined ? '' : ` and the newest ${newestRevision}`;
    super(`revision ${revision} is not known, the oldest is ${oldestRevision}${until}`);
    this.name = 'ExpiredRevision';
    this.revision = revision;
  }
}

/** A state that is read from disk when its text is asked for; throws ExpiredRevision if it has gone by then. */
export class PastState implements Stored {
  readonly key: string;
  readonly revision: number;
  selectable: unknown = undefined;
  parsed: unknown = undefined;
  readonly #read: () => string;
  #text: string | undefined;

  constructor(key: string, revision: number, read: () => string) {
    this.key = key;
    this.revision = revision;
    this.#read = read;
  }

  get text(): string {
    this.#text ??= this.#read();
    return this.#text;
  }
}

/** A state, always of the same shape, so that a hundred thousand of them share one hidden class. */
export function stored(key: string, revision: number, text: string): Stored {
  return { key, revision, text, selectable: undefined, parsed: undefined };
}
