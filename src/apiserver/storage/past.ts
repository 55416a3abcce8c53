import { type Bucket, keyAfter, prefixEnd } from './bucket.ts';
import type { ChangeRecord } from './history.ts';
import type { Stored } from './model.ts';

/** Which part of a bucket a list is about. */
export interface Page {
  /** Only keys that begin with this. */
  readonly prefix: string;
  /** Only keys after this one; undefined for all. */
  readonly after: string | undefined;
  readonly limit: number;
}

export interface PageOfItems {
  readonly items: Stored[];
  /** How many items follow the page. */
  readonly remaining: number;
}

/** A page of a bucket as it is now. */
export function listNow(bucket: Bucket, page: Page): PageOfItems {
  const { start, end } = positions(bucket, page);
  const last = Math.min(end, start + page.limit);
  return { items: [...bucket.between(start, last)], remaining: end - last };
}

/**
 * A page of a bucket as it was, given every change since: today's objects, less those that a change has touched,
 * merged with the touched ones as they were before their first change. Only what changed is sorted, and only what
 * is on the page is read.
 */
export function listPast(
  bucket: Bucket,
  page: Page,
  changesSince: readonly ChangeRecord[],
  read: (key: string, revision: number) => Stored,
): PageOfItems {
  const { start, end } = positions(bucket, page);
  const before = revisionsBefore(changesSince, page);
  const touched = [...before].filter(([, revision]) => revision !== 0).sort(([a], [b]) => (a < b ? -1 : 1));
  let untouchedCount = end - start;
  for (const key of before.keys()) if (bucket.get(key) !== undefined) untouchedCount--;

  const items: Stored[] = [];
  const takeTouchedBelow = (key: string | undefined): void => {
    while (items.length < page.limit) {
      const next = touched[taken];
      if (next === undefined || (key !== undefined && next[0] > key)) return;
      items.push(read(next[0], next[1]));
      taken++;
    }
  };
  let taken = 0;
  for (const item of bucket.between(start, end)) {
    if (before.has(item.key)) continue;
    takeTouchedBelow(item.key);
    if (items.length === page.limit) break;
    items.push(item);
  }
  takeTouchedBelow(undefined);
  return { items, remaining: untouchedCount + touched.length - items.length };
}

function positions(bucket: Bucket, page: Page): { start: number; end: number } {
  const range = bucket.range(page.prefix);
  if (page.after === undefined) return range;
  // A key that sorts outside of the prefix's range must not widen it.
  const start = Math.max(range.start, bucket.rank(keyAfter(page.after)));
  return { start: Math.min(start, range.end), end: range.end };
}

/** For each key of the page that has changed since, the revision that it was at; 0 where it did not exist. */
function revisionsBefore(changesSince: readonly ChangeRecord[], page: Page): Map<string, number> {
  const before = new Map<string, number>();
  for (const { key, previous } of changesSince) {
    if (before.has(key) || !isOnPage(key, page)) continue;
    before.set(key, previous);
  }
  return before;
}

function isOnPage(key: string, page: Page): boolean {
  if (page.after !== undefined && key <= page.after) return false;
  return page.prefix === '' || (key >= page.prefix && key < prefixEnd(page.prefix));
}
