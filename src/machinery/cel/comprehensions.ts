import { unreachable } from '../../api/unreachable.ts';
import type { ComprehensionKind } from './ast.ts';
import { evaluationError, EvaluationError } from './budget.ts';
import { sortBy } from './library-lists.ts';
import type { Frame, Run, Typed } from './frame.ts';
import { BOOL, DYN, INT, isAny, listOf, mapOf, spellType, type Type } from './types.ts';
import { ArrayList, EntryMap, ListValue, MapValue, type Value } from './values.ts';

/** The macros that walk lists and maps. */

export interface ComprehensionParts {
  readonly range: Typed;
  /** Where the iteration variables live: one (item or key) or two (index and item, key and value). */
  readonly slots: readonly number[];
  readonly filter: Typed | undefined;
  readonly body: Typed;
  readonly itemType: Type;
}

/** What each round costs beyond what its body does. */
const ROUND_COST = 1;

/** The types of the iteration variables over a range; undefined where it cannot be walked. */
export function rangeTypes(range: Type, count: number): readonly Type[] | undefined {
  if (isAny(range)) return [DYN, DYN].slice(0, count);
  if (range.kind === 'list') return count === 1 ? [range.element] : [INT, range.element];
  if (range.kind === 'map') return count === 1 ? [range.key] : [range.key, range.value];
  return undefined;
}

/** Compiles a comprehension; a text where its parts are of the wrong types. */
export function compileComprehension(kind: ComprehensionKind, parts: ComprehensionParts): Typed | string {
  const { body, filter } = parts;
  const wantsBool = kind === 'all' || kind === 'exists' || kind === 'existsOne' || kind === 'filter';
  const condition = wantsBool ? body : filter;
  if (condition && condition.type.kind !== 'bool' && !isAny(condition.type)) {
    return `expected type 'bool' but found '${spellType(condition.type)}'`;
  }
  switch (kind) {
    case 'all':
      return { type: BOOL, run: quantifier(parts, false) };
    case 'exists':
      return { type: BOOL, run: quantifier(parts, true) };
    case 'existsOne':
      return { type: BOOL, run: (frame) => collect(parts, frame, (item) => item, body.run).length === 1 };
    case 'filter':
      return {
        type: listOf(parts.itemType),
        run: (frame) => new ArrayList(collect(parts, frame, (item) => item, body.run)),
      };
    case 'map':
    case 'transformList':
      return {
        type: listOf(body.type),
        run: (frame) => new ArrayList(collect(parts, frame, () => body.run(frame), filter?.run)),
      };
    case 'sortBy':
      return { type: listOf(parts.itemType), run: (frame) => sorted(parts, frame) };
    case 'transformMap':
      return { type: mapOf(keyType(parts.range.type), body.type), run: (frame) => transformMap(parts, frame) };
    case 'transformMapEntry':
      if (body.type.kind !== 'map' && !isAny(body.type)) return 'transformMapEntry must answer a map';
      return { type: isAny(body.type) ? mapOf(DYN, DYN) : body.type, run: (frame) => mergeEntries(parts, frame) };
    default:
      return unreachable(kind);
  }
}

function keyType(range: Type): Type {
  if (range.kind === 'map') return range.key;
  return range.kind === 'list' ? INT : DYN;
}

/** Sets the variables for each round in turn; stops early where `visit` answers true. */
function walk(parts: ComprehensionParts, frame: Frame, visit: (item: Value, key: Value) => boolean): void {
  const { slots, budget } = frame;
  const range = parts.range.run(frame);
  const [first = 0, second] = parts.slots;
  if (range instanceof ListValue) {
    for (let index = 0; index < range.size; index++) {
      budget.spend(ROUND_COST);
      const item = range.at(index);
      const key = BigInt(index);
      slots[first] = second === undefined ? item : key;
      if (second !== undefined) slots[second] = item;
      if (visit(item, key)) return;
    }
  } else if (range instanceof MapValue) {
    for (const key of range.keys()) {
      budget.spend(ROUND_COST);
      slots[first] = key;
      if (second !== undefined) slots[second] = range.get(key) ?? null;
      if (visit(key, key)) return;
    }
  } else throw evaluationError('no such overload');
}

/** `all` and `exists`: a round that decides wins over the failure of another. */
function quantifier(parts: ComprehensionParts, decisive: boolean): Run {
  const { run } = parts.body;
  return (frame) => {
    let failure: EvaluationError | undefined;
    let isDecided = false;
    walk(parts, frame, () => {
      try {
        isDecided = truthOf(run(frame)) === decisive;
      } catch (error) {
        if (!(error instanceof EvaluationError)) throw error;
        failure ??= error;
      }
      return isDecided;
    });
    if (isDecided) return decisive;
    if (failure) throw failure;
    return !decisive;
  };
}

function collect(
  parts: ComprehensionParts,
  frame: Frame,
  make: (item: Value) => Value,
  test: Run | undefined,
): Value[] {
  const results: Value[] = [];
  walk(parts, frame, (item) => {
    if (test === undefined || truthOf(test(frame))) results.push(make(item));
    return false;
  });
  return results;
}

function truthOf(value: Value): boolean {
  if (typeof value !== 'boolean') throw evaluationError('no such overload');
  return value;
}

function sorted(parts: ComprehensionParts, frame: Frame): ListValue {
  const items: Value[] = [];
  const keys = collect(
    parts,
    frame,
    (item) => {
      items.push(item);
      return parts.body.run(frame);
    },
    undefined,
  );
  return new ArrayList(sortBy(items, keys, frame.budget));
}

function transformMap(parts: ComprehensionParts, frame: Frame): MapValue {
  const map = new EntryMap();
  walk(parts, frame, (_item, key) => {
    if (parts.filter === undefined || truthOf(parts.filter.run(frame))) map.set(key, parts.body.run(frame));
    return false;
  });
  return map;
}

function mergeEntries(parts: ComprehensionParts, frame: Frame): MapValue {
  const map = new EntryMap();
  walk(parts, frame, () => {
    if (parts.filter !== undefined && !truthOf(parts.filter.run(frame))) return false;
    const entries = parts.body.run(frame);
    if (!(entries instanceof MapValue)) throw evaluationError('no such overload');
    for (const key of entries.keys()) {
      if (map.has(key)) throw evaluationError('insert failed: key already exists');
      map.set(key, entries.get(key) ?? null);
    }
    return false;
  });
  return map;
}
