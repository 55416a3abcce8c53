import { humanDuration } from '../api/human-duration.ts';
import type { Json, JsonObject, KubeObject, ListMeta } from '../api/meta.ts';
import type { Column, ResourceDefinition } from '../api/resource.ts';
import { compileJsonPath } from './json-path.ts';

/** meta.k8s.io/v1 Tables: what `kubectl get` asks for, each kind's columns already computed. */

export interface TableOptions {
  readonly nowMs: number;
  /** What each row carries of its object; kubectl asks for `Metadata` unless it has to sort or filter. */
  readonly includeObject: 'None' | 'Metadata' | 'Object';
  readonly listMeta?: ListMeta;
}

type Cell = (object: KubeObject, nowMs: number) => Json;

interface CompiledTable {
  readonly columnDefinitions: JsonObject[];
  readonly cells: readonly Cell[];
}

const compiledTables = new WeakMap<ResourceDefinition, CompiledTable>();

/** Objects of one kind as a Table. A single object is a table of one row; its resourceVersion is then the table's. */
export function toTable(
  definition: ResourceDefinition,
  objects: readonly KubeObject[],
  options: TableOptions,
): JsonObject {
  const { columnDefinitions, cells } = compiledTableOf(definition);
  const rows = objects.map((object) => rowOf(object, cells, options));
  return {
    kind: 'Table',
    apiVersion: 'meta.k8s.io/v1',
    metadata: listMetaOf(objects, options.listMeta),
    columnDefinitions,
    rows,
  };
}

/** The names, types and priorities of a kind's columns, as every Table of it begins. */
function compiledTableOf(definition: ResourceDefinition): CompiledTable {
  let compiled = compiledTables.get(definition);
  if (compiled === undefined) {
    const columns = columnsOf(definition);
    compiled = { columnDefinitions: columns.map(headerOf), cells: columns.map(cellOf) };
    compiledTables.set(definition, compiled);
  }
  return compiled;
}

const NAME: Column = {
  name: 'Name',
  type: 'string',
  format: 'name',
  description: 'Name, unique in its namespace for its kind; cannot be changed.',
  cell: (object) => object.metadata.name ?? '',
};

const AGE: Column = {
  name: 'Age',
  type: 'date',
  description: 'When the object was created.',
  jsonPath: '.metadata.creationTimestamp',
};

/** The only column that shows a moment as it is: that of kinds without columns of their own. */
const CREATED_AT: Column = {
  name: 'Created At',
  type: 'date',
  description: 'When the object was created.',
  cell: (object) => object.metadata.creationTimestamp ?? '',
};

function columnsOf(definition: ResourceDefinition): readonly Column[] {
  const { columns } = definition;
  if (definition.custom === true) return [NAME, ...(columns.length === 0 ? [AGE] : columns)];
  if (columns.length === 0) return [NAME, CREATED_AT];
  return columns.some((column) => column.name === 'Name') ? columns : [NAME, ...columns];
}

function headerOf(column: Column): JsonObject {
  return {
    name: column.name,
    type: column.type,
    format: column.format ?? '',
    description: column.description ?? (column.jsonPath === undefined ? '' : `From the object at ${column.jsonPath}`),
    priority: column.priority ?? 0,
  };
}

function cellOf(column: Column): Cell {
  if (column.cell !== undefined) return column.cell;
  let find: (value: Json) => Json[];
  try {
    find = compileJsonPath(column.jsonPath ?? '');
  } catch {
    // A definition with such a path is refused when it is written; one that slipped through costs a column, not a list.
    return () => null;
  }
  return (object, nowMs) => jsonCell(column.type, find(object as unknown as Json)[0], nowMs);
}

/** A found value as the column's type shows it: null where there is none, or one of another type. */
function jsonCell(type: Column['type'], value: Json | undefined, nowMs: number): Json {
  if (value === undefined || value === null) return null;
  switch (type) {
    case 'string':
      return typeof value === 'string' ? value : JSON.stringify(value);
    case 'integer':
      return typeof value === 'number' ? Math.trunc(value) : null;
    case 'number':
      return typeof value === 'number' ? value : null;
    case 'boolean':
      return typeof value === 'boolean' ? value : null;
    case 'date':
      return typeof value === 'string' ? dateCell(value, nowMs) : null;
    default:
      return null;
  }
}

function dateCell(value: string, nowMs: number): string {
  if (value === '') return '<unknown>';
  const ms = Date.parse(value);
  return Number.isNaN(ms) ? '<invalid>' : humanDuration(nowMs - ms);
}

function rowOf(object: KubeObject, cells: readonly Cell[], options: TableOptions): JsonObject {
  const row: JsonObject = { cells: cells.map((cell) => cell(object, options.nowMs)) };
  if (options.includeObject === 'Object') row['object'] = object as unknown as JsonObject;
  if (options.includeObject === 'Metadata') {
    row['object'] = {
      kind: 'PartialObjectMetadata',
      apiVersion: 'meta.k8s.io/v1',
      metadata: object.metadata as unknown as JsonObject,
    };
  }
  return row;
}

function listMetaOf(objects: readonly KubeObject[], listMeta: ListMeta | undefined): JsonObject {
  const { resourceVersion, continue: token, remainingItemCount } = listMeta ?? {};
  const metadata: JsonObject = {
    resourceVersion: resourceVersion ?? (objects.length === 1 ? (objects[0]?.metadata.resourceVersion ?? '') : ''),
  };
  if (token !== undefined && token !== '') metadata['continue'] = token;
  if (remainingItemCount !== undefined) metadata['remainingItemCount'] = remainingItemCount;
  return metadata;
}
