/** Colours of a terminal. What is no terminal gets none, nor does whoever has said NO_COLOR (https://no-color.org). */

const CODES = {
  bold: [1, 22],
  dim: [2, 22],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  cyan: [36, 39],
} as const;

export type Colour = keyof typeof CODES;

/** Puts text in a colour, or leaves it as it is. */
export type Paint = (colour: Colour, text: string) => string;

export const plain: Paint = (_, text) => text;

/** How to colour what is written there. */
export function paintFor(
  output: { readonly isTTY?: boolean },
  environment: { readonly [name: string]: string | undefined },
): Paint {
  const isWanted = output.isTTY === true && !environment['NO_COLOR'] && environment['TERM'] !== 'dumb';
  if (!isWanted) return plain;
  return (colour, text) => {
    const [on, off] = CODES[colour];
    return text === '' ? '' : `\u001b[${on}m${text}\u001b[${off}m`;
  };
}

// oxlint-disable-next-line no-control-regex
const ESCAPES = /\u001b\[\d+m/g;

/** How many columns a text takes. */
export function widthOf(text: string): number {
  return text.replaceAll(ESCAPES, '').length;
}
