import type { KubeVirtConfiguration } from '../../api/kubevirt/kube-virt.ts';
import { type Change, changesOf } from './counterfactuals.ts';
import { type ResolvedOptions, resolveOptions } from './options.ts';
import type { PolicyIndex } from './policy-index.ts';
import { decidingRule, precedenceMessage, type PrecedenceRule } from './precedence.ts';
import { type LabelOwner, labelOf, type RankedPolicy, type Subject } from './ranked-policy.ts';

/** A label that a policy asked for and found. */
export interface MatchedLabel {
  readonly owner: LabelOwner;
  readonly key: string;
  readonly value: string;
  /** Whether any value would have done. */
  readonly isAnyValue: boolean;
}

/** A policy that matches, and yet is not the one that holds. */
export interface BeatenPolicy {
  readonly policy: string;
  readonly labels: readonly MatchedLabel[];
  readonly rule: PrecedenceRule;
  /** Why the winner goes before it, in words. */
  readonly message: string;
}

/** Which policy holds for a guest, and why. */
export interface Explanation extends ResolvedOptions {
  /** The policy that holds; absent where none matches, and the configuration of the cluster alone counts. */
  readonly winner?: { readonly policy: string; readonly labels: readonly MatchedLabel[] };
  /** The others that match, best first. */
  readonly beaten: readonly BeatenPolicy[];
  /** What would change the outcome, one change at a time. */
  readonly changes: readonly Change[];
}

type Configuration = Pick<KubeVirtConfiguration, 'migrations' | 'developerConfiguration'>;
type Labelled = { readonly metadata: { readonly labels?: { readonly [key: string]: string } } };

/** Says which policy holds for a guest, why it beat each other that matches, what follows, and what would change it. */
export function explain(
  guest: Labelled,
  namespace: Labelled,
  policies: PolicyIndex,
  configuration: Configuration = {},
): Explanation {
  const subject: Subject = { labels: guest.metadata.labels, namespaceLabels: namespace.metadata.labels };
  const [winner, ...others] = policies.matching(subject);
  const resolved = resolveOptions(winner?.policy, configuration);
  const changes = changesOf(policies, subject, winner, others[0]);
  if (!winner) return { ...resolved, beaten: [], changes };
  return {
    ...resolved,
    winner: { policy: winner.name, labels: matchedLabels(winner, subject) },
    beaten: others.map((loser) => ({
      policy: loser.name,
      labels: matchedLabels(loser, subject),
      rule: decidingRule(winner, loser),
      message: precedenceMessage(winner, loser),
    })),
    changes,
  };
}

function matchedLabels(ranked: RankedPolicy, subject: Subject): MatchedLabel[] {
  return ranked.requirements.map(({ owner, key, value }) => ({
    owner,
    key,
    value: labelOf(subject, owner, key) ?? '',
    isAnyValue: value === undefined,
  }));
}
