import { labelValueErrors, qualifiedNameErrors } from '../api/names.ts';
import { type ApiError, badRequest } from '../api/status.ts';

/** Requirements on labels and their text form, read and refused word for word as kube-apiserver does. */

export type SelectorOperator = 'In' | 'NotIn' | 'Exists' | 'DoesNotExist' | 'GreaterThan' | 'LessThan';

export interface Requirement {
  readonly key: string;
  readonly operator: SelectorOperator;
  readonly values: readonly string[];
}

export const INTEGER = /^-?\d{1,18}$/;

/** A word, a sign, or the end (which is the empty word). */
type Token = string;
const END: Token = '';
/** The longest sign that fits wins; what is no sign and no space belongs to a word. */
const TOKEN = /==|!=|[=!()<>,]|[^=!()<>,\s]+/g;
const SIGNS: ReadonlySet<Token> = new Set(['==', '!=', '=', '!', '(', ')', '<', '>', ',', END]);
const OPERATORS: ReadonlyMap<Token, SelectorOperator> = new Map([
  ['in', 'In'],
  ['notin', 'NotIn'],
  ['=', 'In'],
  ['==', 'In'],
  ['!=', 'NotIn'],
  ['>', 'GreaterThan'],
  ['<', 'LessThan'],
]);

/** Parses `a=b,c!=d,e in (f,g),!h`; no more than `max` of them. Throws 400 on bad syntax. */
export function parseRequirements(text: string, max: number): Requirement[] {
  const tokens = new Tokens(text);
  const requirements: Requirement[] = [];
  while (tokens.next !== END) {
    if (!isStart(tokens.next)) throw tokens.unexpected(", expected: !, identifier, or 'end of string'");
    if (requirements.push(readRequirement(tokens)) > max)
      throw badRequest(`unable to parse requirement: a selector has at most ${max} requirements`);
    if (tokens.next === END) break;
    if (tokens.take() !== ',') throw tokens.unexpectedLast(", expected: ',' or 'end of string'");
    if (!isStart(tokens.next)) throw tokens.unexpected(", expected: identifier after ','");
  }
  return requirements;
}

const isWord = (token: Token): boolean => !SIGNS.has(token);
const isStart = (token: Token): boolean => isWord(token) || token === '!';

class Tokens {
  readonly #tokens: readonly Token[];
  #position = 0;

  constructor(text: string) {
    this.#tokens = text.match(TOKEN) ?? [];
  }

  get next(): Token {
    return this.#tokens[this.#position] ?? END;
  }

  take(): Token {
    return this.#tokens[this.#position++] ?? END;
  }

  /** Complains about the token that comes next. */
  unexpected(expectation: string, context = ''): ApiError {
    return badRequest(`${context}found '${this.next}'${expectation}`);
  }

  /** Complains about the token taken last. */
  unexpectedLast(expectation: string, context = ''): ApiError {
    return badRequest(`${context}found '${this.#tokens[this.#position - 1] ?? END}'${expectation}`);
  }
}

const IN_REQUIREMENT = 'unable to parse requirement: ';

function readRequirement(tokens: Tokens): Requirement {
  const isNegated = tokens.next === '!';
  if (isNegated) tokens.take();
  const key = tokens.take();
  if (!isWord(key)) throw tokens.unexpectedLast(', expected: identifier', IN_REQUIREMENT);
  checkKey(key, '<nil>');
  if (isNegated) return { key, operator: 'DoesNotExist', values: [] };
  if (tokens.next === END || tokens.next === ',') return { key, operator: 'Exists', values: [] };
  const sign = tokens.take();
  const operator = OPERATORS.get(sign);
  if (operator === undefined) throw tokens.unexpectedLast(', expected: in, notin, =, ==, !=, gt, lt', IN_REQUIREMENT);
  const values = sign === 'in' || sign === 'notin' ? readSet(tokens) : [readValue(tokens)];
  return checkRequirement({ key, operator, values });
}

/** A value may be left out: `a=`. */
function readValue(tokens: Tokens): string {
  if (tokens.next === END || tokens.next === ',') return '';
  const value = tokens.take();
  if (!isWord(value)) throw tokens.unexpectedLast(', expected: identifier', IN_REQUIREMENT);
  return value;
}

/** `(a,b)`, where nothing before, between or after commas stands for the empty value. */
function readSet(tokens: Tokens): string[] {
  if (tokens.take() !== '(') throw tokens.unexpectedLast(" expected: '('", IN_REQUIREMENT);
  if (tokens.next !== ')' && tokens.next !== ',' && !isWord(tokens.next))
    throw tokens.unexpected(", expected: ',', ')' or identifier", IN_REQUIREMENT);
  const values = new Set<string>();
  for (;;) {
    if (isWord(tokens.next)) {
      values.add(tokens.take());
      if (tokens.next !== ',' && tokens.next !== ')') throw tokens.unexpected(", expected: ',' or ')'", IN_REQUIREMENT);
    } else if (tokens.next === ',' || tokens.next === ')') {
      values.add('');
    } else {
      throw tokens.unexpected(", expected: ',', or identifier", IN_REQUIREMENT);
    }
    if (tokens.take() === ')') return [...values];
  }
}

function checkKey(key: string, field: string): void {
  const errors = qualifiedNameErrors(key);
  if (errors.length > 0)
    throw badRequest(`${IN_REQUIREMENT}${field}: Invalid value: ${JSON.stringify(key)}: ${errors.join('; ')}`);
}

/** Throws 400 for keys and values that no label could have. */
export function checkRequirement(requirement: Requirement): Requirement {
  const { key, operator, values } = requirement;
  checkKey(key, 'key');
  if ((operator === 'In' || operator === 'NotIn') && values.length === 0) {
    throw badRequest(
      `${IN_REQUIREMENT}values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty`,
    );
  }
  if ((operator === 'GreaterThan' || operator === 'LessThan') && !INTEGER.test(values[0] ?? '')) {
    throw badRequest(
      `${IN_REQUIREMENT}values[0]: Invalid value: ${JSON.stringify(values[0])}: for 'Gt', 'Lt' operators, the value must be an integer`,
    );
  }
  for (const [index, value] of values.entries()) {
    const errors = labelValueErrors(value);
    if (errors.length > 0) {
      const found = `values[${index}][${key}]: Invalid value: ${JSON.stringify(value)}`;
      throw badRequest(`${IN_REQUIREMENT}${found}: ${errors.join('; ')}`);
    }
  }
  return requirement;
}
