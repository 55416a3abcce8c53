import type { Difference } from './compare.ts';

/** Differences that stay, and why. */
export type Accepted = AcceptedPlaces | AcceptedOutcome;

interface Reasoned {
  readonly reason: string;
  /** Each request with its group; `*` stands for anything. */
  readonly requests: readonly string[];
  /** Where it depends on who is first: then it may have become needless without being so. */
  readonly isOccasional?: true;
}

interface AcceptedPlaces extends Reasoned {
  /** Where in the answer; `*` stands for anything. */
  readonly at: readonly (`body${string}` | `headers.${string}`)[];
  /** What each says there, to the letter or by a pattern; not looked at where it is left out. */
  readonly embedded?: unknown;
  readonly real?: unknown;
}

/** One succeeds and the other does not, or each refuses for another reason: that is all that is compared then. */
interface AcceptedOutcome extends Reasoned {
  readonly at: readonly ['status'];
  readonly embedded: RegExp;
  readonly real: RegExp;
}

/** Keeps account of which entries are needed: one that is not has outlived its reason. */
export class Acceptance {
  readonly #entries: readonly Accepted[];
  readonly #needed = new Set<string>();

  constructor(entries: readonly Accepted[]) {
    this.#entries = entries;
  }

  accepts(difference: Difference): boolean {
    for (const entry of this.#entries) {
      const request = entry.requests.find((pattern) => matches(pattern, difference.request));
      const at = entry.at.find((pattern) => matches(pattern, difference.at));
      if (request === undefined || at === undefined || !isSaid(entry, difference)) continue;
      this.#needed.add(`${entry.reason} ${request}`).add(`${entry.reason} ${at}`);
      return true;
    }
    return false;
  }

  /** What no difference has needed. */
  unneeded(): string[] {
    const lasting = this.#entries.filter(({ isOccasional }) => !isOccasional);
    return lasting.flatMap(({ reason, requests, at }) =>
      [...requests, ...at].map((each) => `${reason} ${each}`).filter((each) => !this.#needed.has(each)),
    );
  }
}

function isSaid(entry: Accepted, difference: Difference): boolean {
  return (['embedded', 'real'] as const).every((side) => {
    const [wanted, said] = [entry[side], difference[side]];
    if (wanted instanceof RegExp) return typeof said === 'string' && wanted.test(said);
    return !Object.hasOwn(entry, side) || JSON.stringify(wanted) === JSON.stringify(said);
  });
}

function matches(pattern: string, text: string): boolean {
  const parts = pattern.split('*').map((part) => part.replaceAll(/[.\\+?^${}()|[\]]/g, '\\$&'));
  return new RegExp(`^${parts.join('.*')}$`, 's').test(text);
}
