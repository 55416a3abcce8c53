/**
 * Server-side apply: a client says what it wants of an object, all of it and nothing else, and the server finds out
 * what that changes.
 *
 *     live + applied  -merge->  merged  -prune->  new object
 *
 * The merge adds and changes; pruning takes out what the same applier wanted before, no longer wants, and nobody else
 * owns. What the new object changes against the live one and another manager owns is a conflict, unless forced; what
 * stays as it was is owned by both from then on.
 */

import type { JsonObject, KubeObject, ManagedFieldsEntry } from '../../api/meta.ts';
import { parseApiVersion } from '../../api/meta.ts';
import type { Schema } from '../../api/schema.ts';
import { type ApiError, badRequest } from '../../api/status.ts';
import { clone } from '../clone.ts';
import { deepEqual } from '../equal.ts';
import { type Changes, UNOWNED, changesOf, fieldPaths, touchedBy } from './changes.ts';
import { type Conflict, conflictError, conflictsBeyond } from './conflict.ts';
import {
  type Owner,
  fieldsOf,
  isSameOwner,
  makeEntry,
  readEntries,
  releaseFields,
  sortEntries,
  withFields,
} from './entries.ts';
import { type FieldSet, NOTHING, difference, intersection, isEmpty, recursiveDifference, union } from './field-set.ts';
import { KUBECTL_MANAGER, lastAppliedFields, refreshLastApplied } from './last-applied.ts';
import { trackUpdate } from './managed-fields.ts';
import { mergeTyped } from './merge.ts';
import { appliedPaths, reconcileWithSchema } from './paths.ts';
import { prune } from './prune.ts';
import { rootSchemaOf } from './typed.ts';
import { validateApplied } from './validate-applied.ts';

/** Who owns the fields that were there before anything was tracked. */
const BEFORE_FIRST_APPLY_MANAGER = 'before-first-apply';
/** Mistakes in an applied object that a message lists. */
const ERRORS_SHOWN_MAX = 20;

export interface Application {
  /** Undefined when applying creates the object. */
  readonly live: KubeObject | undefined;
  readonly applied: KubeObject;
  readonly schema: Schema;
  readonly manager: string;
  /** Takes fields from their owners instead of refusing. */
  readonly force: boolean;
  /** The version that the endpoint serves; the applied object must be of it. */
  readonly apiVersion: string;
  /** Empty for the resource itself. */
  readonly subresource: string;
  /** Now. */
  readonly time: string;
  /** Fields, from the root, that cannot be changed through this endpoint and so are not owned through it. */
  readonly resetFields?: readonly (readonly string[])[];
}

/**
 * The object after the apply of one that `checkApplied` has passed, managed fields included; it shares nothing with the input. Throws
 * 409 with a cause per field for conflicts.
 */
export function applyObject(input: Application): KubeObject {
  const { live, applied, schema, apiVersion } = input;
  const base = withoutManagedFields(live ?? { apiVersion, kind: applied.kind, metadata: {} });
  const entries = ownersBefore(input, base);
  const attempt = mergeAndPrune(input, base, entries);
  const conflicts = input.force ? [] : conflictsOf(attempt, entries, ownerOf(input));
  if (conflicts.length > 0) {
    const allowed = input.manager === KUBECTL_MANAGER ? lastAppliedFields(base, schema, apiVersion) : NOTHING;
    const remaining = conflictsBeyond(conflicts, allowed);
    if (remaining.length > 0) throw conflictError(remaining);
  }
  const result = clone(attempt.object) as unknown as KubeObject;
  const managedFields = entriesAfter(input, attempt, entries, deepEqual(base, attempt.object));
  if (managedFields.length > 0) (result.metadata ??= {}).managedFields = clone(managedFields);
  if (input.manager === KUBECTL_MANAGER) refreshLastApplied(result, applied);
  return result;
}

/**
 * Throws 400 for what cannot be applied. Where the schema cannot tell the fields of the object Kubernetes says 500, in
 * the same words; but it is the client's mistake.
 */
export function checkApplied({
  applied,
  schema,
  apiVersion,
}: Pick<Application, 'applied' | 'schema' | 'apiVersion'>): void {
  const { group, version } = parseApiVersion(applied.apiVersion ?? '');
  const kind = `${group}/${version}, Kind=${applied.kind}`;
  if (applied.apiVersion !== apiVersion) throw badRequest(`invalid object type: ${kind}`);
  if (applied.metadata?.managedFields !== undefined && applied.metadata.managedFields !== null) {
    throw badRequest('metadata.managedFields must be nil');
  }
  const errors = validateApplied(applied as unknown as JsonObject, rootSchemaOf(schema));
  if (errors.length === 0) return;
  const subject = `${applied.metadata?.namespace ?? ''}/${applied.metadata?.name ?? ''}; ${kind}`;
  throw untypable(subject, errors);
}

function untypable(subject: string, errors: readonly string[]): ApiError {
  const [first] = errors;
  const shown = errors.slice(0, ERRORS_SHOWN_MAX).map((error) => `\n  ${error}`);
  const list = errors.length === 1 ? first : `errors:${shown.join('')}`;
  return badRequest(`failed to create typed patch object (${subject}): ${list}`);
}

function withoutManagedFields(object: KubeObject): JsonObject {
  const { managedFields: _managedFields, ...metadata } = object.metadata;
  return { ...object, metadata } as unknown as JsonObject;
}

/** The live object's entries; an object that was not tracked so far belongs to whoever came before. */
function ownersBefore(input: Application, base: JsonObject): ManagedFieldsEntry[] {
  if (input.live === undefined) return [];
  const entries = readEntries(input.live.metadata.managedFields ?? []) ?? [];
  if (entries.length === 0) {
    const updated = base as unknown as KubeObject;
    return trackUpdate({ ...input, live: undefined, updated, manager: BEFORE_FIRST_APPLY_MANAGER });
  }
  const root = rootSchemaOf(input.schema);
  return entries.map((entry) => withFields(entry, reconcileWithSchema(fieldsOf(entry), root)));
}

interface Attempt {
  readonly object: JsonObject;
  /** What the applier owns from now on, not yet stripped of what nobody owns. */
  readonly claimed: FieldSet;
  readonly changes: Changes | undefined;
}

function ownerOf({ manager, apiVersion, subresource }: Application): Owner {
  return { manager, operation: 'Apply', apiVersion, subresource };
}

function mergeAndPrune(input: Application, base: JsonObject, entries: readonly ManagedFieldsEntry[]): Attempt {
  const root = rootSchemaOf(input.schema);
  const applied = input.applied as unknown as JsonObject;
  const claimed = recursiveDifference(appliedPaths(applied, root), fieldPaths(input.resetFields ?? []));
  const owner = ownerOf(input);
  // The server's own fields are nobody's, and not to be pruned either.
  let [last, owned] = [NOTHING, union(claimed, UNOWNED)];
  for (const entry of entries) {
    if (isSameOwner(entry, owner)) last = fieldsOf(entry);
    else owned = union(owned, fieldsOf(entry));
  }
  const merged = mergeTyped(base, applied, root) as JsonObject;
  const object = prune(merged, last, owned, root);
  return { object, claimed, changes: changesOf(base, object, input.schema, input.resetFields) };
}

function conflictsOf(attempt: Attempt, entries: readonly ManagedFieldsEntry[], owner: Owner): Conflict[] {
  if (attempt.changes === undefined) return [];
  const { gained } = attempt.changes;
  return entries
    .filter((entry) => !isSameOwner(entry, owner))
    .map((entry) => ({ owner: entry, fields: intersection(fieldsOf(entry), gained) }))
    .filter(({ fields }) => !isEmpty(fields));
}

function entriesAfter(
  input: Application,
  { claimed, changes }: Attempt,
  entries: readonly ManagedFieldsEntry[],
  isUnchanged: boolean,
): ManagedFieldsEntry[] {
  const owner = ownerOf(input);
  const previous = entries.find((entry) => isSameOwner(entry, owner));
  const others = entries.filter((entry) => entry !== previous);
  const kept = changes === undefined ? others : releaseFields(others, touchedBy(changes));
  const fields = difference(claimed, UNOWNED);
  if (isEmpty(fields)) return sortEntries(kept);
  return sortEntries([...kept, makeEntry(owner, fields, isUnchanged ? previous?.time : input.time)]);
}
