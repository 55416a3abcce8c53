import { badRequest } from '../api/status.ts';
import { unreachable } from '../api/unreachable.ts';

/** Label and field selectors, in the text form of query parameters and in the object form of specs. */

export type SelectorOperator = 'In' | 'NotIn' | 'Exists' | 'DoesNotExist' | 'GreaterThan' | 'LessThan';

export interface Requirement {
  readonly key: string;
  readonly operator: SelectorOperator;
  readonly values: readonly string[];
}

type Labels = { readonly [key: string]: string };

/** A conjunction of requirements; the empty one matches everything. */
export interface Selector {
  readonly requirements: readonly Requirement[];
  matches(labels: Labels | undefined): boolean;
}

/** The object form, as in `spec.selector`. */
export interface LabelSelectorObject {
  readonly matchLabels?: Labels;
  readonly matchExpressions?: readonly {
    readonly key: string;
    readonly operator: string;
    readonly values?: readonly string[];
  }[];
}

/** Longest selector accepted; longer ones cannot be typed and only cost time. */
const SELECTOR_LENGTH_MAX = 16 * 1024;
/** Requirements of one selector: each is looked at for every object of a list. */
const REQUIREMENTS_MAX = 256;
const KEY = /^(?:[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?\/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?$/;
const VALUE = /^(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?)?$/;
const KEY_LENGTH_MAX = 253 + 1 + 63;
const VALUE_LENGTH_MAX = 63;
const INTEGER = /^-?\d{1,18}$/;

export const everything: Selector = selectorOf([]);
/** What a nil LabelSelector means where Kubernetes says that nil selects nothing. */
export const nothing: Selector = { requirements: [], matches: () => false };

function holds(requirement: Requirement, values: ReadonlySet<string>, labels: Labels): boolean {
  const value = Object.hasOwn(labels, requirement.key) ? labels[requirement.key] : undefined;
  switch (requirement.operator) {
    case 'In':
      return value !== undefined && values.has(value);
    case 'NotIn':
      return value === undefined || !values.has(value);
    case 'Exists':
      return value !== undefined;
    case 'DoesNotExist':
      return value === undefined;
    case 'GreaterThan':
      return value !== undefined && INTEGER.test(value) && BigInt(value) > BigInt(requirement.values[0] ?? '0');
    case 'LessThan':
      return value !== undefined && INTEGER.test(value) && BigInt(value) < BigInt(requirement.values[0] ?? '0');
    default:
      return unreachable(requirement.operator);
  }
}

const NO_LABELS: Labels = Object.freeze({});

function selectorOf(requirements: readonly Requirement[]): Selector {
  // A set may have thousands of values, and is looked into for every object.
  const sets = requirements.map(({ values }) => new Set(values));
  return {
    requirements,
    matches: (labels) =>
      requirements.every((each, index) => holds(each, sets[index] as ReadonlySet<string>, labels ?? NO_LABELS)),
  };
}

function checkRequirement(requirement: Requirement): Requirement {
  const { key, operator, values } = requirement;
  if (key.length > KEY_LENGTH_MAX || !KEY.test(key)) {
    throw badRequest(
      `unable to parse requirement: key: Invalid value: ${JSON.stringify(key)}: name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character`,
    );
  }
  if ((operator === 'In' || operator === 'NotIn') && values.length === 0) {
    throw badRequest(
      `unable to parse requirement: values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty`,
    );
  }
  if ((operator === 'GreaterThan' || operator === 'LessThan') && !INTEGER.test(values[0] ?? '')) {
    throw badRequest(
      `unable to parse requirement: values[0]: Invalid value: ${JSON.stringify(values[0])}: for 'Gt', 'Lt' operators, the value must be an integer`,
    );
  }
  for (const [index, value] of values.entries()) {
    if (value.length > VALUE_LENGTH_MAX || !VALUE.test(value)) {
      throw badRequest(
        `unable to parse requirement: values[${index}][${key}]: Invalid value: ${JSON.stringify(value)}: a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character`,
      );
    }
  }
  return requirement;
}

/** Splits at top-level commas: those inside parentheses belong to a set of values. */
function splitRequirements(text: string): string[] {
  const parts: string[] = [];
  let depth = 0;
  let start = 0;
  for (let index = 0; index < text.length; index++) {
    const character = text[index];
    if (character === '(') depth++;
    else if (character === ')') depth--;
    else if (character === ',' && depth === 0) {
      parts.push(text.slice(start, index));
      start = index + 1;
    }
  }
  parts.push(text.slice(start));
  return parts.map((part) => part.trim());
}

function parseRequirement(part: string, whole: string): Requirement {
  const setMatch = /^(\S+)\s+(in|notin)\s*\(([^()]*)\)$/.exec(part);
  if (setMatch) {
    const values = (setMatch[3] ?? '').split(',').map((value) => value.trim());
    return { key: setMatch[1] ?? '', operator: setMatch[2] === 'in' ? 'In' : 'NotIn', values: [...new Set(values)] };
  }
  const comparison = /^([^=!<>\s]+)\s*(==|=|!=|>|<)\s*([^=!<>\s]*)$/.exec(part);
  if (comparison) {
    const [, key = '', sign = '', value = ''] = comparison;
    const operator = sign === '!=' ? 'NotIn' : sign === '>' ? 'GreaterThan' : sign === '<' ? 'LessThan' : 'In';
    return { key, operator, values: [value] };
  }
  const absent = /^!\s*(\S+)$/.exec(part);
  if (absent) return { key: absent[1] ?? '', operator: 'DoesNotExist', values: [] };
  if (part !== '' && !/[\s()=!<>,]/.test(part)) return { key: part, operator: 'Exists', values: [] };
  throw badRequest(
    `unable to parse requirement: found '${part}' in selector '${whole}', expected: a key, or a key with '=', '==', '!=', 'in', 'notin', '>' or '<'`,
  );
}

function refuseTooMany(count: number): void {
  if (count > REQUIREMENTS_MAX)
    throw badRequest(
      `unable to parse requirement: a selector has at most ${REQUIREMENTS_MAX} requirements, not ${count}`,
    );
}

/** Parses `a=b,c!=d,e in (f,g),!h`. Throws 400 on bad syntax. */
export function parseLabelSelector(text: string): Selector {
  if (text.trim() === '') return everything;
  if (text.length > SELECTOR_LENGTH_MAX)
    throw badRequest(`unable to parse requirement: selector is longer than ${SELECTOR_LENGTH_MAX} characters`);
  const parts = splitRequirements(text);
  refuseTooMany(parts.length);
  return selectorOf(parts.map((part) => checkRequirement(parseRequirement(part, text))));
}

const OPERATORS: { readonly [name: string]: SelectorOperator } = {
  In: 'In',
  NotIn: 'NotIn',
  Exists: 'Exists',
  DoesNotExist: 'DoesNotExist',
};

/** The selector of a LabelSelector object: undefined selects nothing, `{}` everything. Throws 400 on bad parts. */
export function selectorFrom(object: LabelSelectorObject | undefined | null): Selector {
  if (object === undefined || object === null) return nothing;
  const requirements: Requirement[] = Object.entries(object.matchLabels ?? {}).map(([key, value]) => ({
    key,
    operator: 'In',
    values: [value],
  }));
  for (const { key, operator, values } of object.matchExpressions ?? []) {
    const known = Object.hasOwn(OPERATORS, operator) ? OPERATORS[operator] : undefined;
    if (known === undefined) throw badRequest(`${JSON.stringify(operator)} is not a valid label selector operator`);
    requirements.push({ key, operator: known, values: values ?? [] });
  }
  return selectorOf(requirements.map(checkRequirement));
}

export interface FieldRequirement {
  readonly path: string;
  readonly equals: boolean;
  readonly value: string;
}

/** Parses `metadata.name=x,status.phase!=Running`; a backslash escapes `,`, `=` and itself in values. Throws 400. */
export function parseFieldSelector(text: string): readonly FieldRequirement[] {
  if (text.length > SELECTOR_LENGTH_MAX)
    throw badRequest(`field selector is longer than ${SELECTOR_LENGTH_MAX} characters`);
  const terms: string[] = [];
  let term = '';
  for (let index = 0; index < text.length; index++) {
    const character = text[index] ?? '';
    if (character === '\\') term += character + (text[++index] ?? '');
    else if (character === ',') {
      terms.push(term);
      term = '';
    } else term += character;
  }
  terms.push(term);
  refuseTooMany(terms.length);
  return terms.filter((each) => each.trim() !== '').map((each) => parseFieldTerm(each.trim(), text));
}

/** A value, in which the characters that separate are escaped. */
const FIELD_VALUE = /^(?:[^\\=,]|\\[\\=,])*$/;

/** Step by step, since this text comes from anyone: one expression for all of it would try every way to split spaces. */
function parseFieldTerm(term: string, whole: string): FieldRequirement {
  const sign = term.search(/[=!\\]/);
  const operator = ['!=', '==', '='].find((each) => term.startsWith(each, sign));
  const raw = operator === undefined ? undefined : term.slice(sign + operator.length).trimStart();
  if (sign < 1 || operator === undefined || raw === undefined || !FIELD_VALUE.test(raw))
    throw badRequest(`invalid selector: ${JSON.stringify(whole)}; can't understand ${JSON.stringify(term)}`);
  return {
    path: term.slice(0, sign).trimEnd(),
    equals: operator !== '!=',
    value: raw.replaceAll(/\\([\\=,])/g, '$1'),
  };
}
