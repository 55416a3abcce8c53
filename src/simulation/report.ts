import type { Unsettled } from './invariant.ts';

const UNSETTLED_SHOWN_MAX = 5;
const LINES_SHOWN_MAX = 8;

/** What is stuck, and what was last done about it, by whom. */
export function describeUnsettled(unsettled: readonly Unsettled[], lines: readonly string[]): string {
  return unsettled
    .slice(0, UNSETTLED_SHOWN_MAX)
    .map(({ key, what }) => {
      const name = key.split('/').at(-1) ?? key;
      const about = lines.filter((line) => line.includes(name)).slice(-LINES_SHOWN_MAX);
      return [`${key}: ${what}`, ...about.map((line) => `    ${line}`)].join('\n');
    })
    .concat(unsettled.length > UNSETTLED_SHOWN_MAX ? [`and ${unsettled.length - UNSETTLED_SHOWN_MAX} more`] : [])
    .join('\n');
}
