import { NONE } from '../columns.ts';
import { type Fields, textEntriesAt } from './fields.ts';

/** A map of labels as kubectl shows it, by key: `a=1,b=2`. */
export function labelsText(parent: Fields | undefined, field: string): string {
  const entries = textEntriesAt(parent, field).sort(([a], [b]) => (a < b ? -1 : 1));
  return entries.map(([key, value]) => `${key}=${value}`).join(',') || NONE;
}
