import { unreachable } from '../../api/unreachable.ts';
import { elementOf, optionalElement, optionalField, selectField } from './access.ts';
import { compileList, compileMap, type Element } from './aggregates.ts';
import type { ListItem, MapEntry, Node } from './ast.ts';
import { evaluationError } from './budget.ts';
import { compileComprehension, rangeTypes } from './comprehensions.ts';
import type { Run, Typed } from './frame.ts';
import { NAMESPACES, type Overload } from './functions.ts';
import { CompileError, type Issue, spellIssues } from './issues.ts';
import { overloadsOf } from './library.ts';
import { compileConditional, compileLogical } from './logic.ts';
import { dispatch, literalIssue } from './overloads.ts';
import { fieldsOf } from './schema-types.ts';
import { Scope } from './scope.ts';
import {
  BOOL,
  BYTES,
  DOUBLE,
  DYN,
  ERROR,
  fits,
  INT,
  isAny,
  join,
  NULL,
  optionalOf,
  spellType,
  STRING,
  TYPE,
  type Type,
  UINT,
} from './types.ts';
import { MapValue, OptionalValue, TypeValue, Uint, type Value } from './values.ts';

const TYPE_NAMES: ReadonlySet<string> = new Set(
  [
    'bool bytes double int list map null_type optional_type string type uint',
    'google.protobuf.Duration google.protobuf.Timestamp',
    'net.CIDR net.IP',
  ].flatMap((names) => names.split(' ')),
);

const FAILED: Typed = { type: ERROR, run: () => null };

/**
 * Compiles the nodes of one expression, each to a closure and a type. Mistakes collect, so that all are reported at
 * once; what depends on a mistake has the error type and is not held against the author a second time.
 */
export class Compiler {
  readonly uses = new Set<string>();
  readonly #source: string;
  readonly #issues: Issue[] = [];
  #slots = 0;
  /** Above zero where lists and maps may mix types. */
  #mixing = 0;

  constructor(source: string) {
    this.#source = source;
  }

  newSlot(): number {
    return this.#slots++;
  }

  finish(): void {
    if (this.#issues.length > 0) throw new CompileError(spellIssues(this.#source, this.#issues));
  }

  #fail(at: number, message: string): Typed {
    this.#issues.push({ at, message });
    return FAILED;
  }

  compile(node: Node, scope: Scope): Typed {
    switch (node.op) {
      case 'literal':
        return literal(node.value);
      case 'identifier':
        return this.#identifier(node.name, node.at, scope);
      case 'select':
        return this.#select(node, scope);
      case 'has':
        return this.#has(node, scope);
      case 'index':
        return this.#index(node, scope);
      case 'call':
        return this.#call(node, scope);
      case 'and':
      case 'or':
        return this.#logical(node, scope);
      case 'conditional':
        return this.#conditional(node, scope);
      case 'list':
        return this.#list(node.items, scope);
      case 'map':
        return this.#map(node.entries, scope);
      case 'comprehension':
        return this.#comprehension(node, scope);
      case 'bind':
        return this.#bind(node, scope);
      case 'optionalMap':
        return this.#optionalMap(node, scope);
      default:
        return unreachable(node);
    }
  }

  #identifier(name: string, at: number, scope: Scope): Typed {
    const variable = scope.find(name);
    if (variable === undefined) {
      if (TYPE_NAMES.has(name)) return typeLiteral(name);
      return this.#fail(at, `undeclared reference to '${name}' (in container '')`);
    }
    if (variable.isRoot) this.uses.add(name);
    const { slot, type } = variable;
    return {
      type,
      run: ({ slots }) => {
        const value = slots[slot];
        if (value === undefined) throw evaluationError(`no such attribute(s): ${name}`);
        return value;
      },
    };
  }

  /** A dotted name that is no variable: a type or the first part of a namespaced function. */
  #qualifiedName(node: Node, scope: Scope): string | undefined {
    if (node.op === 'identifier') return scope.find(node.name) ? undefined : node.name;
    if (node.op !== 'select' || node.isOptional) return undefined;
    const parent = this.#qualifiedName(node.operand, scope);
    return parent === undefined ? undefined : `${parent}.${node.field}`;
  }

  #select(node: Extract<Node, { op: 'select' }>, scope: Scope): Typed {
    const qualified = this.#qualifiedName(node, scope);
    if (qualified !== undefined && TYPE_NAMES.has(qualified)) return typeLiteral(qualified);
    const operand = this.compile(node.operand, scope);
    const inner = operand.type.kind === 'optional' ? operand.type.value : operand.type;
    const type = this.#fieldType(inner, node.field, node.at);
    const { field } = node;
    const { run } = operand;
    if (node.isOptional || operand.type.kind === 'optional') {
      return {
        type: type.kind === 'error' ? type : optionalOf(type),
        run: (frame) => {
          frame.budget.spend(1);
          return optionalField(run(frame), field);
        },
      };
    }
    return {
      type,
      run: (frame) => {
        frame.budget.spend(1);
        return selectField(run(frame), field);
      },
    };
  }

  #fieldType(operand: Type, field: string, at: number): Type {
    if (isAny(operand)) return operand;
    if (operand.kind === 'map') return operand.value;
    if (operand.kind === 'object') {
      const type = fieldsOf(operand.schema).get(field)?.type;
      return type ?? this.#fail(at, `undefined field '${field}'`).type;
    }
    return this.#fail(at, `type '${spellType(operand)}' does not support field selection`).type;
  }

  #has(node: Extract<Node, { op: 'has' }>, scope: Scope): Typed {
    const operand = this.compile(node.operand, scope);
    const inner = operand.type.kind === 'optional' ? operand.type.value : operand.type;
    this.#fieldType(inner, node.field, node.at);
    const { field } = node;
    return {
      type: BOOL,
      run: (frame) => {
        frame.budget.spend(1);
        const value = operand.run(frame);
        const container = value instanceof OptionalValue ? value.value : value;
        if (container === undefined) return false;
        if (container instanceof MapValue) return container.has(field);
        throw evaluationError('no such overload');
      },
    };
  }

  #index(node: Extract<Node, { op: 'index' }>, scope: Scope): Typed {
    const operand = this.compile(node.operand, scope);
    const index = this.compile(node.index, scope);
    const inner = operand.type.kind === 'optional' ? operand.type.value : operand.type;
    const type = this.#elementType(inner, index.type, node.at);
    const isOptional = node.isOptional || operand.type.kind === 'optional';
    return {
      type: isOptional && type.kind !== 'error' ? optionalOf(type) : type,
      run: (frame) => {
        frame.budget.spend(1);
        const container = operand.run(frame);
        const key = index.run(frame);
        return isOptional || container instanceof OptionalValue
          ? optionalElement(container, key)
          : elementOf(container, key);
      },
    };
  }

  #elementType(container: Type, index: Type, at: number): Type {
    if (isAny(container)) return container;
    if (container.kind === 'list' && (index.kind === 'int' || isAny(index))) return container.element;
    if (container.kind === 'map' && fits(container.key, index, new Map())) return container.value;
    const types = `(${spellType(container)}, ${spellType(index)})`;
    return this.#fail(at, `found no matching overload for '_[_]' applied to '${types}'`).type;
  }

  #call(node: Extract<Node, { op: 'call' }>, scope: Scope): Typed {
    const { name, target } = node;
    const prefix = target && this.#qualifiedName(target, scope);
    if (prefix !== undefined && NAMESPACES.has(prefix)) {
      const overloads = overloadsOf(`${prefix}.${name}`, false);
      if (overloads.length > 0) return this.#apply(node, overloads, node.args, scope);
    }
    if (target && (name === 'or' || name === 'orValue') && node.args.length === 1) return this.#or(node, target, scope);
    const overloads = overloadsOf(name, target !== undefined);
    return this.#apply(node, overloads, target ? [target, ...node.args] : node.args, scope);
  }

  #apply(
    node: Extract<Node, { op: 'call' }>,
    overloads: readonly Overload[],
    operands: readonly Node[],
    scope: Scope,
  ): Typed {
    // What is to be formatted need not be of one type.
    const isFormat = node.name === 'format' && node.target !== undefined;
    if (isFormat) this.#mixing++;
    const args = operands.map((operand) => this.compile(operand, scope));
    if (isFormat) this.#mixing--;
    if (overloads.length === 0) return this.#fail(node.at, `undeclared reference to '${node.name}' (in container '')`);
    const types = args.map((arg) => arg.type);
    const resolved = dispatch(overloads, types);
    if (!resolved) {
      if (types.some((type) => type.kind === 'error')) return FAILED;
      const isMethod = overloads[0]?.isMethod === true;
      const [first = '', ...rest] = types.map(spellType);
      const spelled = isMethod ? `${first}.(${rest.join(', ')})` : `(${[first, ...rest].join(', ')})`;
      return this.#fail(node.at, `found no matching overload for '${node.name}' applied to '${spelled}'`);
    }
    const wrong = literalIssue(node.name, operands);
    if (wrong) return this.#fail(wrong.at, wrong.message);
    const runs = args.map((arg) => arg.run);
    return { type: resolved.type, run: invocation(runs, resolved.call) };
  }

  /** `or` and `orValue`, which look at their argument only where there is no value. */
  #or(node: Extract<Node, { op: 'call' }>, target: Node, scope: Scope): Typed {
    const optional = this.compile(target, scope);
    const other = this.compile(node.args[0] as Node, scope);
    const isFlat = node.name === 'or';
    const expected = isFlat ? optional.type : optional.type.kind === 'optional' ? optional.type.value : DYN;
    const type = join(expected, other.type);
    if (type === undefined || !(isAny(optional.type) || optional.type.kind === 'optional')) {
      const types = `${spellType(optional.type)}.(${spellType(other.type)})`;
      return this.#fail(node.at, `found no matching overload for '${node.name}' applied to '${types}'`);
    }
    return {
      type,
      run: (frame) => {
        frame.budget.spend(1);
        const value = optional.run(frame);
        if (!(value instanceof OptionalValue)) throw evaluationError('no such overload');
        if (value.value === undefined) return other.run(frame);
        return isFlat ? value : value.value;
      },
    };
  }

  #logical(node: Extract<Node, { op: 'and' | 'or' }>, scope: Scope): Typed {
    const operands = node.operands.map((operand) => this.compile(operand, scope));
    return this.#settled(compileLogical(node.op, operands), node.at);
  }

  #conditional(node: Extract<Node, { op: 'conditional' }>, scope: Scope): Typed {
    const [condition, whenTrue, whenFalse] = [node.condition, node.whenTrue, node.whenFalse].map((part) =>
      this.compile(part, scope),
    ) as [Typed, Typed, Typed];
    return this.#settled(compileConditional(condition, whenTrue, whenFalse), node.at);
  }

  #settled(compiled: Typed | string, at: number): Typed {
    return typeof compiled === 'string' ? this.#fail(at, compiled) : compiled;
  }

  #list(items: readonly ListItem[], scope: Scope): Typed {
    const elements = items.map((item) => this.#element(item.value, item.isOptional, scope));
    return compileList(elements, this.#common(elements));
  }

  #map(entries: readonly MapEntry[], scope: Scope): Typed {
    const keys = entries.map((entry) => this.#element(entry.key, false, scope));
    const values = entries.map((entry) => this.#element(entry.value, entry.isOptional, scope));
    return compileMap(keys, values, this.#common(keys), this.#common(values));
  }

  #element(node: Node, isOptional: boolean, scope: Scope): Element {
    const { at } = node;
    const value = this.compile(node, scope);
    if (!isOptional || isAny(value.type)) return { ...value, isOptional, at };
    if (value.type.kind === 'optional') return { type: value.type.value, run: value.run, isOptional, at };
    const found = spellType(value.type);
    return { ...this.#fail(at, `expected type 'optional_type' but found '${found}'`), isOptional, at };
  }

  /** The type of all elements of an aggregate, which must be one. */
  #common(elements: readonly Element[]): Type {
    let common: Type | undefined;
    for (const { type, at } of elements) {
      const joined = common === undefined ? type : join(common, type);
      if (joined === undefined && common !== undefined) {
        if (this.#mixing > 0) return DYN;
        return this.#fail(at, `expected type '${spellType(common)}' but found '${spellType(type)}'`).type;
      }
      common = joined;
    }
    return common ?? DYN;
  }

  #comprehension(node: Extract<Node, { op: 'comprehension' }>, scope: Scope): Typed {
    const range = this.compile(node.range, scope);
    const variables = rangeTypes(range.type, node.variables.length);
    if (variables === undefined) {
      const detail = 'cannot be range of a comprehension (must be list, map, or dynamic)';
      return this.#fail(node.range.at, `expression of type '${spellType(range.type)}' ${detail}`);
    }
    const inner = new Scope(scope);
    const slots = node.variables.map((name, index) => inner.declare(name, variables[index] ?? DYN, this.newSlot()));
    const filter = node.filter && this.compile(node.filter, inner);
    const body = this.compile(node.body, inner);
    const compiled = compileComprehension(node.kind, { range, slots, filter, body, itemType: variables.at(-1) ?? DYN });
    return this.#settled(compiled, node.body.at);
  }

  #bind(node: Extract<Node, { op: 'bind' }>, scope: Scope): Typed {
    const value = this.compile(node.value, scope);
    const inner = new Scope(scope);
    const slot = inner.declare(node.variable, value.type, this.newSlot());
    const body = this.compile(node.body, inner);
    return {
      type: body.type,
      run: (frame) => {
        frame.slots[slot] = value.run(frame);
        return body.run(frame);
      },
    };
  }

  #optionalMap(node: Extract<Node, { op: 'optionalMap' }>, scope: Scope): Typed {
    const operand = this.compile(node.operand, scope);
    const inner = new Scope(scope);
    const isFit = operand.type.kind === 'optional' || isAny(operand.type);
    const value = operand.type.kind === 'optional' ? operand.type.value : DYN;
    const slot = inner.declare(node.variable, value, this.newSlot());
    const body = this.compile(node.body, inner);
    const isBodyFit = !node.isFlat || body.type.kind === 'optional' || isAny(body.type);
    if (!isFit || !isBodyFit) {
      const name = node.isFlat ? 'optFlatMap' : 'optMap';
      return this.#fail(node.at, `found no matching overload for '${name}' applied to '${spellType(operand.type)}'`);
    }
    return {
      type: node.isFlat ? body.type : optionalOf(body.type),
      run: (frame) => {
        const optional = operand.run(frame);
        if (!(optional instanceof OptionalValue)) throw evaluationError('no such overload');
        if (optional.value === undefined) return optional;
        frame.slots[slot] = optional.value;
        const result = body.run(frame);
        return node.isFlat ? result : new OptionalValue(result);
      },
    };
  }
}

function literal(value: Value): Typed {
  return { type: literalType(value), run: () => value };
}

function literalType(value: Value): Type {
  if (value === null) return NULL;
  if (typeof value === 'boolean') return BOOL;
  if (typeof value === 'bigint') return INT;
  if (typeof value === 'number') return DOUBLE;
  if (typeof value === 'string') return STRING;
  return value instanceof Uint ? UINT : BYTES;
}

function typeLiteral(name: string): Typed {
  const value = new TypeValue(name);
  return { type: TYPE, run: () => value };
}

function invocation(runs: readonly Run[], call: Overload['call']): Run {
  return (frame) => {
    frame.budget.spend(1);
    return call(
      runs.map((run) => run(frame)),
      frame.budget,
    );
  };
}
