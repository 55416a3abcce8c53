/**
 * Sets of field paths, as metadata.managedFields holds them.
 *
 * Managed fields are read and written with every write of every object, so the set is its own wire form: a tree whose
 * keys are path elements, as in
 *
 *     { "f:spec": { "f:replicas": {}, "f:template": { ".": {}, "f:spec": {} } } }
 *
 * A node that is empty or holds `.` is a member of the set itself; all others only lead to members. Sets are values:
 * operations share what they do not change, and answer their argument itself when nothing changed. `parseFieldSet` is
 * the door for trees from outside; inside, elements are canonical and no node is without members.
 */

import type { Json, JsonObject } from '../../api/meta.ts';
import { badRequest } from '../../api/status.ts';
import { type PathElement, canonicalElement, showElement, sortElements } from './path-element.ts';

export interface FieldSet {
  readonly [element: PathElement]: FieldSet;
}

/** A set under construction. */
export type FieldSetBuilder = { [element: PathElement]: FieldSet };

/** The empty set; as a node, a member without children. */
export const NOTHING: FieldSet = Object.freeze({});

/** The element that makes a node with children a member as well. */
export const SELF = '.';

export function isEmpty(set: FieldSet): boolean {
  // Quicker than asking for the keys, and asked for every node.
  for (const element in set) if (element !== '') return false;
  return true;
}

/** Whether a node is in the set itself, rather than only leading to members. */
export function isMember(node: FieldSet): boolean {
  return node[SELF] !== undefined || isEmpty(node);
}

/** A node with these children that is a member itself. */
export function asMember(node: FieldSet): FieldSet {
  return isMember(node) ? node : { [SELF]: NOTHING, ...node };
}

/** Reads a set from outside, elements of unknown kinds left out. Throws 400 when malformed. */
export function parseFieldSet(fields: Json): FieldSet {
  try {
    return withoutSelf(parseNode(fields));
  } catch (error) {
    throw badRequest(`error decoding set: ${(error as Error).message}`, error);
  }
}

function parseNode(node: Json): FieldSet {
  if (node === null) return NOTHING;
  if (typeof node !== 'object' || Array.isArray(node)) throw new SyntaxError('a node is not an object');
  const parsed: FieldSetBuilder = {};
  let isSelfOnly = true;
  for (const key of Object.keys(node)) {
    const element = key === SELF ? SELF : canonicalElement(key);
    if (element === undefined) continue;
    if (element !== SELF) isSelfOnly = false;
    const child = element === SELF ? NOTHING : parseNode(node[key] as Json);
    const twin = parsed[element];
    parsed[element] = twin === undefined ? child : unite(twin, child);
  }
  return isSelfOnly ? NOTHING : parsed;
}

/** The set in its canonical order, ready for the wire. */
export function serializeFieldSet(set: FieldSet): JsonObject {
  return inOrder(set) as JsonObject;
}

function inOrder(node: FieldSet): FieldSet {
  const elements = Object.keys(node);
  const ordered = sortElements(elements);
  let result: FieldSetBuilder | undefined;
  if (ordered !== elements) {
    result = {};
    for (const element of ordered) result[element] = node[element] as FieldSet;
  }
  for (const element of ordered) {
    const child = node[element] as FieldSet;
    const sorted = isEmpty(child) ? child : inOrder(child);
    if (sorted !== child) (result ??= { ...node })[element] = sorted;
  }
  return result ?? node;
}

/** What is in either set. */
export function union(a: FieldSet, b: FieldSet): FieldSet {
  if (a === b || isEmpty(b)) return a;
  return isEmpty(a) ? b : uniteChildren(a, b);
}

function unite(a: FieldSet, b: FieldSet): FieldSet {
  if (a === b) return a;
  if (isEmpty(a)) return asMember(b);
  return isEmpty(b) ? asMember(a) : uniteChildren(a, b);
}

function uniteChildren(a: FieldSet, b: FieldSet): FieldSet {
  let result: FieldSetBuilder | undefined;
  for (const element of Object.keys(b)) {
    const own = a[element];
    const other = b[element] as FieldSet;
    const united = own === undefined ? other : unite(own, other);
    if (united === own) continue;
    result ??= { ...a };
    result[element] = united;
  }
  return result ?? a;
}

/** What is in `a` but not in `b`, path by path: a parent in `b` does not take its children out. */
export function difference(a: FieldSet, b: FieldSet): FieldSet {
  return isEmpty(a) || isEmpty(b) ? a : (subtract(a, b, false, false) ?? NOTHING);
}

/** What is in `a` but neither in `b` nor below anything in `b`. */
export function recursiveDifference(a: FieldSet, b: FieldSet): FieldSet {
  return isEmpty(a) || isEmpty(b) ? a : (subtract(a, b, false, true) ?? NOTHING);
}

/** The children of `a` without those of `b`, and `a` itself when it stays a member. */
function subtract(a: FieldSet, b: FieldSet, staysMember: boolean, isRecursive: boolean): FieldSet | undefined {
  let result: FieldSetBuilder | undefined;
  for (const element of Object.keys(a)) {
    const other = element === SELF ? undefined : b[element];
    if (other === undefined) continue;
    const own = a[element] as FieldSet;
    const left = subtractNode(own, other, isRecursive);
    if (left === own) continue;
    result ??= { ...a };
    if (left === undefined) delete result[element];
    else result[element] = left;
  }
  return tidy(result ?? a, staysMember);
}

function subtractNode(own: FieldSet, other: FieldSet, isRecursive: boolean): FieldSet | undefined {
  const isTaken = isMember(other);
  if (isTaken && isRecursive) return undefined;
  return subtract(own, other, isMember(own) && !isTaken, isRecursive);
}

/** Brings a node into its one form for its children and membership; undefined when nothing is left of it. */
function tidy(node: FieldSet, isSelf: boolean): FieldSet | undefined {
  const hasSelf = node[SELF] !== undefined;
  const size = Object.keys(node).length - (hasSelf ? 1 : 0);
  if (size === 0) {
    if (!isSelf) return undefined;
    return hasSelf ? NOTHING : node;
  }
  if (isSelf === hasSelf) return node;
  return isSelf ? asMember(node) : withoutSelf(node);
}

function withoutSelf(node: FieldSet): FieldSet {
  if (node[SELF] === undefined) return node;
  const { [SELF]: _self, ...children } = node;
  return children;
}

/** What is in both sets. */
export function intersection(a: FieldSet, b: FieldSet): FieldSet {
  return intersectChildren(a, b, false) ?? NOTHING;
}

function intersectChildren(a: FieldSet, b: FieldSet, isSelf: boolean): FieldSet | undefined {
  const result: FieldSetBuilder = {};
  for (const element of Object.keys(a)) {
    const other = element === SELF ? undefined : b[element];
    if (other === undefined) continue;
    const own = a[element] as FieldSet;
    const common = intersectChildren(own, other, isMember(own) && isMember(other));
    if (common !== undefined) result[element] = common;
  }
  return tidy(result, isSelf);
}

/** Whether the path is in the set; the empty path, the whole object, never is. */
export function has(set: FieldSet, path: readonly PathElement[]): boolean {
  let node: FieldSet | undefined = set;
  for (const element of path) {
    node = node[element];
    if (node === undefined) return false;
  }
  return path.length > 0 && isMember(node);
}

/** The members of the set below which there are no others. */
export function leaves(set: FieldSet): FieldSet {
  const result: FieldSetBuilder = {};
  for (const element of Object.keys(set)) {
    if (element !== SELF) result[element] = leaves(set[element] as FieldSet);
  }
  return result;
}

/** A set of these paths. */
export function fieldSetOf(paths: readonly (readonly PathElement[])[]): FieldSet {
  return paths.reduce<FieldSet>((set, path) => {
    const single = path.reduceRight<FieldSet>((below, element) => ({ [element]: below }), NOTHING);
    return union(set, single);
  }, NOTHING);
}

/** All paths of the set in Kubernetes' order: at each level its own members first, then what is below. */
export function pathsOf(set: FieldSet): PathElement[][] {
  const paths: PathElement[][] = [];
  collectPaths(inOrder(set), [], paths);
  return paths;
}

function collectPaths(node: FieldSet, prefix: readonly PathElement[], paths: PathElement[][]): void {
  const elements = Object.keys(node).filter((element) => element !== SELF);
  for (const element of elements) {
    if (isMember(node[element] as FieldSet)) paths.push([...prefix, element]);
  }
  for (const element of elements) collectPaths(node[element] as FieldSet, [...prefix, element], paths);
}

/** A path as messages show it, e.g. `.spec.containers[name="a"].image`. */
export function showPath(path: readonly PathElement[]): string {
  return path.map(showElement).join('');
}
