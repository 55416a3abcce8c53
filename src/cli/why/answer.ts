/** What `godwit why` answers of anything. */
export interface Answer {
  /** What it is about, such as `virtual machine shop/web`. */
  readonly subject: string;
  /** What state it is in, in a sentence. */
  readonly state: string;
  /** Why, the most important first. */
  readonly why: readonly string[];
  /** What happens next if nobody does anything. */
  readonly next: string;
  /** What somebody could do. */
  readonly actions: readonly string[];
}

const LABELS = { state: 'State', why: 'Why', next: 'Next', actions: 'You can' } as const;
const WIDTH = 9;

/** An answer for people. */
export function answerLines(
  { subject, state, why, next, actions }: Answer,
  emphasize: (text: string) => string,
): string[] {
  const part = (label: string, lines: readonly string[]): string[] =>
    lines.map((line, index) => `${(index === 0 ? label : '').padEnd(WIDTH)}${line}`);
  return [
    emphasize(capitalized(subject)),
    ...part(LABELS.state, [state]),
    ...part(LABELS.why, why),
    ...part(LABELS.next, [next]),
    ...part(LABELS.actions, actions),
  ];
}

function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** As a sentence: with a capital, and a full stop. */
export function sentence(text: string): string {
  return capitalized(closed(text));
}

/** With a full stop; what begins with a name stays as it is. */
export function closed(text: string): string {
  const trimmed = text.trim();
  return trimmed + (/[.!?]$/.test(trimmed) ? '' : '.');
}
