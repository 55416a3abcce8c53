/** What a write changes, as sets of paths. */

import type { Json, JsonObject } from '../../api/meta.ts';
import type { Schema } from '../../api/schema.ts';
import { deepEqual } from '../equal.ts';
import {
  type FieldSet,
  type FieldSetBuilder,
  NOTHING,
  fieldSetOf,
  isEmpty,
  recursiveDifference,
  union,
} from './field-set.ts';
import { type PathElement, fieldElement } from './path-element.ts';
import { everyPath, pathsInside } from './paths.ts';
import { type MaybeSchema, indexItems, rootSchemaOf, schemaOfField, shapeOf } from './typed.ts';

export interface Changes {
  /** Paths whose value was added or is another now. */
  readonly gained: FieldSet;
  /** Paths that are no longer there. */
  readonly removed: FieldSet;
}

/** As nodes; undefined is none. */
interface NodeChanges {
  gained?: FieldSet | undefined;
  removed?: FieldSet | undefined;
}

const CHANGED: NodeChanges = { gained: NOTHING };

/** Metadata that the server sets or that names the object: nobody's to own. */
const UNOWNED_METADATA: ReadonlySet<string> = new Set([
  'name',
  'namespace',
  'creationTimestamp',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
  'selfLink',
  'uid',
  'clusterName',
  'generation',
  'managedFields',
  'resourceVersion',
]);
const UNOWNED_ROOT: ReadonlySet<string> = new Set(['apiVersion', 'kind']);

/** The paths that never have an owner, for sets that were made from whole objects. */
export const UNOWNED: FieldSet = fieldSetOf([
  ...[...UNOWNED_ROOT, 'metadata'].map((field) => [fieldElement(field)]),
  ...[...UNOWNED_METADATA].map((field) => [fieldElement('metadata'), fieldElement(field)]),
]);

/** Field names from the root, as a set of paths. */
export function fieldPaths(paths: readonly (readonly string[])[]): FieldSet {
  return fieldSetOf(paths.map((path) => path.map(fieldElement)));
}

/**
 * What differs between two states of an object, leaving out what nobody can own and what is below `ignored`. Undefined
 * when nothing does. No `before` is a create.
 */
export function changesOf(
  before: JsonObject | undefined,
  after: JsonObject,
  schema: Schema,
  ignored: readonly (readonly string[])[] = [],
): Changes | undefined {
  const skipped = new Set(UNOWNED_ROOT).add('metadata');
  for (const [field, ...rest] of ignored) if (field !== undefined && rest.length === 0) skipped.add(field);
  const root = rootSchemaOf(schema);
  const changes = compareMaps(before ?? {}, after, root, skipped) ?? {};
  const metadata = compareMetadata(before?.['metadata'], after['metadata'], schemaOfField(root, 'metadata'));
  let gained = below('metadata', metadata?.gained, changes.gained);
  let removed = below('metadata', metadata?.removed, changes.removed);
  if (ignored.some((path) => path.length > 1 || path[0] === 'metadata')) {
    const filter = fieldPaths(ignored);
    gained = recursiveDifference(gained, filter);
    removed = recursiveDifference(removed, filter);
  }
  return isEmpty(gained) && isEmpty(removed) ? undefined : { gained, removed };
}

function compareMetadata(
  before: Json | undefined,
  after: Json | undefined,
  schema: MaybeSchema,
): NodeChanges | undefined {
  const [old, now] = [before ?? {}, after ?? {}];
  if (shapeOf(old, schema) !== 'map' || shapeOf(now, schema) !== 'map') return undefined;
  return compareMaps(old as JsonObject, now as JsonObject, schema, UNOWNED_METADATA);
}

function below(field: string, node: FieldSet | undefined, set: FieldSet = NOTHING): FieldSet {
  return node === undefined ? set : { ...set, [fieldElement(field)]: node };
}

function compareValues(
  before: Json | undefined,
  after: Json | undefined,
  schema: MaybeSchema,
): NodeChanges | undefined {
  if (before === after) return undefined;
  if (before === undefined) return { gained: everyPath(after as Json, schema) };
  if (after === undefined) return { removed: everyPath(before, schema) };
  const [shapeBefore, shapeAfter] = [shapeOf(before, schema), shapeOf(after, schema)];
  if (shapeBefore !== shapeAfter) return compareShapes(before, after, schema);
  if (shapeAfter === 'map') return compareMaps(before as JsonObject, after as JsonObject, schema);
  if (deepEqual(before, after)) return undefined;
  return shapeAfter === 'list' ? compareLists(before as Json[], after as Json[], schema) : CHANGED;
}

/** Fields of built-in kinds whose messages Go holds by value, so that they are there before anybody sets them. */
const BY_VALUE: ReadonlySet<string> = new Set([
  'acceptedNames',
  'involvedObject',
  'jobTemplate',
  'loadBalancer',
  'metadata',
  'names',
  'nodeInfo',
  'podSelector',
  'regarding',
  'resources',
  'roleRef',
  'spec',
  'status',
  'strategy',
  'template',
  'updateStrategy',
]);

/** What an object of a built-in kind has in a field that nobody has set: an empty message, or a list that is null. */
function alwaysThere(schema: MaybeSchema, field: string): Json | undefined {
  const property = schema?.name === undefined ? undefined : schemaOfField(schema, field);
  if (property?.name !== undefined && BY_VALUE.has(field)) return {};
  const isContainer = property?.type === 'array' || property?.type === 'object';
  return isContainer && schema?.required?.includes(field) === true ? null : undefined;
}

const NO_FIELDS: ReadonlySet<string> = new Set();

function compareMaps(
  before: JsonObject,
  after: JsonObject,
  schema: MaybeSchema,
  skipped: ReadonlySet<string> = NO_FIELDS,
): NodeChanges | undefined {
  const collector: Collector = {};
  for (const key of Object.keys(after)) {
    if (skipped.has(key)) continue;
    const old = Object.hasOwn(before, key) ? before[key] : alwaysThere(schema, key);
    const now = after[key];
    if (old !== now) collect(collector, fieldElement(key), compareValues(old, now, schemaOfField(schema, key)));
  }
  for (const key of Object.keys(before)) {
    if (before[key] === undefined || Object.hasOwn(after, key) || skipped.has(key)) continue;
    collect(collector, fieldElement(key), { removed: everyPath(before[key], schemaOfField(schema, key)) });
  }
  return collector.gained === undefined && collector.removed === undefined ? undefined : collector;
}

function compareLists(before: readonly Json[], after: readonly Json[], schema: MaybeSchema): NodeChanges | undefined {
  const [old, now] = [indexItems(before, schema), indexItems(after, schema)];
  if (old === undefined || now === undefined || (old.size === 0 && now.size === 0)) return CHANGED;
  const collector: Collector = {};
  for (const [element, items] of now)
    collect(collector, element, compareItems(old.get(element) ?? [], items, schema?.items));
  for (const [element, items] of old) {
    if (!now.has(element)) collect(collector, element, compareItems(items, [], schema?.items));
  }
  return collector;
}

/** Compares the items of one key. Where there are several, they are owned together, without their fields. */
function compareItems(before: readonly Json[], after: readonly Json[], schema: MaybeSchema): NodeChanges | undefined {
  if (before.length > 1 && after.length > 1) return deepEqual(before, after) ? undefined : CHANGED;
  if (before.length <= 1 && after.length <= 1) return compareValues(before[0], after[0], schema);
  if (before.length > 1) {
    return { gained: after.length === 0 ? undefined : everyPath(after[0] as Json, schema), removed: NOTHING };
  }
  return { gained: NOTHING, removed: before.length === 0 ? undefined : everyPath(before[0] as Json, schema) };
}

/** Compares a container with something else in its place. Null is an empty container of any kind. */
function compareShapes(before: Json, after: Json, schema: MaybeSchema): NodeChanges {
  const [old, now] = [pathsInside(before, schema), pathsInside(after, schema)];
  const isSameButForContents = before === null || after === null || (old !== undefined && now !== undefined);
  if (isSameButForContents && (old !== undefined || now !== undefined)) return { gained: now, removed: old };
  return { gained: now === undefined ? NOTHING : { '.': NOTHING, ...now }, removed: old };
}

interface Collector {
  gained?: FieldSetBuilder;
  removed?: FieldSetBuilder;
}

function collect(collector: Collector, element: PathElement, changes: NodeChanges | undefined): void {
  if (changes === undefined) return;
  if (changes.gained !== undefined) (collector.gained ??= {})[element] = changes.gained;
  if (changes.removed !== undefined) (collector.removed ??= {})[element] = changes.removed;
}

/** All paths that a write touched: nobody but the writer keeps them. */
export function touchedBy(changes: Changes): FieldSet {
  return union(changes.gained, changes.removed);
}
