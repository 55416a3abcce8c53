import { setOwn } from './clone.ts';

/**
 * Makes the parts of a document that are as they were the very same in memory as those of the old one, so that whoever
 * compares the two, and many do, sees that at a glance. Changes the document in place, but not what it says: it must be
 * nobody else's.
 */
export function shareUnchanged(document: object, old: object): void {
  sharedWith(document, old);
}

/** The old value where it is the same, else the value, with all of it that is the same shared. */
function sharedWith(value: unknown, old: unknown): unknown {
  if (value === old || !isContainer(value) || !isContainer(old)) return value;
  if (Array.isArray(value) !== Array.isArray(old)) return value;
  const keys = Object.keys(value);
  let isSame = keys.length === Object.keys(old).length;
  for (const key of keys) {
    const before = Object.hasOwn(old, key) ? old[key] : undefined;
    const field = value[key];
    const shared = sharedWith(field, before);
    if (shared !== before) isSame = false;
    else if (shared !== field) setOwn(value, key, shared);
  }
  return isSame ? old : value;
}

function isContainer(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
