import { ageOf } from '../human-duration.ts';
import type { JsonObject, KubeObject } from '../meta.ts';
import type { Column } from '../resource.ts';
import { type Fields, numberAt, objectAt, objectsAt, textAt, textEntriesAt, textsAt } from './core/fields.ts';

/** Columns that many kinds share; what they show is what kubectl users know. */

/** What to write where there is nothing to show. */
export const NONE = '<none>';

/** The object's name. */
export const nameColumn: Column = {
  name: 'Name',
  type: 'string',
  format: 'name',
  description: 'Name, unique in its namespace for its kind; cannot be changed.',
  cell: (object) => object.metadata.name ?? '',
};

/** How long ago the object was created. */
export const ageColumn: Column = {
  name: 'Age',
  type: 'string',
  description: 'When the object was created.',
  cell: (object, nowMs) => ageOf(object.metadata.creationTimestamp, nowMs),
};

type Cell = (
  spec: JsonObject | undefined,
  status: JsonObject | undefined,
  object: KubeObject,
  nowMs: number,
) => string | number | boolean | null;

/** A column computed from the spec and the status, either of which may be missing. */
export function column(name: string, type: Column['type'], description: string, cell: Cell, priority = 0): Column {
  return {
    name,
    type,
    description,
    ...(priority === 0 ? {} : { priority }),
    cell: (object, nowMs) => cell(objectAt(object, 'spec'), objectAt(object, 'status'), object, nowMs),
  };
}

/** A column that only `-o wide` shows. */
export function wideColumn(name: string, type: Column['type'], description: string, cell: Cell): Column {
  return column(name, type, description, cell, 1);
}

/** A column with a number of the status. */
export function countColumn(name: string, description: string, field: string): Column {
  return column(name, 'integer', description, (_spec, status) => numberAt(status, field) ?? 0);
}

/** Containers and images of a workload's pod template; `templateOf` finds the template in the spec. */
export function containerColumns(
  templateOf: (spec: JsonObject | undefined) => Fields | undefined = (spec) => objectAt(spec, 'template'),
): readonly Column[] {
  const cellOf =
    (field: string): Cell =>
    (spec) =>
      objectsAt(objectAt(templateOf(spec), 'spec'), 'containers')
        .map((container) => textAt(container, field))
        .join(',');
  return [
    wideColumn('Containers', 'string', 'Names of the containers in the template.', cellOf('name')),
    wideColumn('Images', 'string', 'Images of the containers in the template.', cellOf('image')),
  ];
}

/** The selector of a workload, as text. */
export const selectorColumn: Column = wideColumn('Selector', 'string', 'Which pods belong to it.', (spec) =>
  selectorText(objectAt(spec, 'selector')),
);

/** A LabelSelector as `kubectl get` shows it; `<none>` where it is empty or missing. */
export function selectorText(selector: Fields | undefined): string {
  const requirements = textEntriesAt(selector, 'matchLabels').map(([key, value]) => ({ key, text: `${key}=${value}` }));
  for (const expression of objectsAt(selector, 'matchExpressions')) {
    requirements.push({ key: textAt(expression, 'key'), text: requirementText(expression) });
  }
  if (requirements.length === 0) return NONE;
  requirements.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
  return requirements.map((requirement) => requirement.text).join(',');
}

function requirementText(expression: JsonObject): string {
  const key = textAt(expression, 'key');
  const values = `(${textsAt(expression, 'values').toSorted().join(',')})`;
  switch (textAt(expression, 'operator')) {
    case 'In':
      return `${key} in ${values}`;
    case 'NotIn':
      return `${key} notin ${values}`;
    case 'Exists':
      return key;
    case 'DoesNotExist':
      return `!${key}`;
    default:
      return '<error>';
  }
}

/** At most three items and how many more there are: `a,b,c + 2 more...`. */
export function shortList(items: readonly string[]): string {
  if (items.length === 0) return '<unset>';
  const shown = items.slice(0, 3).join(',');
  return items.length > 3 ? `${shown} + ${items.length - 3} more...` : shown;
}
