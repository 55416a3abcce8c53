import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../api/meta.ts';
import type { Column, ResourceDefinition } from '../api/resource.ts';
import { toTable } from './table.ts';

const NOW_MS = Date.parse('2026-01-02T03:04:05Z');

function definitionOf(columns: readonly Column[], custom: boolean): ResourceDefinition {
  return {
    group: 'example.com',
    version: 'v1',
    plural: 'things',
    singular: 'thing',
    kind: 'Thing',
    listKind: 'ThingList',
    namespaced: true,
    schema: {},
    hasStatus: false,
    hasGeneration: false,
    columns,
    custom,
  };
}

const thing: KubeObject = {
  apiVersion: 'example.com/v1',
  kind: 'Thing',
  metadata: { name: 'one', resourceVersion: '7', creationTimestamp: '2026-01-02T03:00:05Z', labels: { a: 'b' } },
  spec: { text: 'hello', number: 1.5, flag: true, list: ['x', 1], when: '2026-01-02T03:03:05Z', nothing: null },
};

function cellOf(column: Partial<Column>): unknown {
  const definition = definitionOf([{ name: 'C', type: 'string', ...column }], true);
  const table = toTable(definition, [thing], { nowMs: NOW_MS, includeObject: 'None' });
  return (table['rows'] as { cells: unknown[] }[])[0]?.cells[1];
}

describe('toTable', () => {
  it('begins with the name and ends with what the definition says', () => {
    const columns: Column[] = [
      { name: 'Text', type: 'string', jsonPath: '.spec.text', description: 'A text.', priority: 1, format: 'x' },
    ];
    const table = toTable(definitionOf(columns, true), [thing], { nowMs: NOW_MS, includeObject: 'None' });
    expect(table).toMatchObject({ kind: 'Table', apiVersion: 'meta.k8s.io/v1' });
    expect(table['columnDefinitions']).toEqual([
      expect.objectContaining({ name: 'Name', type: 'string', format: 'name', priority: 0 }),
      { name: 'Text', type: 'string', format: 'x', description: 'A text.', priority: 1 },
    ]);
    expect(table['rows']).toEqual([{ cells: ['one', 'hello'] }]);
  });

  it('shows the age of custom resources that define no columns', () => {
    const table = toTable(definitionOf([], true), [thing], { nowMs: NOW_MS, includeObject: 'None' });
    expect(table['columnDefinitions']).toMatchObject([{ name: 'Name' }, { name: 'Age', type: 'date' }]);
    expect(table['rows']).toEqual([{ cells: ['one', '4m'] }]);
  });

  it('shows when built-in objects without columns were created', () => {
    const table = toTable(definitionOf([], false), [thing], { nowMs: NOW_MS, includeObject: 'None' });
    expect(table['columnDefinitions']).toMatchObject([{ name: 'Name' }, { name: 'Created At', type: 'date' }]);
    expect(table['rows']).toEqual([{ cells: ['one', '2026-01-02T03:00:05Z'] }]);
  });

  it('leaves the place of the name to built-in kinds that say it', () => {
    const last: Column = { name: 'Last', type: 'string', cell: () => 'now' };
    const name: Column = { name: 'Name', type: 'string', priority: 1, cell: (object) => object.metadata.name ?? '' };
    const table = toTable(definitionOf([last, name], false), [thing], { nowMs: NOW_MS, includeObject: 'None' });
    expect(table['rows']).toEqual([{ cells: ['now', 'one'] }]);
  });

  it('adds the name to built-in kinds that do not say it', () => {
    const column: Column = { name: 'X', type: 'integer', cell: () => 1 };
    const table = toTable(definitionOf([column], false), [thing], { nowMs: NOW_MS, includeObject: 'None' });
    expect(table['rows']).toEqual([{ cells: ['one', 1] }]);
  });

  it.each<[string, Partial<Column>, unknown]>([
    ['a text', { jsonPath: '.spec.text' }, 'hello'],
    ['a number as text', { jsonPath: '.spec.number' }, '1.5'],
    ['a list as text', { jsonPath: '.spec.list' }, '["x",1]'],
    ['the first of several', { jsonPath: '.spec.list[*]' }, 'x'],
    ['a missing text', { jsonPath: '.spec.missing' }, null],
    ['a null', { jsonPath: '.spec.nothing' }, null],
    ['an integer', { type: 'integer', jsonPath: '.spec.number' }, 1],
    ['a number', { type: 'number', jsonPath: '.spec.number' }, 1.5],
    ['a text where a number belongs', { type: 'number', jsonPath: '.spec.text' }, null],
    ['a boolean', { type: 'boolean', jsonPath: '.spec.flag' }, true],
    ['a text where a boolean belongs', { type: 'boolean', jsonPath: '.spec.text' }, null],
    ['an age', { type: 'date', jsonPath: '.spec.when' }, '60s'],
    ['a date that is none', { type: 'date', jsonPath: '.spec.text' }, '<invalid>'],
    ['a number where a date belongs', { type: 'date', jsonPath: '.spec.number' }, null],
    ['a path that cannot be read', { jsonPath: 'spec' }, null],
  ])('shows %s', (_what, column, expected) => {
    expect(cellOf(column)).toEqual(expected);
  });

  it('carries as much of the object as is asked for', () => {
    const definition = definitionOf([], true);
    const rowsOf = (includeObject: 'None' | 'Metadata' | 'Object'): unknown =>
      toTable(definition, [thing], { nowMs: NOW_MS, includeObject })['rows'];
    expect(rowsOf('None')).toEqual([{ cells: ['one', '4m'] }]);
    expect(rowsOf('Metadata')).toEqual([
      {
        cells: ['one', '4m'],
        object: { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata: thing.metadata },
      },
    ]);
    expect(rowsOf('Object')).toEqual([{ cells: ['one', '4m'], object: thing }]);
  });

  it("carries the list's metadata, or the version of a single object", () => {
    const definition = definitionOf([], true);
    const options = { nowMs: NOW_MS, includeObject: 'None' as const };
    const listMeta = { resourceVersion: '12', continue: 'token', remainingItemCount: 0 };
    expect(toTable(definition, [], { ...options, listMeta })['metadata']).toEqual(listMeta);
    expect(toTable(definition, [thing], options)['metadata']).toEqual({ resourceVersion: '7' });
    expect(toTable(definition, [], options)).toMatchObject({ metadata: { resourceVersion: '' }, rows: [] });
  });
});
