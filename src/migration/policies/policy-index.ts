import type { MigrationPolicy } from '../../api/kubevirt/migration-policy.ts';
import { comparePrecedence } from './precedence.ts';
import {
  compareAges,
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
 *
 * Of policies with the same selectors only the oldest counts, and is filed. A webhook refuses the others, but two replicas of
 * it that are asked at the same instant know nothing of each other.
 */
export class PolicyIndex {
  /** By name. */
  readonly #policies = new Map<string, RankedPolicy>();
  /** By signature: all that have the same selectors, the oldest first. */
  readonly #equals = new Map<string, readonly RankedPolicy[]>();
  /** By signature: the one that counts. */
  readonly #filed = new Map<string, { readonly ranked: RankedPolicy; readonly drawer: string }>();
  readonly #drawers = new Map<string, Set<RankedPolicy>>();

  constructor(policies: Iterable<MigrationPolicy> = []) {
    for (const policy of policies) this.set(policy);
  }

  /** Adds a policy, or replaces the one of its name. */
  set(policy: MigrationPolicy): void {
    this.delete(policy.metadata.name ?? '');
    const ranked = rankedPolicy(policy);
    if (!ranked) return;
    this.#policies.set(ranked.name, ranked);
    const equals = [...(this.#equals.get(ranked.signature) ?? []), ranked];
    this.#equals.set(
      ranked.signature,
      equals.toSorted((left, right) => compareAges(left.policy, right.policy)),
    );
    this.#refile(ranked.signature);
  }

  delete(name: string): void {
    const known = this.#policies.get(name);
    if (!known) return;
    this.#policies.delete(name);
    const left = (this.#equals.get(known.signature) ?? []).filter((each) => each !== known);
    if (left.length > 0) this.#equals.set(known.signature, left);
    else this.#equals.delete(known.signature);
    this.#refile(known.signature);
  }

  /** All policies that are for some guest, and count. */
  *all(): Generator<RankedPolicy> {
    for (const { ranked } of this.#filed.values()) yield ranked;
  }

  /** Every policy that matches and counts, and some that do not match; each once. */
  *candidates({ labels = {}, namespaceLabels = {} }: Subject): Generator<RankedPolicy> {
    yield* this.#drawers.get(ANY_GUEST) ?? [];
    yield* this.#candidatesBy('VirtualMachineInstance', labels);
    yield* this.#candidatesBy('Namespace', namespaceLabels);
  }

  /** The policies that match, best first; those that an older one with the same selectors keeps from counting come after it. */
  matching(subject: Subject): RankedPolicy[] {
    return [...this.candidates(subject)]
      .filter((ranked) => matches(ranked, subject))
      .toSorted(comparePrecedence)
      .flatMap(({ signature }) => this.#equals.get(signature) ?? []);
  }

  /** The policy that holds for a subject; undefined where the configuration of the cluster alone does. */
  winner(subject: Subject): RankedPolicy | undefined {
    let best: RankedPolicy | undefined;
    for (const ranked of this.candidates(subject)) {
      if ((best === undefined || comparePrecedence(ranked, best) < 0) && matches(ranked, subject)) best = ranked;
    }
    return best;
  }

  /** Files the policy that counts of those with the same selectors, in the place of the one that did. */
  #refile(signature: string): void {
    const oldest = this.#equals.get(signature)?.[0];
    const known = this.#filed.get(signature);
    if (known?.ranked === oldest) return;
    if (known) {
      this.#filed.delete(signature);
      const drawer = this.#drawers.get(known.drawer);
      drawer?.delete(known.ranked);
      if (drawer?.size === 0) this.#drawers.delete(known.drawer);
    }
    if (!oldest) return;
    const name = this.#emptiestDrawer(oldest.requirements);
    const drawer = this.#drawers.get(name) ?? new Set();
    this.#drawers.set(name, drawer.add(oldest));
    this.#filed.set(signature, { ranked: oldest, drawer: name });
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
