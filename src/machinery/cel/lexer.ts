import type { Literal } from './ast.ts';
import { type CompileError, compileError } from './issues.ts';
import { parseString } from './string-literal.ts';
import { Uint } from './values.ts';

export interface Token {
  readonly kind: 'identifier' | 'literal' | 'operator' | 'end';
  /** The identifier or operator; the source text of a literal. */
  readonly text: string;
  readonly value?: Literal;
  readonly at: number;
}

const SPACE = /(?:[\t\n\f\r ]|\/\/[^\n]*)+/y;
const IDENTIFIER = /[_a-zA-Z][_a-zA-Z0-9]*/y;
const NUMBER = /0x[0-9a-fA-F]+u?|[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?u?|\.[0-9]+(?:[eE][+-]?[0-9]+)?/y;
const STRING_START = /(?:[rR][bB]?|[bB][rR]?)?(?:"""|'''|"|')/y;
const OPERATOR = /&&|\|\||[=!<>]=|[-+*/%!<>?:.,()[\]{}]/y;

const INT_MAX = 2n ** 63n;
const UINT_MAX = 2n ** 64n - 1n;

/** Splits an expression into tokens; throws a CompileError where it cannot. */
export function tokenize(source: string): Token[] {
  const tokens: Token[] = [];
  let at = 0;
  for (;;) {
    at += match(SPACE, source, at).length;
    if (at >= source.length) break;
    const token = nextToken(source, at);
    tokens.push(token);
    at += token.text.length;
  }
  tokens.push({ kind: 'end', text: '<EOF>', at: source.length });
  return tokens;
}

function nextToken(source: string, at: number): Token {
  const opening = match(STRING_START, source, at);
  if (opening !== '') {
    const { text, value } = parseString(source, at, opening);
    return { kind: 'literal', text, value, at };
  }
  const name = match(IDENTIFIER, source, at);
  if (name === 'true' || name === 'false') return { kind: 'literal', text: name, value: name === 'true', at };
  if (name === 'null') return { kind: 'literal', text: name, value: null, at };
  if (name === 'in') return { kind: 'operator', text: name, at };
  if (name !== '') return { kind: 'identifier', text: name, at };
  const number = match(NUMBER, source, at);
  if (number !== '') return { kind: 'literal', text: number, value: parseNumber(source, number, at), at };
  const operator = match(OPERATOR, source, at);
  if (operator !== '') return { kind: 'operator', text: operator, at };
  const stranger = String.fromCodePoint(source.codePointAt(at) ?? 0);
  throw syntaxError(source, at, `token recognition error at: '${stranger}'`);
}

function match(pattern: RegExp, source: string, at: number): string {
  pattern.lastIndex = at;
  return pattern.exec(source)?.[0] ?? '';
}

function parseNumber(source: string, text: string, at: number): Literal {
  const isHex = text.startsWith('0x');
  if (text.endsWith('u')) {
    const value = BigInt(text.slice(0, -1));
    if (value > UINT_MAX) throw compileError(source, at, 'invalid uint literal');
    return new Uint(value);
  }
  if (!isHex && /[.eE]/.test(text)) {
    const value = Number(text);
    if (!Number.isFinite(value)) throw compileError(source, at, 'invalid double literal');
    return value;
  }
  const value = BigInt(text);
  // One more than the largest is let through: it may be the digits of the smallest, its sign still to be seen.
  if (value > INT_MAX) throw compileError(source, at, 'invalid int literal');
  return value;
}

/** An error of syntax at a place, as the compiler reports it. */
export function syntaxError(source: string, at: number, detail: string): CompileError {
  return compileError(source, at, `Syntax error: ${detail}`);
}
