/**
 * Who owns which field, kept up with every write that is not an apply.
 *
 * An updater becomes the owner of what it changed, and everyone else loses it; nobody owns what is gone. A write that
 * changes nothing leaves no trace. Objects whose managed fields were reset stay untracked until something is applied.
 */

import type { JsonObject, KubeObject, ManagedFieldsEntry } from '../../api/meta.ts';
import type { Schema } from '../../api/schema.ts';
import { deepEqual } from '../equal.ts';
import { type Changes, changesOf, touchedBy } from './changes.ts';
import {
  type Owner,
  capUpdaters,
  fieldsOf,
  isReset,
  isSameOwner,
  makeEntry,
  readEntries,
  releaseFields,
  sortEntries,
  withFields,
} from './entries.ts';
import { type FieldSet, difference, isEmpty, union } from './field-set.ts';
import { reconcileWithSchema } from './paths.ts';
import { rootSchemaOf } from './typed.ts';

export interface TrackedUpdate {
  /** Undefined for a create. */
  readonly live: KubeObject | undefined;
  readonly updated: KubeObject;
  readonly schema: Schema;
  readonly manager: string;
  /** The version that the object was written in. */
  readonly apiVersion: string;
  /** Empty for the resource itself. */
  readonly subresource: string;
  /** Now. */
  readonly time: string;
  /** Fields, from the root, that cannot be changed through this endpoint and so are not owned through it. */
  readonly resetFields?: readonly (readonly string[])[];
}

/**
 * The managed fields of `updated` after an update by `manager`. Entries that did not change are shared with the live
 * object; treat them as values.
 */
export function trackUpdate(input: TrackedUpdate): ManagedFieldsEntry[] {
  const { live, updated, schema } = input;
  const entries = entriesBefore(input);
  if (live !== undefined && entries.length === 0) return [];
  const changes = changesOf(asJson(live), asJson(updated), schema, input.resetFields);
  if (changes === undefined) {
    const sorted = sortEntries([...entries]);
    return isSameButForTimes(sorted, liveEntries(live)) ? [...liveEntries(live)] : sorted;
  }
  const reconciled = reconcile(entries, schema);
  if (isEmpty(changes.gained)) return sortEntries(releaseFields(reconciled, touchedBy(changes)));
  const owner: Owner = {
    manager: input.manager === '' ? 'unknown' : input.manager,
    operation: 'Update',
    apiVersion: input.apiVersion,
    subresource: input.subresource,
  };
  const own = reconciled.find((entry) => isSameOwner(entry, owner));
  const others = releaseFields(
    reconciled.filter((entry) => entry !== own),
    touchedBy(changes),
  );
  return sortEntries(capUpdaters([...others, owned(own, owner, changes, input.time)]));
}

/** Who changes nothing but when others have written changes nothing, as long as that leaves them in their order. */
function isSameButForTimes(entries: readonly ManagedFieldsEntry[], live: readonly ManagedFieldsEntry[]): boolean {
  return (
    entries.length === live.length &&
    entries.every(
      (entry, index) => entry === live[index] || deepEqual({ ...entry, time: live[index]?.time }, live[index]),
    )
  );
}

function liveEntries(live: KubeObject | undefined): ManagedFieldsEntry[] {
  return live?.metadata.managedFields ?? [];
}

/** What the writer owns now. Most write the same fields again and again, and what they own stays the very same. */
function owned(
  own: ManagedFieldsEntry | undefined,
  owner: Owner,
  { gained, removed }: Changes,
  time: string,
): ManagedFieldsEntry {
  if (own === undefined) return makeEntry(owner, gained, time);
  const fields = union(difference(fieldsOf(own), removed), gained);
  return fields === fieldsOf(own) ? { ...own, time } : makeEntry(owner, fields, time);
}

/** The schemas of built-in kinds, which have names, do not change under their objects; those of CRDs may. */
function reconcile(entries: readonly ManagedFieldsEntry[], schema: Schema): readonly ManagedFieldsEntry[] {
  if (schema.name !== undefined) return entries;
  const root = rootSchemaOf(schema);
  return entries.map((entry) => {
    const before = fieldsOf(entry);
    if (reconciledWith.get(before) === schema) return entry;
    const fields = reconcileWithSchema(before, root);
    reconciledWith.set(fields, schema);
    return withFields(entry, fields);
  });
}

/** By which schema a set was looked at last, and found to fit: it is the same set until its owner changes. */
const reconciledWith = new WeakMap<FieldSet, Schema>();

/** The owners before the write: the live object's, unless the request says otherwise, which only updates of the resource itself can. */
function entriesBefore({ live, updated, subresource }: TrackedUpdate): readonly ManagedFieldsEntry[] {
  const current = liveEntries(live);
  const given = updated.metadata.managedFields;
  if (subresource !== '' || !Array.isArray(given) || given === current) return current;
  if (isReset(given)) return [];
  if (deepEqual(given, current)) return current;
  const read = readEntries(given);
  return read === undefined || read.length === 0 ? current : read;
}

function asJson(object: KubeObject): JsonObject;
function asJson(object: KubeObject | undefined): JsonObject | undefined;
function asJson(object: KubeObject | undefined): JsonObject | undefined {
  return object as unknown as JsonObject | undefined;
}
