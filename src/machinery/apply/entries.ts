/** The entries of metadata.managedFields: who owns what, since when. Entries are values; none is changed in place. */

import type { Json, JsonObject, ManagedFieldsEntry } from '../../api/meta.ts';
import { ApiError } from '../../api/status.ts';
import { type FieldSet, difference, isEmpty, parseFieldSet, serializeFieldSet, union } from './field-set.ts';

/** Entries of updaters that an object may have; the oldest are merged beyond that, as every one costs space forever. */
const UPDATERS_MAX = 10;
/** Who is said to own the fields of merged entries. */
const OLD_UPDATES_MANAGER = 'ancient-changes';

/** What tells one entry from another. */
export type Owner = Pick<ManagedFieldsEntry, 'manager' | 'operation' | 'apiVersion' | 'subresource'>;

/** The fields of an entry as a set. Entries that come from outside have passed `readEntries`. */
export function fieldsOf(entry: ManagedFieldsEntry): FieldSet {
  return entry.fieldsV1 as FieldSet;
}

/** An entry for an owner. The time is that of the last change, unknown for an owner that changed nothing. */
export function makeEntry(owner: Owner, fields: FieldSet, time: string | undefined): ManagedFieldsEntry {
  return compose(owner, serializeFieldSet(fields), time);
}

function compose(owner: Owner, fieldsV1: JsonObject, time: string | undefined): ManagedFieldsEntry {
  const entry: ManagedFieldsEntry = {
    manager: owner.manager,
    operation: owner.operation,
    apiVersion: owner.apiVersion,
    ...(time === undefined ? {} : { time }),
    fieldsType: 'FieldsV1',
    fieldsV1,
  };
  if (owner.subresource !== undefined && owner.subresource !== '') entry.subresource = owner.subresource;
  return entry;
}

/** Appliers are the same whatever version they apply in; updaters are not. */
export function isSameOwner(a: Owner, b: Owner): boolean {
  return (
    a.manager === b.manager &&
    a.operation === b.operation &&
    (a.operation === 'Apply' || a.apiVersion === b.apiVersion) &&
    (a.subresource ?? '') === (b.subresource ?? '')
  );
}

/** Kubernetes' key of an owner, which it sorts by. */
export function identityOf({ manager, operation, apiVersion, subresource }: Owner): string {
  return JSON.stringify({
    manager,
    operation,
    apiVersion: operation === 'Apply' ? undefined : apiVersion,
    subresource: subresource === '' ? undefined : subresource,
  });
}

/** Whether a request asks to forget all owners: an empty list, or a list of one empty entry. */
export function isReset(entries: readonly ManagedFieldsEntry[]): boolean {
  if (entries.length > 1) return false;
  return entries.every((entry) => Object.values(entry ?? {}).every((value) => value === '' || value === undefined));
}

/** Entries that a client wrote, in our form; of one owner the last. Undefined when one of them is invalid. */
export function readEntries(entries: readonly ManagedFieldsEntry[]): ManagedFieldsEntry[] | undefined {
  const read: ManagedFieldsEntry[] = [];
  for (const entry of entries) {
    const parsed = readEntry(entry);
    if (parsed === undefined) return undefined;
    const twin = read.findIndex((each) => isSameOwner(each, parsed));
    if (twin < 0) read.push(parsed);
    else read[twin] = parsed;
  }
  return read;
}

function readEntry(entry: ManagedFieldsEntry): ManagedFieldsEntry | undefined {
  if (typeof entry !== 'object' || entry === null) return undefined;
  const { operation, apiVersion, fieldsType, subresource = '', time } = entry;
  const manager = (entry.manager as string | undefined) ?? '';
  if (operation !== 'Apply' && operation !== 'Update') return undefined;
  if (typeof apiVersion !== 'string' || apiVersion === '' || fieldsType !== 'FieldsV1') return undefined;
  if (typeof manager !== 'string' || typeof subresource !== 'string') return undefined;
  try {
    const fields = parseFieldSet((entry.fieldsV1 ?? {}) as Json);
    const at = typeof time === 'string' ? time : undefined;
    return makeEntry({ manager, operation, apiVersion, subresource }, fields, at);
  } catch (error) {
    if (error instanceof ApiError) return undefined;
    throw error;
  }
}

/** The entries without these fields; an entry that owns nothing any more is gone. */
export function releaseFields(entries: readonly ManagedFieldsEntry[], fields: FieldSet): ManagedFieldsEntry[] {
  const kept: ManagedFieldsEntry[] = [];
  for (const entry of entries) {
    const left = difference(fieldsOf(entry), fields);
    if (left === fieldsOf(entry)) kept.push(entry);
    // Taking out leaves the rest in order.
    else if (!isEmpty(left)) kept.push(compose(entry, left as JsonObject, entry.time));
  }
  return kept;
}

/** The entry with other fields. */
export function withFields(entry: ManagedFieldsEntry, fields: FieldSet): ManagedFieldsEntry {
  return fields === fieldsOf(entry) ? entry : makeEntry(entry, fields, entry.time);
}

/** Kubernetes' order: appliers first, then by time. */
export function sortEntries(entries: ManagedFieldsEntry[]): ManagedFieldsEntry[] {
  return entries.length < 2 ? entries : entries.sort(compareEntries);
}

function compareEntries(a: ManagedFieldsEntry, b: ManagedFieldsEntry): number {
  return (
    compareStrings(a.operation, b.operation) ||
    compareStrings(a.time ?? '', b.time ?? '') ||
    compareStrings(a.manager, b.manager) ||
    compareStrings(a.apiVersion, b.apiVersion) ||
    compareStrings(a.subresource ?? '', b.subresource ?? '')
  );
}

function compareStrings(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

/** Merges the oldest updaters of each version into one until there are no more than allowed. */
export function capUpdaters(entries: ManagedFieldsEntry[]): ManagedFieldsEntry[] {
  const updaters = entries.filter((entry) => entry.operation === 'Update');
  let excess = updaters.length - UPDATERS_MAX;
  if (excess <= 0) return entries;
  updaters.sort((a, b) => compareStrings(a.time ?? '', b.time ?? '') || compareStrings(identityOf(a), identityOf(b)));
  const firsts = new Map<string, ManagedFieldsEntry>();
  const merged = new Set<ManagedFieldsEntry>();
  const buckets = new Map<string, ManagedFieldsEntry>();
  for (const entry of updaters) {
    if (excess === 0) break;
    const { apiVersion } = entry;
    const first = firsts.get(apiVersion);
    if (first === undefined) {
      firsts.set(apiVersion, entry);
      continue;
    }
    const owner: Owner = { manager: OLD_UPDATES_MANAGER, operation: 'Update', apiVersion };
    const bucket = buckets.get(apiVersion) ?? entries.find((each) => isSameOwner(each, owner)) ?? first;
    buckets.set(apiVersion, makeEntry(owner, union(fieldsOf(bucket), fieldsOf(entry)), entry.time));
    merged.add(bucket).add(entry);
    excess--;
  }
  return [...entries.filter((entry) => !merged.has(entry)), ...buckets.values()];
}
