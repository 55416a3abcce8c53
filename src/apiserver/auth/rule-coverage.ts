import { type PolicyRule, withoutStars } from './policy-rule.ts';

/**
 * Whether some rules give at least what others give. Rules are unions, so one that is wanted may be covered by several
 * that are held, each in part: it is broken into the smallest rules (one verb, one group, one resource, one name), and
 * each of these must be covered by a single rule that is held. That is exact but for one thing, which upstream does
 * the same way: nobody adds up that someone holds every verb there is without holding `*`.
 */

/**
 * A rule is a product of lists, and a role may have thousands. Past this many smallest rules of one role, what is left
 * of it is reported missing in its own rules, unlooked at.
 */
export const BREAKDOWN_MAX = 20_000;
/** Enough to refuse a role by, and to understand why. */
export const MISSING_MAX = 1000;

/** The smallest rules among `wantedRules` that `heldRules` do not cover, in order, the first thousand. Empty means covered. */
export function missingRules(heldRules: readonly PolicyRule[], wantedRules: readonly PolicyRule[]): PolicyRule[] {
  const held = heldRules.map((rule) => new HeldRule(rule));
  const missing: PolicyRule[] = [];
  let left = BREAKDOWN_MAX;
  for (const rule of wantedRules) {
    if (missing.length >= MISSING_MAX) break;
    // Most roles are granted by someone who holds them, or everything, in one rule; only the rest is broken down.
    if (held.some((each) => each.covers(rule))) continue;
    left -= breakdownSize(rule);
    if (left < 0) {
      missing.push(rule);
      continue;
    }
    for (const small of breakDown(rule)) {
      if (!held.some((each) => each.covers(small))) missing.push(small);
    }
  }
  return missing;
}

/** Joins smallest rules that differ only in their verb; sorted as upstream's message lists them is the caller's part. */
export function compactRules(rules: readonly PolicyRule[]): PolicyRule[] {
  const compacted: PolicyRule[] = [];
  const byTarget = new Map<string, { verbs: string[] }>();
  for (const rule of rules) {
    const isSimple =
      rule.apiGroups?.length === 1 &&
      rule.resources?.length === 1 &&
      (rule.resourceNames ?? []).length <= 1 &&
      (rule.nonResourceURLs ?? []).length === 0;
    if (!isSimple) {
      compacted.push(rule);
      continue;
    }
    const target = JSON.stringify([rule.apiGroups, rule.resources, rule.resourceNames ?? []]);
    const known = byTarget.get(target);
    if (known) known.verbs = known.verbs.concat(rule.verbs);
    else {
      const joined = { ...rule, verbs: [...rule.verbs] };
      byTarget.set(target, joined);
      compacted.push(joined);
    }
  }
  return compacted;
}

class HeldRule {
  readonly #verbs: ReadonlySet<string>;
  readonly #groups: ReadonlySet<string>;
  readonly #resources: ReadonlySet<string>;
  readonly #names: ReadonlySet<string>;
  readonly #paths: readonly string[];

  constructor(rule: PolicyRule) {
    this.#verbs = new Set(rule.verbs);
    this.#groups = new Set(rule.apiGroups);
    this.#resources = new Set(rule.resources);
    this.#names = new Set(rule.resourceNames);
    this.#paths = rule.nonResourceURLs ?? [];
  }

  /** Whether this one rule gives all of the other. A `*` that is wanted must be held as `*`. */
  covers(wanted: PolicyRule): boolean {
    return (
      hasAll(this.#verbs, wanted.verbs) &&
      hasAll(this.#groups, wanted.apiGroups ?? []) &&
      (wanted.resources ?? []).every((resource) => this.#coversResource(resource)) &&
      this.#coversNames(wanted.resourceNames ?? []) &&
      (wanted.nonResourceURLs ?? []).every((path) => this.#coversPath(path))
    );
  }

  #coversResource(resource: string): boolean {
    if (this.#resources.has('*') || this.#resources.has(resource)) return true;
    const slash = resource.indexOf('/');
    return slash >= 0 && this.#resources.has(`*/${resource.slice(slash + 1)}`);
  }

  /** No names means all objects, so someone bound to names covers only rules bound to some of the same. */
  #coversNames(names: readonly string[]): boolean {
    if (this.#names.size === 0) return true;
    return names.length > 0 && names.every((name) => this.#names.has(name));
  }

  #coversPath(path: string): boolean {
    return this.#paths.some((held) => held === path || (held.endsWith('*') && path.startsWith(withoutStars(held))));
  }
}

function hasAll(held: ReadonlySet<string>, wanted: readonly string[]): boolean {
  return held.has('*') || wanted.every((value) => held.has(value));
}

function breakdownSize(rule: PolicyRule): number {
  const resources =
    (rule.apiGroups ?? []).length * (rule.resources ?? []).length * Math.max(1, (rule.resourceNames ?? []).length);
  return rule.verbs.length * (resources + (rule.nonResourceURLs ?? []).length);
}

function* breakDown(rule: PolicyRule): Generator<PolicyRule> {
  for (const group of rule.apiGroups ?? []) {
    for (const resource of rule.resources ?? []) {
      for (const verb of rule.verbs) {
        const small: PolicyRule = { apiGroups: [group], resources: [resource], verbs: [verb] };
        if ((rule.resourceNames ?? []).length === 0) yield small;
        for (const name of rule.resourceNames ?? []) yield { ...small, resourceNames: [name] };
      }
    }
  }
  for (const path of rule.nonResourceURLs ?? []) {
    for (const verb of rule.verbs) yield { nonResourceURLs: [path], verbs: [verb] };
  }
}
