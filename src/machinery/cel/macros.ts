import type { ComprehensionKind, Node } from './ast.ts';
import type { CompileError } from './issues.ts';

/** Calls that are not functions: they name variables or test for presence. */

interface ComprehensionMacro {
  readonly kind: ComprehensionKind;
  readonly variables: number;
  readonly hasFilter: boolean;
}

const COMPREHENSIONS: ReadonlyMap<string, ComprehensionMacro> = new Map([
  ['all/2', { kind: 'all', variables: 1, hasFilter: false }],
  ['all/3', { kind: 'all', variables: 2, hasFilter: false }],
  ['exists/2', { kind: 'exists', variables: 1, hasFilter: false }],
  ['exists/3', { kind: 'exists', variables: 2, hasFilter: false }],
  ['exists_one/2', { kind: 'existsOne', variables: 1, hasFilter: false }],
  ['existsOne/2', { kind: 'existsOne', variables: 1, hasFilter: false }],
  ['existsOne/3', { kind: 'existsOne', variables: 2, hasFilter: false }],
  ['filter/2', { kind: 'filter', variables: 1, hasFilter: false }],
  ['map/2', { kind: 'map', variables: 1, hasFilter: false }],
  ['map/3', { kind: 'map', variables: 1, hasFilter: true }],
  ['sortBy/2', { kind: 'sortBy', variables: 1, hasFilter: false }],
  ['transformList/3', { kind: 'transformList', variables: 2, hasFilter: false }],
  ['transformList/4', { kind: 'transformList', variables: 2, hasFilter: true }],
  ['transformMap/3', { kind: 'transformMap', variables: 2, hasFilter: false }],
  ['transformMap/4', { kind: 'transformMap', variables: 2, hasFilter: true }],
  ['transformMapEntry/3', { kind: 'transformMapEntry', variables: 2, hasFilter: false }],
  ['transformMapEntry/4', { kind: 'transformMapEntry', variables: 2, hasFilter: true }],
] as const);

type Fail = (at: number, detail: string) => CompileError;

/** The node that a call stands for where it is a macro; undefined where it is a function. */
export function expandMacro(
  name: string,
  target: Node | undefined,
  args: readonly Node[],
  at: number,
  fail: Fail,
): Node | undefined {
  if (target === undefined) return name === 'has' && args.length === 1 ? expandHas(args[0], at, fail) : undefined;
  if (name === 'bind' && args.length === 3 && target.op === 'identifier' && target.name === 'cel') {
    const [variable, value, body] = args as [Node, Node, Node];
    return { op: 'bind', at, variable: nameOf(variable, fail), value, body };
  }
  if ((name === 'optMap' || name === 'optFlatMap') && args.length === 2) {
    const [variable, body] = args as [Node, Node];
    const isFlat = name === 'optFlatMap';
    return { op: 'optionalMap', at, operand: target, variable: nameOf(variable, fail), body, isFlat };
  }
  const macro = COMPREHENSIONS.get(`${name}/${args.length}`);
  if (macro === undefined) return undefined;
  const names = args.slice(0, macro.variables).map((arg) => nameOf(arg, fail));
  if (new Set(names).size < names.length) throw fail(at, 'iteration variables must not have the same name');
  const filter = macro.hasFilter ? args[macro.variables] : undefined;
  const body = args.at(-1) as Node;
  return { op: 'comprehension', at, kind: macro.kind, range: target, variables: names, filter, body };
}

function expandHas(arg: Node | undefined, at: number, fail: Fail): Node {
  if (arg?.op !== 'select' || arg.isOptional) throw fail(arg?.at ?? at, 'invalid argument to has() macro');
  return { op: 'has', at, operand: arg.operand, field: arg.field };
}

function nameOf(node: Node, fail: Fail): string {
  if (node.op !== 'identifier') throw fail(node.at, 'argument is not an identifier');
  return node.name;
}
