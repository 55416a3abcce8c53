import type { MigrationPolicy } from '../../api/kubevirt/migration-policy.ts';
import { comparePrecedence } from './precedence.ts';
import {
  type LabelOwner,
  matches,
  type RankedPolicy,
  rankedPolicy,
  type Requirement,
  type Subject,
} from './ranked-policy.ts';

/**
 * All policies, filed so that a guest meets only those that it may match.
 *
 * Each policy is filed under one label that it asks for: the one under which fewest are filed so far. Where thousands ask
 * for `env: prod` and for a team of their own, that is the team. (Always taking the first label would put them all in one
 * drawer; taking all labels at once would need every subset of the guest's labels to look them up.)
 */
export class PolicyIndex {
  readonly #policies = new Map<string, { readonly ranked: RankedPolicy; readonly drawer: string }>();
  readonly #drawers = new Map<string, Set<RankedPolicy>>();

  constructor(policies: Iterable<MigrationPolicy> = []) {
    for (const policy of policies) this.set(policy);
  }

  /** Adds a policy, or replaces the one of its name. */
  set(policy: MigrationPolicy): void {
    this.delete(policy.metadata.name ?? '');
    const ranked = rankedPolicy(policy);
    if (!ranked) return;
    const drawer = this.#emptiestDrawer(ranked.requirements);
    const filed = this.#drawers.get(drawer);
    if (filed) filed.add(ranked);
    else this.#drawers.set(drawer, new Set([ranked]));
    this.#policies.set(ranked.name, { ranked, drawer });
  }

  delete(name: string): void {
    const known = this.#policies.get(name);
    if (!known) return;
    this.#policies.delete(name);
    const filed = this.#drawers.get(known.drawer);
    filed?.delete(known.ranked);
    if (filed?.size === 0) this.#drawers.delete(known.drawer);
  }

  /** All policies that are for some guest. */
  *all(): Generator<RankedPolicy> {
    for (const { ranked } of this.#policies.values()) yield ranked;
  }

  /** Every policy that matches, and some that do not; each once. */
  *candidates({ labels = {}, namespaceLabels = {} }: Subject): Generator<RankedPolicy> {
    yield* this.#drawers.get(ANY_GUEST) ?? [];
    yield* this.#candidatesBy('VirtualMachineInstance', labels);
    yield* this.#candidatesBy('Namespace', namespaceLabels);
  }

  /** The policies that match, best first. */
  matching(subject: Subject): RankedPolicy[] {
    return [...this.candidates(subject)].filter((ranked) => matches(ranked, subject)).toSorted(comparePrecedence);
  }

  /** The policy that holds for a subject; undefined where the configuration of the cluster alone does. */
  winner(subject: Subject): RankedPolicy | undefined {
    let best: RankedPolicy | undefined;
    for (const ranked of this.candidates(subject)) {
      if ((best === undefined || comparePrecedence(ranked, best) < 0) && matches(ranked, subject)) best = ranked;
    }
    return best;
  }

  *#candidatesBy(owner: LabelOwner, labels: { readonly [key: string]: string }): Generator<RankedPolicy> {
    for (const [key, value] of Object.entries(labels)) {
      yield* this.#drawers.get(drawerOf({ owner, key, value: undefined })) ?? [];
      yield* this.#drawers.get(drawerOf({ owner, key, value })) ?? [];
    }
  }

  #emptiestDrawer(requirements: readonly Requirement[]): string {
    let best = ANY_GUEST;
    let fewest = Number.POSITIVE_INFINITY;
    // Exact values first: fewer guests open their drawers, and the first of equals is taken.
    const exactFirst = requirements.toSorted((left, right) => Number(!left.value) - Number(!right.value));
    for (const requirement of exactFirst) {
      const drawer = drawerOf(requirement);
      const filed = this.#drawers.get(drawer)?.size ?? 0;
      if (filed < fewest) [best, fewest] = [drawer, filed];
    }
    return best;
  }
}

/** Where policies are that ask for nothing. */
const ANY_GUEST = '';

/** Keys hold no `=`, so nothing that asks for a value is taken for what asks for any. */
function drawerOf({ owner, key, value }: Requirement): string {
  return value === undefined ? `${owner} ${key}` : `${owner} ${key}=${value}`;
}
