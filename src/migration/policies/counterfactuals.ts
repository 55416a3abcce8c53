import type { PolicyIndex } from './policy-index.ts';
import { comparePrecedence } from './precedence.ts';
import {
  isMet,
  type LabelOwner,
  type Labels,
  type RankedPolicy,
  type Requirement,
  type Subject,
} from './ranked-policy.ts';

/** One thing that would make another policy hold, or none. */
export type Change =
  | { readonly kind: 'DeletePolicy'; readonly policy: string; readonly winner?: string }
  | { readonly kind: 'RemoveLabel'; readonly owner: LabelOwner; readonly key: string; readonly winner?: string }
  | {
      readonly kind: 'SetLabel';
      readonly owner: LabelOwner;
      readonly key: string;
      /** The value to set; undefined where any will do. */
      readonly value?: string;
      readonly winner: string;
    };

/** How many labels that could be set are named: the best policies' ones. More would hide what matters. */
const SET_LABELS_MAX = 10;
/** How many policies are tried for that, so that ten thousand that all miss one label cost no more than this. */
const NEAR_MISSES_TRIED_MAX = 100;

/** All single changes of labels, and of the policy that holds, by which another would. Each was tried. */
export function changesOf(
  policies: PolicyIndex,
  subject: Subject,
  winner: RankedPolicy | undefined,
  next: RankedPolicy | undefined,
): Change[] {
  return [
    ...(winner ? [{ kind: 'DeletePolicy', policy: winner.name, ...named(next) } as const] : []),
    ...removals(policies, subject, winner),
    ...settings(policies, subject, winner),
  ];
}

/** The labels without which the winner would not match any more. */
function removals(policies: PolicyIndex, subject: Subject, winner: RankedPolicy | undefined): Change[] {
  return (winner?.requirements ?? []).map(({ owner, key }) => ({
    kind: 'RemoveLabel',
    owner,
    key,
    ...named(policies.winner(withLabel(subject, owner, key, undefined))),
  }));
}

/** The labels with which a policy would hold that misses but this one. */
function settings(policies: PolicyIndex, subject: Subject, winner: RankedPolicy | undefined): Change[] {
  const changes = new Map<string, Change>();
  let tried = 0;
  for (const missing of nearMisses(policies, subject)) {
    const { owner, key, value } = missing;
    const id = JSON.stringify([owner, key, value]);
    if (changes.has(id)) continue;
    if (changes.size >= SET_LABELS_MAX || ++tried > NEAR_MISSES_TRIED_MAX) break;
    const outcome = policies.winner(withLabel(subject, owner, key, value ?? ''));
    if (outcome && outcome.name !== winner?.name)
      changes.set(id, { kind: 'SetLabel', owner, key, value, winner: outcome.name });
  }
  return [...changes.values()];
}

/** What each policy misses that misses one label, the best policy's first. */
function nearMisses(policies: PolicyIndex, subject: Subject): Requirement[] {
  return [...policies.all()]
    .flatMap((ranked) => {
      const missing = ranked.requirements.filter((requirement) => !isMet(requirement, subject));
      return missing.length === 1 && missing[0] ? [{ ranked, missing: missing[0] }] : [];
    })
    .toSorted((left, right) => comparePrecedence(left.ranked, right.ranked))
    .map(({ missing }) => missing);
}

function withLabel(subject: Subject, owner: LabelOwner, key: string, value: string | undefined): Subject {
  const changed = (labels: Labels = {}): Labels =>
    Object.fromEntries([
      ...Object.entries(labels).filter(([name]) => name !== key),
      ...(value === undefined ? [] : [[key, value] as const]),
    ]);
  return owner === 'Namespace'
    ? { ...subject, namespaceLabels: changed(subject.namespaceLabels) }
    : { ...subject, labels: changed(subject.labels) };
}

function named(ranked: RankedPolicy | undefined): { readonly winner?: string } {
  return ranked ? { winner: ranked.name } : {};
}
