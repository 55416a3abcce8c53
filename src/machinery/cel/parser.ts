import type { ListItem, MapEntry, Node } from './ast.ts';
import { type CompileError, compileError } from './issues.ts';
import { syntaxError, type Token, tokenize } from './lexer.ts';
import { expandMacro } from './macros.ts';

/** Longest expression accepted, in UTF-16 units; the same limit as cel-go's. */
const EXPRESSION_LENGTH_MAX = 100_000;
/** Deepest nesting of the source (parentheses, calls), as cel-go's. */
const NESTING_MAX = 250;
/** Deepest tree: a long sum is deep though it is not nested, and trees are walked recursively. */
const TREE_DEPTH_MAX = 500;

const RESERVED: ReadonlySet<string> = new Set(
  'as break const continue else false for function if import in let loop package namespace null return true var void while'.split(
    ' ',
  ),
);

/** Binary operators by how loosely they bind; logical ones and the conditional are looser still. */
const BINARY: readonly ReadonlySet<string>[] = [
  new Set(['<', '<=', '>', '>=', '==', '!=', 'in']),
  new Set(['+', '-']),
  new Set(['*', '/', '%']),
];

/** Parses an expression and expands its macros; throws a CompileError. */
export function parse(source: string): Node {
  if (source.length > EXPRESSION_LENGTH_MAX) {
    const detail = `expression code point size exceeds limit: size: ${source.length}, limit ${EXPRESSION_LENGTH_MAX}`;
    throw syntaxError(source, 0, detail);
  }
  return new Parser(source).parseAll();
}

class Parser {
  readonly #source: string;
  readonly #tokens: readonly Token[];
  readonly #depths = new WeakMap<Node, number>();
  #position = 0;
  #nesting = 0;

  constructor(source: string) {
    this.#source = source;
    this.#tokens = tokenize(source);
  }

  parseAll(): Node {
    const node = this.#expression();
    if (this.#token.kind !== 'end') throw this.#unexpected('<EOF>');
    return node;
  }

  #expression(): Node {
    if (++this.#nesting > NESTING_MAX) {
      throw syntaxError(this.#source, this.#token.at, `expression recursion limit exceeded: ${NESTING_MAX}`);
    }
    const node = this.#conditional();
    this.#nesting--;
    return node;
  }

  #conditional(): Node {
    const condition = this.#logical('or');
    const { at } = this.#token;
    if (!this.#accept('?')) return condition;
    const whenTrue = this.#logical('or');
    this.#expect(':');
    const whenFalse = this.#expression();
    return this.#measured({ op: 'conditional', at, condition, whenTrue, whenFalse }, [condition, whenTrue, whenFalse]);
  }

  #logical(op: 'and' | 'or'): Node {
    const next = (): Node => (op === 'or' ? this.#logical('and') : this.#binary(0));
    const operands = [next()];
    const { at } = this.#token;
    while (this.#accept(op === 'or' ? '||' : '&&')) operands.push(next());
    const [first] = operands;
    return operands.length === 1 && first ? first : this.#measured({ op, at, operands }, operands);
  }

  #binary(level: number): Node {
    const operators = BINARY[level];
    if (operators === undefined) return this.#unary();
    let left = this.#binary(level + 1);
    while (this.#token.kind === 'operator' && operators.has(this.#token.text)) {
      const { text, at } = this.#advance();
      const right = this.#binary(level + 1);
      const name = text === 'in' ? '@in' : `_${text}_`;
      left = this.#measured({ op: 'call', at, name, target: undefined, args: [left, right] }, [left, right]);
    }
    return left;
  }

  #unary(): Node {
    const { text, at, kind } = this.#token;
    if (kind !== 'operator' || (text !== '!' && text !== '-')) return this.#member();
    let count = 0;
    while (this.#accept(text)) count++;
    const { value } = this.#token;
    const isNumber = typeof value === 'bigint' || typeof value === 'number';
    if (text === '-' && count % 2 === 1 && isNumber) return this.#member(true);
    const operand = this.#member();
    if (count % 2 === 0) return operand;
    const name = text === '!' ? '!_' : '-_';
    return this.#measured({ op: 'call', at, name, target: undefined, args: [operand] }, [operand]);
  }

  #member(isNegative = false): Node {
    let node = this.#primary(isNegative);
    for (;;) {
      const { at } = this.#token;
      if (this.#accept('.')) node = this.#selection(node, at);
      else if (this.#accept('[')) {
        const isOptional = this.#accept('?');
        const index = this.#expression();
        this.#expect(']');
        node = this.#measured({ op: 'index', at, operand: node, index, isOptional }, [node, index]);
      } else return node;
    }
  }

  #selection(operand: Node, at: number): Node {
    const isOptional = this.#accept('?');
    if (this.#token.kind !== 'identifier') throw this.#unexpected('IDENTIFIER');
    const field = this.#advance().text;
    const open = this.#token.at;
    if (!isOptional && this.#accept('(')) return this.#call(field, operand, open);
    return this.#measured({ op: 'select', at, operand, field, isOptional }, [operand]);
  }

  #call(name: string, target: Node | undefined, at: number): Node {
    const args = this.#arguments();
    const expanded = expandMacro(name, target, args, at, (place, detail) => compileError(this.#source, place, detail));
    const node: Node = expanded ?? { op: 'call', at, name, target, args };
    return this.#measured(node, target ? [target, ...args] : args);
  }

  #arguments(): Node[] {
    const args: Node[] = [];
    if (this.#accept(')')) return args;
    do args.push(this.#expression());
    while (this.#accept(','));
    this.#expect(')');
    return args;
  }

  #primary(isNegative: boolean): Node {
    const { kind, text, at, value } = this.#token;
    if (kind === 'literal' && value !== undefined) return this.#literal(isNegative);
    if (this.#accept('(')) {
      const node = this.#expression();
      this.#expect(')');
      return node;
    }
    if (this.#accept('[')) return this.#list(at);
    if (this.#accept('{')) return this.#map(at);
    // A leading dot names the root namespace, which is the only one.
    this.#accept('.');
    if (this.#token.kind !== 'identifier') throw this.#unexpected();
    const name = this.#advance().text;
    if (RESERVED.has(name)) throw compileError(this.#source, at, `reserved identifier: ${text}`);
    const open = this.#token.at;
    if (this.#accept('(')) return this.#call(name, undefined, open);
    return { op: 'identifier', at, name };
  }

  #literal(isNegative: boolean): Node {
    const { at, value = null } = this.#advance();
    const signed = isNegative && (typeof value === 'bigint' || typeof value === 'number') ? -value : value;
    if (typeof signed === 'bigint' && signed >= 2n ** 63n) throw compileError(this.#source, at, 'invalid int literal');
    return { op: 'literal', at, value: signed };
  }

  #list(at: number): Node {
    const items: ListItem[] = [];
    while (!this.#accept(']')) {
      const isOptional = this.#accept('?');
      items.push({ value: this.#expression(), isOptional });
      if (this.#accept(',')) continue;
      this.#expect(']');
      break;
    }
    return this.#measured(
      { op: 'list', at, items },
      items.map((item) => item.value),
    );
  }

  #map(at: number): Node {
    const entries: MapEntry[] = [];
    while (!this.#accept('}')) {
      const isOptional = this.#accept('?');
      const key = this.#expression();
      this.#expect(':');
      entries.push({ key, value: this.#expression(), isOptional });
      if (this.#accept(',')) continue;
      this.#expect('}');
      break;
    }
    return this.#measured(
      { op: 'map', at, entries },
      entries.flatMap((entry) => [entry.key, entry.value]),
    );
  }

  /** Notes how deep the tree has become, and refuses what could not be walked. */
  #measured(node: Node, children: readonly Node[]): Node {
    let depth = 1;
    for (const each of children) depth = Math.max(depth, 1 + (this.#depths.get(each) ?? 1));
    if (depth > TREE_DEPTH_MAX) throw syntaxError(this.#source, node.at, 'expression is too deeply nested');
    this.#depths.set(node, depth);
    return node;
  }

  get #token(): Token {
    return this.#tokens[this.#position] as Token;
  }

  #advance(): Token {
    const token = this.#token;
    if (token.kind !== 'end') this.#position++;
    return token;
  }

  #accept(operator: string): boolean {
    if (this.#token.kind !== 'operator' || this.#token.text !== operator) return false;
    this.#position++;
    return true;
  }

  #expect(operator: string): void {
    if (!this.#accept(operator)) throw this.#unexpected(`'${operator}'`);
  }

  #unexpected(expected?: string): CompileError {
    const { text, at } = this.#token;
    const detail =
      expected === undefined ? `unexpected token '${text}'` : `mismatched input '${text}' expecting ${expected}`;
    return syntaxError(this.#source, at, detail);
  }
}
