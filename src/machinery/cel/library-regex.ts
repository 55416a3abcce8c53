import type { RE2JS } from 're2js';
import { compilePattern } from '../schema/pattern.ts';
import { type Budget, CHARACTERS_PER_UNIT, evaluationError } from './budget.ts';
import { type Overload, overload } from './functions.ts';
import { ArrayList } from './values.ts';

/** Regular expressions, on RE2 only: linear in the text, whatever the pattern. */

/** What a pattern's length multiplies the cost of walking the text by, as in cel-go. */
const PATTERN_LENGTH_PER_UNIT = 4;

function prepare(text: string, pattern: string, budget: Budget): RE2JS {
  const width = Math.max(1, pattern.length / PATTERN_LENGTH_PER_UNIT);
  budget.spend(((text.length + 1) / CHARACTERS_PER_UNIT) * width);
  try {
    return compilePattern(pattern);
  } catch (error) {
    throw evaluationError((error as Error).message);
  }
}

function findAll(text: string, pattern: string, limit: number, budget: Budget): ArrayList {
  const matcher = prepare(text, pattern, budget).matcher(text);
  const found: string[] = [];
  const most = limit < 0 ? Number.POSITIVE_INFINITY : limit;
  for (let count = 0; count < most && matcher.find(); count++) {
    budget.spend(1);
    found.push(matcher.group() ?? '');
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
    const matcher = prepare(text as string, pattern as string, budget).matcher(text as string);
    return matcher.find() ? (matcher.group() ?? '') : '';
  }),
  overload('string.findAll(string): list(string)', ([text, pattern], budget) =>
    findAll(text as string, pattern as string, -1, budget),
  ),
  overload('string.findAll(string, int): list(string)', ([text, pattern, limit], budget) =>
    findAll(text as string, pattern as string, Number(limit), budget),
  ),
];
