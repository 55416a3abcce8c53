import type { Json } from '../api/meta.ts';

/**
 * The part of Kubernetes' JSONPath that columns, scale paths and selectable fields use: `.a.b`, `['a']`, `[0]`,
 * `[-1]`, `[1:3]`, `[*]`, `.*` and filters such as `[?(@.type=="Ready")]`. Braces and `$` around a path are optional;
 * a backslash takes the character after it literally, so that `.annotations.example\.com/x` is two steps.
 */

/** From values to the values one step further; what does not fit yields nothing. */
type Step = (values: readonly Json[]) => Json[];

/** Deepest nesting of filters in filters. */
const FILTER_DEPTH_MAX = 8;

/**
 * Compiles a path into a function that finds all values it leads to, in order; missing keys lead nowhere.
 * Throws an Error that names the position of a mistake.
 */
export function compileJsonPath(path: string): (value: Json) => Json[] {
  const isBraced = path.startsWith('{');
  if (isBraced && !path.endsWith('}')) throw new Error(`invalid JSONPath ${JSON.stringify(path)}: unclosed brace`);
  const parser = new Parser(isBraced ? path.slice(1, -1) : path, path, 0);
  const steps = parser.whole();
  return (value) => steps.reduce<Json[]>((values, step) => step(values), [value]);
}

class Parser {
  readonly #text: string;
  readonly #whole: string;
  readonly #depth: number;
  #position = 0;

  constructor(text: string, whole: string, depth: number) {
    this.#text = text;
    this.#whole = whole;
    this.#depth = depth;
  }

  /** The steps of a whole path: it begins at the root, which `$` or nothing stands for. */
  whole(): Step[] {
    if (this.#peek() === '$') this.#position++;
    else if (this.#peek() !== '.' && this.#peek() !== '[') throw this.#wrong('it has to begin with . or [');
    if (this.#text === '.') return [];
    const steps = this.#steps();
    if (this.#position < this.#text.length) throw this.#wrong(`unexpected ${JSON.stringify(this.#peek())}`);
    return steps;
  }

  #peek(): string {
    return this.#text[this.#position] ?? '';
  }

  #wrong(reason: string): Error {
    return new Error(`invalid JSONPath ${JSON.stringify(this.#whole)}: ${reason}, at position ${this.#position}`);
  }

  #steps(): Step[] {
    const steps: Step[] = [];
    for (;;) {
      if (this.#peek() === '.') steps.push(this.#field());
      else if (this.#peek() === '[') steps.push(this.#bracket());
      else return steps;
    }
  }

  #field(): Step {
    this.#position++;
    if (this.#peek() === '.') throw this.#wrong('recursive descent is not supported');
    let name = '';
    while (this.#position < this.#text.length && !'.[]{}()=!<> \t'.includes(this.#peek())) {
      if (this.#peek() === '\\') this.#position++;
      name += this.#peek();
      this.#position++;
    }
    if (name === '') throw this.#wrong('a field name is missing');
    return name === '*' ? children : fieldStep(name);
  }

  #bracket(): Step {
    this.#position++;
    const first = this.#peek();
    if (first === '?') return this.#filter();
    if (first === "'" || first === '"') {
      const name = this.#quoted();
      this.#expect(']');
      return fieldStep(name);
    }
    const close = this.#text.indexOf(']', this.#position);
    if (close < 0) throw this.#wrong('a bracket is not closed');
    const content = this.#text.slice(this.#position, close).trim();
    const step = content === '*' ? children : this.#subscript(content);
    this.#position = close + 1;
    return step;
  }

  #subscript(content: string): Step {
    if (/^-?\d{1,9}$/.test(content)) return indexStep(Number(content));
    const slice = /^(-?\d{1,9})?:(-?\d{1,9})?$/.exec(content);
    if (slice === null) throw this.#wrong(`${JSON.stringify(content)} is no index`);
    const [, start, end] = slice;
    return (values) =>
      values.flatMap((value) =>
        Array.isArray(value) ? value.slice(Number(start ?? 0), end === undefined ? undefined : Number(end)) : [],
      );
  }

  #quoted(): string {
    const quote = this.#peek();
    let text = '';
    for (this.#position++; this.#peek() !== quote; this.#position++) {
      if (this.#peek() === '\\') this.#position++;
      if (this.#position >= this.#text.length) throw this.#wrong('a quote is not closed');
      text += this.#peek();
    }
    this.#position++;
    return text;
  }

  #expect(token: string): void {
    if (!this.#text.startsWith(token, this.#position)) throw this.#wrong(`${JSON.stringify(token)} is missing`);
    this.#position += token.length;
  }

  #skipSpaces(): void {
    while (this.#peek() === ' ' || this.#peek() === '\t') this.#position++;
  }

  #filter(): Step {
    if (this.#depth >= FILTER_DEPTH_MAX) throw this.#wrong('filters are nested too deep');
    this.#expect('?(');
    const left = this.#operand();
    this.#skipSpaces();
    const operator = /^(==|!=|<=|>=|<|>)/.exec(this.#text.slice(this.#position, this.#position + 2))?.[0];
    let test: (item: Json) => boolean = (item) => left(item).length > 0;
    if (operator !== undefined) {
      this.#position += operator.length;
      const right = this.#operand();
      test = (item) => compare(left(item)[0], operator, right(item)[0]);
    }
    this.#skipSpaces();
    this.#expect(')');
    this.#expect(']');
    return (values) => values.flatMap((value) => (Array.isArray(value) ? value.filter(test) : []));
  }

  /** A path from the item (`@.a`), or a literal. */
  #operand(): (item: Json) => Json[] {
    this.#skipSpaces();
    const first = this.#peek();
    if (first === '@') {
      this.#position++;
      const inner = new Parser(this.#text.slice(this.#position), this.#whole, this.#depth + 1);
      const steps = inner.#steps();
      this.#position += inner.#position;
      return (item) => steps.reduce<Json[]>((values, step) => step(values), [item]);
    }
    if (first === "'" || first === '"') {
      const text = this.#quoted();
      return () => [text];
    }
    const word = /^(?:true|false|-?\d+(?:\.\d+)?)/.exec(this.#text.slice(this.#position))?.[0];
    if (word === undefined) throw this.#wrong('a filter compares paths from @, texts in quotes, numbers and booleans');
    this.#position += word.length;
    const literal = JSON.parse(word) as Json;
    return () => [literal];
  }
}

function fieldStep(name: string): Step {
  return (values) =>
    values.flatMap((value) => {
      if (typeof value !== 'object' || value === null || Array.isArray(value)) return [];
      return Object.hasOwn(value, name) ? [value[name] as Json] : [];
    });
}

function indexStep(index: number): Step {
  return (values) =>
    values.flatMap((value) => {
      const item = Array.isArray(value) ? value.at(index) : undefined;
      return item === undefined ? [] : [item];
    });
}

const children: Step = (values) =>
  values.flatMap((value) => (typeof value === 'object' && value !== null ? Object.values(value) : []));

/** Values of different types are never equal and have no order. */
function compare(left: Json | undefined, operator: string, right: Json | undefined): boolean {
  if (left === undefined || right === undefined) return false;
  if (operator === '==') return left === right;
  if (operator === '!=') return left !== right;
  const isOrdered =
    (typeof left === 'number' && typeof right === 'number') || (typeof left === 'string' && typeof right === 'string');
  if (!isOrdered) return false;
  if (operator === '<') return left < right;
  if (operator === '<=') return left <= right;
  return operator === '>' ? left > right : left >= right;
}
