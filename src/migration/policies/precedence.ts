import { unreachable } from '../../api/unreachable.ts';
import { compareTexts, type RankedPolicy } from './ranked-policy.ts';

/** Which rule decided between two policies, from the first that is asked to the last. */
export type PrecedenceRule =
  | 'MoreMatchingLabels'
  | 'MoreGuestLabels'
  | 'EarlierLabelKeys'
  | 'MoreExactValues'
  | 'EarlierName'
  | 'OlderWithSameSelectors';

type Comparison = (left: RankedPolicy, right: RankedPolicy) => number;

const RULES: readonly (readonly [PrecedenceRule, Comparison])[] = [
  ['MoreMatchingLabels', (left, right) => right.requirements.length - left.requirements.length],
  ['MoreGuestLabels', (left, right) => right.guestLabels - left.guestLabels],
  ['EarlierLabelKeys', (left, right) => compareLists(left.keys, right.keys)],
  ['MoreExactValues', (left, right) => right.exactValues - left.exactValues],
  ['EarlierName', (left, right) => compareTexts(left.name, right.name)],
];

/**
 * Negative where the left policy goes before the right one; 0 only for policies of one name. Of those with the same selectors
 * no more than one is ever asked about: that the older one goes before would fit in no order with the names of others.
 */
export function comparePrecedence(left: RankedPolicy, right: RankedPolicy): number {
  for (const [, compare] of RULES) {
    const order = compare(left, right);
    if (order !== 0) return order;
  }
  return 0;
}

/** The rule by which the winner goes before the loser. */
export function decidingRule(winner: RankedPolicy, loser: RankedPolicy): PrecedenceRule {
  if (winner.signature === loser.signature) return 'OlderWithSameSelectors';
  return RULES.find(([, compare]) => compare(winner, loser) !== 0)?.[0] ?? 'EarlierName';
}

/** Why the winner goes before the loser, in words. */
export function precedenceMessage(winner: RankedPolicy, loser: RankedPolicy): string {
  const rule = decidingRule(winner, loser);
  switch (rule) {
    case 'MoreMatchingLabels':
      return `${winner.requirements.length} labels match, not ${loser.requirements.length}`;
    case 'MoreGuestLabels':
      return `as many labels match, but ${winner.guestLabels} of them are the guest's own, not ${loser.guestLabels}`;
    case 'EarlierLabelKeys': {
      const [earlier = '', later = ''] = firstDifference(winner.keys, loser.keys);
      return `as many labels match, but in the order of their keys ${JSON.stringify(earlier)} is before ${JSON.stringify(later)}`;
    }
    case 'MoreExactValues':
      return `the same keys match, but ${winner.exactValues} by their exact values, not ${loser.exactValues}`;
    case 'EarlierName':
      return `nothing else tells them apart, and ${JSON.stringify(winner.name)} is before ${JSON.stringify(loser.name)}`;
    case 'OlderWithSameSelectors':
      return `both have the same selectors, and of such the oldest alone counts: ${JSON.stringify(winner.name)}`;
    default:
      return unreachable(rule);
  }
}

function compareLists(left: readonly string[], right: readonly string[]): number {
  const [first, second] = firstDifference(left, right);
  return first === undefined || second === undefined ? left.length - right.length : compareTexts(first, second);
}

function firstDifference(
  left: readonly string[],
  right: readonly string[],
): readonly [left: string | undefined, right: string | undefined] {
  const index = left.findIndex((text, at) => text !== right[at]);
  return index === -1 ? [undefined, undefined] : [left[index], right[index]];
}
