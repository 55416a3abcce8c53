import { compilePattern, isCompiled, type Pattern } from '../schema/pattern.ts';
import { type Budget, CHARACTERS_PER_UNIT, evaluationError } from './budget.ts';
import { type Overload, overload } from './functions.ts';
import { ArrayList } from './values.ts';

/** Regular expressions, on RE2 only: linear in the text, whatever the pattern. */

/** What a pattern's length multiplies the cost of walking the text by, as in cel-go. */
const PATTERN_LENGTH_PER_UNIT = 4;

/** What compiling costs for each instruction. Patterns that are data can all be different. */
const UNITS_PER_INSTRUCTION = 6;

function prepare(text: string, source: string, budget: Budget): Pattern {
  const isNew = !isCompiled(source);
  let pattern: Pattern;
  try {
    pattern = compilePattern(source);
  } catch (error) {
    budget.spend(source.length);
    throw evaluationError((error as Error).message);
  }
  if (isNew) budget.spend(pattern.size * UNITS_PER_INSTRUCTION);
  budget.spend(costOf(text.length, source, pattern));
  return pattern;
}

/** By the pattern's length as in cel-go, and by its instructions where a counted repetition makes those more. */
function costOf(length: number, source: string, pattern: Pattern): number {
  const width = Math.max(1, Math.max(source.length, pattern.size) / PATTERN_LENGTH_PER_UNIT);
  return ((length + 1) / CHARACTERS_PER_UNIT) * width;
}

function findAll(text: string, source: string, limit: number, budget: Budget): ArrayList {
  const pattern = prepare(text, source, budget);
  const found: string[] = [];
  const most = limit < 0 ? Number.POSITIVE_INFINITY : limit;
  let restLength = text.length;
  if (most === 0) return new ArrayList(found);
  for (const match of pattern.find(text)) {
    found.push(match);
    if (found.length >= most) break;
    // What is left may have to be walked to its end to find the next, however short that turns out to be.
    restLength -= match.length;
    budget.spend(costOf(restLength, source, pattern));
  }
  return new ArrayList(found);
}

export const regexFunctions: readonly Overload[] = [
  overload('string.matches(string): bool', ([text, pattern], budget) =>
    prepare(text as string, pattern as string, budget).test(text as string),
  ),
  overload('matches(string, string): bool', ([text, pattern], budget) =>
    prepare(text as string, pattern as string, budget).test(text as string),
  ),
  overload('string.find(string): string', ([text, pattern], budget) => {
    const [first = ''] = prepare(text as string, pattern as string, budget).find(text as string);
    return first;
  }),
  overload('string.findAll(string): list(string)', ([text, pattern], budget) =>
    findAll(text as string, pattern as string, -1, budget),
  ),
  overload('string.findAll(string, int): list(string)', ([text, pattern, limit], budget) =>
    findAll(text as string, pattern as string, Number(limit), budget),
  ),
];
