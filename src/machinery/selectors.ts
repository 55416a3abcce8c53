import { badRequest } from '../api/status.ts';
import { unreachable } from '../api/unreachable.ts';
import {
  checkRequirement,
  INTEGER,
  parseRequirements,
  type Requirement,
  type SelectorOperator,
} from './label-requirements.ts';

/** Label and field selectors, in the text form of query parameters and in the object form of specs. */

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

/** The selector of requirements that are known to be sound. */
export function selectorOf(requirements: readonly Requirement[]): Selector {
  // A set may have thousands of values, and is looked into for every object.
  const sets = requirements.map(({ values }) => new Set(values));
  return {
    requirements,
    matches: (labels) =>
      requirements.every((each, index) => holds(each, sets[index] as ReadonlySet<string>, labels ?? NO_LABELS)),
  };
}

/** Parses `a=b,c!=d,e in (f,g),!h`. Throws 400 on bad syntax. */
export function parseLabelSelector(text: string): Selector {
  if (text.trim() === '') return everything;
  if (text.length > SELECTOR_LENGTH_MAX)
    throw badRequest(`unable to parse requirement: selector is longer than ${SELECTOR_LENGTH_MAX} characters`);
  return selectorOf(parseRequirements(text, REQUIREMENTS_MAX));
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

/** A selector as the text of a query parameter, which selects the same. There is none for `nothing`. */
export function labelSelectorText({ requirements }: Selector): string {
  return requirements.map(requirementText).join(',');
}

function requirementText({ key, operator, values }: Requirement): string {
  switch (operator) {
    case 'In':
      return values.length === 1 ? `${key}=${values[0]}` : `${key} in (${values.join(',')})`;
    case 'NotIn':
      return `${key} notin (${values.join(',')})`;
    case 'Exists':
      return key;
    case 'DoesNotExist':
      return `!${key}`;
    case 'GreaterThan':
      return `${key}>${values[0]}`;
    case 'LessThan':
      return `${key}<${values[0]}`;
    default:
      return unreachable(operator);
  }
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
  if (terms.length > REQUIREMENTS_MAX)
    throw badRequest(`invalid selector: it has at most ${REQUIREMENTS_MAX} requirements, not ${terms.length}`);
  return terms.filter((each) => each.trim() !== '').map((each) => parseFieldTerm(each.trim(), text));
}

/** Step by step, since this text comes from anyone: one expression for all of it would try every way to split spaces. */
function parseFieldTerm(term: string, whole: string): FieldRequirement {
  const sign = term.search(/=|!=/);
  const operator = ['!=', '==', '='].find((each) => term.startsWith(each, sign));
  if (sign < 0 || operator === undefined) throw badRequest(`invalid selector: '${whole}'; can't understand '${term}'`);
  return {
    path: term.slice(0, sign).trimEnd(),
    equals: operator !== '!=',
    value: unescapeValue(term.slice(sign + operator.length).trimStart()),
  };
}

/** The characters that separate stand in a value only behind a backslash, and nothing else does. */
function unescapeValue(text: string): string {
  return text.replaceAll(/\\(.?)|[=,]/gs, (found, escaped?: string) => {
    if (escaped === undefined) throw badRequest(`invalid field selector: unescaped character in value: ${found}`);
    if (escaped === '' || !'\\,='.includes(escaped))
      throw badRequest(`invalid field selector: invalid escape sequence: ${found}`);
    return escaped;
  });
}
