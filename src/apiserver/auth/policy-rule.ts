import type { FieldRequirement } from '../../machinery/selectors.ts';

/** One rule of a Role or ClusterRole, as on the wire, and what it allows. */

export interface PolicyRule {
  readonly verbs: readonly string[];
  readonly apiGroups?: readonly string[];
  readonly resources?: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly nonResourceURLs?: readonly string[];
}

/** What a request wants, as far as authorization cares; every RequestInfo is one. */
export interface AuthorizationAttributes {
  readonly verb: string;
  readonly isResource: boolean;
  /** For requests that are for no resource. */
  readonly path: string;
  readonly group: string;
  readonly namespace: string;
  readonly resource: string;
  readonly subresource: string;
  readonly name: string;
  /** What a list or a watch selects by fields; absent where it does not. */
  readonly fieldRequirements?: readonly FieldRequirement[];
}

const ALL = '*';

/** A rule made ready to be asked many times. */
export class CompiledRule {
  readonly #verbs: Wanted;
  readonly #groups: Wanted;
  readonly #resources: Wanted;
  /** The `x` of each resource `*` + `/x`. */
  readonly #subresources: ReadonlySet<string>;
  readonly #names: ReadonlySet<string>;
  readonly #paths: Wanted;
  readonly #pathPrefixes: readonly string[];

  constructor(rule: PolicyRule) {
    const resources = rule.resources ?? [];
    const paths = rule.nonResourceURLs ?? [];
    this.#verbs = wanted(rule.verbs ?? []);
    this.#groups = wanted(rule.apiGroups ?? []);
    this.#resources = wanted(resources);
    this.#subresources = new Set(resources.filter((each) => each.startsWith('*/')).map((each) => each.slice(2)));
    this.#names = new Set(rule.resourceNames ?? []);
    this.#paths = wanted(paths);
    this.#pathPrefixes = paths.filter((path) => path.endsWith(ALL)).map(withoutStars);
  }

  /** Whether the rule allows this. `resource` is the attributes' resource and subresource, joined by a slash. */
  allows(attributes: AuthorizationAttributes, resource: string): boolean {
    if (!accepts(this.#verbs, attributes.verb)) return false;
    if (!attributes.isResource) return this.#allowsPath(attributes.path);
    return (
      accepts(this.#groups, attributes.group) &&
      (accepts(this.#resources, resource) ||
        (attributes.subresource !== '' && this.#subresources.has(attributes.subresource))) &&
      (this.#names.size === 0 || this.#names.has(attributes.name))
    );
  }

  #allowsPath(path: string): boolean {
    return accepts(this.#paths, path) || this.#pathPrefixes.some((prefix) => path.startsWith(prefix));
  }
}

/** Undefined stands for `*`. */
type Wanted = ReadonlySet<string> | undefined;

function wanted(values: readonly string[]): Wanted {
  return values.includes(ALL) ? undefined : new Set(values);
}

function accepts(set: Wanted, value: string): boolean {
  return set === undefined || set.has(value);
}

/** The prefix that a path with trailing stars stands for. */
export function withoutStars(path: string): string {
  let end = path.length;
  while (end > 0 && path[end - 1] === ALL) end--;
  return path.slice(0, end);
}

/** The resource of a request, its subresource spelled out: `pods/status`. */
export function combinedResource(attributes: Pick<AuthorizationAttributes, 'resource' | 'subresource'>): string {
  return attributes.subresource === '' ? attributes.resource : `${attributes.resource}/${attributes.subresource}`;
}

/** A rule in one line, as refusals of an escalation list them: `{APIGroups:[""], Resources:["pods"], Verbs:["get"]}`. */
export function describeRule(rule: PolicyRule): string {
  const parts: string[] = [];
  const add = (label: string, values: readonly string[] | undefined): void => {
    if (values && values.length > 0) parts.push(`${label}:${quoteList(values)}`);
  };
  add('APIGroups', rule.apiGroups);
  add('Resources', rule.resources);
  add('NonResourceURLs', rule.nonResourceURLs);
  add('ResourceNames', rule.resourceNames);
  add('Verbs', rule.verbs);
  return `{${parts.join(', ')}}`;
}

/** Strings as Go prints a list of them: quoted, separated by spaces. */
export function quoteList(values: readonly string[]): string {
  return `[${values.map((value) => JSON.stringify(value)).join(' ')}]`;
}
