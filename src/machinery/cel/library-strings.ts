import { type Budget, CHARACTERS_PER_UNIT, evaluationError } from './budget.ts';
import { type Implementation, type Overload, overload } from './functions.ts';
import { formatText } from './format-text.ts';
import { ArrayList, type ListValue } from './values.ts';

/** Functions of strings. Positions count code points. */

/** A string that can be cut at code points: most have none that UTF-16 splits, and those stay strings. */
function pointsOf(text: string): string | string[] {
  return /[\uD800-\uDFFF]/.test(text) ? Array.from(text) : text;
}

function cut(points: string | string[], start: number, end: number): string {
  const part = points.slice(start, end);
  return typeof part === 'string' ? part : part.join('');
}

function walk(budget: Budget, ...texts: readonly string[]): void {
  let length = 0;
  for (const text of texts) length += text.length;
  budget.spend(length / CHARACTERS_PER_UNIT);
}

/** A search may have to start over at every character. */
function search(budget: Budget, text: string, part: string): void {
  budget.spend((text.length / CHARACTERS_PER_UNIT) * Math.max(1, part.length / CHARACTERS_PER_UNIT));
}

function tests(): Overload[] {
  const test =
    (decide: (text: string, part: string) => boolean): Implementation =>
    ([text, part], budget) => {
      search(budget, text as string, part as string);
      return decide(text as string, part as string);
    };
  return [
    overload(
      'string.contains(string): bool',
      test((text, part) => text.includes(part)),
    ),
    overload(
      'string.startsWith(string): bool',
      test((text, part) => text.startsWith(part)),
    ),
    overload(
      'string.endsWith(string): bool',
      test((text, part) => text.endsWith(part)),
    ),
  ];
}

function positions(): Overload[] {
  return [
    overload('string.charAt(int): string', ([text, at], budget) => {
      walk(budget, text as string);
      const points = pointsOf(text as string);
      const index = Number(at);
      if (index < 0 || index > points.length) throw outOfRange(index);
      return points[index] ?? '';
    }),
    overload('string.indexOf(string): int', ([text, part], budget) =>
      indexOf(text as string, part as string, 0, budget),
    ),
    overload('string.indexOf(string, int): int', ([text, part, from], budget) =>
      indexOf(text as string, part as string, Number(from), budget),
    ),
    overload('string.lastIndexOf(string): int', ([text, part], budget) =>
      lastIndexOf(text as string, part as string, undefined, budget),
    ),
    overload('string.lastIndexOf(string, int): int', ([text, part, from], budget) =>
      lastIndexOf(text as string, part as string, Number(from), budget),
    ),
    overload('string.substring(int): string', ([text, start], budget) =>
      substring(text as string, Number(start), undefined, budget),
    ),
    overload('string.substring(int, int): string', ([text, start, end], budget) =>
      substring(text as string, Number(start), Number(end), budget),
    ),
  ];
}

function outOfRange(index: number): Error {
  return evaluationError(`index out of range: ${index}`);
}

function indexOf(text: string, part: string, from: number, budget: Budget): bigint {
  search(budget, text, part);
  const points = pointsOf(text);
  if (part === '') return BigInt(from);
  if (from < 0) throw outOfRange(from);
  if (from >= points.length) return -1n;
  const skipped = cut(points, 0, from).length;
  const found = text.indexOf(part, skipped);
  return BigInt(found < 0 ? -1 : pointsOf(text.slice(0, found)).length);
}

function lastIndexOf(text: string, part: string, from: number | undefined, budget: Budget): bigint {
  search(budget, text, part);
  const points = pointsOf(text);
  if (from !== undefined && from < 0) throw outOfRange(from);
  if (part === '') return BigInt(from ?? points.length);
  if (from !== undefined && from >= points.length) return -1n;
  const found = text.lastIndexOf(part, from === undefined ? undefined : cut(points, 0, from).length);
  return BigInt(found < 0 ? -1 : pointsOf(text.slice(0, found)).length);
}

function substring(text: string, start: number, end: number | undefined, budget: Budget): string {
  walk(budget, text);
  const points = pointsOf(text);
  const stop = end ?? points.length;
  if (start > stop) {
    if (end === undefined) throw outOfRange(start);
    throw evaluationError(`invalid substring range. start: ${start}, end: ${end}`);
  }
  if (start < 0 || start > points.length) throw outOfRange(start);
  if (stop > points.length) throw outOfRange(stop);
  return cut(points, start, stop);
}

function changes(): Overload[] {
  return [
    overload('string.lowerAscii(): string', ([text], budget) => {
      walk(budget, text as string);
      return (text as string).replaceAll(/[A-Z]+/g, (part) => part.toLowerCase());
    }),
    overload('string.upperAscii(): string', ([text], budget) => {
      walk(budget, text as string);
      return (text as string).replaceAll(/[a-z]+/g, (part) => part.toUpperCase());
    }),
    overload('string.trim(): string', ([text], budget) => {
      walk(budget, text as string);
      return (text as string).trim();
    }),
    overload('string.replace(string, string): string', ([text, part, replacement], budget) =>
      replace(text as string, part as string, replacement as string, -1, budget),
    ),
    overload('string.replace(string, string, int): string', ([text, part, replacement, limit], budget) =>
      replace(text as string, part as string, replacement as string, Number(limit), budget),
    ),
    overload('strings.quote(string): string', ([text], budget) => {
      walk(budget, text as string, text as string);
      return quote(text as string);
    }),
    overload('string.format(list(dyn)): string', ([text, args], budget) =>
      formatText(text as string, args as ListValue, budget),
    ),
  ];
}

function replace(text: string, part: string, replacement: string, limit: number, budget: Budget): string {
  search(budget, text, part);
  if (limit === 0) return text;
  const pieces = part === '' ? ['', ...Array.from(text), ''] : text.split(part);
  const most = limit < 0 ? pieces.length - 1 : Math.min(limit, pieces.length - 1);
  // Paid before it is made: the result can be far longer than what it is made of.
  budget.spend(pieces.length + (text.length + most * replacement.length) / CHARACTERS_PER_UNIT);
  const rest = pieces.slice(most).join(part);
  return [...pieces.slice(0, most), rest].join(replacement);
}

const QUOTED: ReadonlyMap<string, string> = new Map([
  ['\u0007', '\\a'],
  ['\b', '\\b'],
  ['\f', '\\f'],
  ['\n', '\\n'],
  ['\r', '\\r'],
  ['\t', '\\t'],
  ['\v', '\\v'],
  ['\\', '\\\\'],
  ['"', '\\"'],
]);

function quote(text: string): string {
  let quoted = '';
  for (const char of text) quoted += QUOTED.get(char) ?? char;
  return `"${quoted}"`;
}

function lists(): Overload[] {
  return [
    overload('string.split(string): list(string)', ([text, by], budget) =>
      split(text as string, by as string, -1, budget),
    ),
    overload('string.split(string, int): list(string)', ([text, by, limit], budget) =>
      split(text as string, by as string, Number(limit), budget),
    ),
    overload('list(string).join(): string', ([list], budget) => join(list as ListValue, '', budget)),
    overload('list(string).join(string): string', ([list, by], budget) =>
      join(list as ListValue, by as string, budget),
    ),
  ];
}

function split(text: string, by: string, limit: number, budget: Budget): ListValue {
  search(budget, text, by);
  if (limit === 0) return new ArrayList([]);
  const pieces = by === '' ? Array.from(text) : text.split(by);
  budget.spend(pieces.length);
  if (limit < 0 || pieces.length <= limit) return new ArrayList(pieces);
  return new ArrayList([...pieces.slice(0, limit - 1), pieces.slice(limit - 1).join(by)]);
}

function join(list: ListValue, by: string, budget: Budget): string {
  const pieces: string[] = [];
  for (let index = 0; index < list.size; index++) {
    const piece = list.at(index);
    if (typeof piece !== 'string') throw evaluationError('no such overload');
    budget.spend(1 + (piece.length + by.length) / CHARACTERS_PER_UNIT);
    pieces.push(piece);
  }
  return pieces.join(by);
}

export const stringFunctions: readonly Overload[] = [...tests(), ...positions(), ...changes(), ...lists()];
