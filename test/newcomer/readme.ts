/** What the README shows of commands, and whether that is what they print. */

/** A command, and what is shown below it. */
export interface Shown {
  readonly command: string;
  readonly output: readonly string[];
}

/** The commands of a section, in order. */
export function consoleBlocks(markdown: string, section: string): Shown[] {
  const text = markdown.split(/^## /m).find((each) => each.startsWith(`${section}\n`)) ?? '';
  return [...text.matchAll(/^```console\n([\s\S]*?)^```$/gm)].flatMap(([, block = '']) =>
    block
      .split(/^\$ /m)
      .filter(Boolean)
      .map((each) => {
        const [command = '', ...output] = each.trimEnd().split('\n');
        return { command, output };
      }),
  );
}

/** What is done only where it has not been done yet, and what npm says of itself. */
const OPTIONAL = /^(godwit: (installing|building|getting)|Port \d+ is taken|npm (warn|notice)|> )/;
/** Lines that a terminal writes over, of which the last one is left. */
const LIVE: readonly RegExp[] = [/^Nodes that are ready:/, /^ *(guest boots:|guest runs on)/, /^ *\[[#-]+\]/];

const PLACEHOLDERS: readonly (readonly [RegExp, string])[] = [
  [/\b[0-9a-f]{32}\b/g, 'BOOT'],
  [/sha256:[0-9a-f]+/g, 'DIGEST'],
  [/\b(kubevirt-[a-z-]+)-[a-z0-9]+\b/g, '$1-ID'],
  [/\b\d+(\.\d+)?[smhd](\d+[smhd])*\b/g, 'AGE'],
  [/v\d+\.\d+\.\d+\+godwit/g, 'VERSION'],
  [/\d+(\.\d+)?/g, 'N'],
  // Columns are as wide as what is in them.
  [/ {2,}/g, '  '],
];

function normalized(lines: readonly string[]): string[] {
  const kept = lines.map((line) => line.trimEnd()).filter((line) => line !== '' && !OPTIONAL.test(line));
  const last = kept.filter((line, index) => {
    const live = LIVE.find((pattern) => pattern.test(line));
    return live === undefined || !live.test(kept[index + 1] ?? '');
  });
  return last.map((line) => PLACEHOLDERS.reduce((text, [pattern, word]) => text.replaceAll(pattern, word), line));
}

/** Lines that are other than is shown; empty where all are as they should be. */
export function differences(shown: readonly string[], printed: string): string[] {
  const [wanted, actual] = [normalized(shown), normalized(printed.split('\n'))];
  return Array.from({ length: Math.max(wanted.length, actual.length) }, (_, index) => index)
    .filter((index) => wanted[index] !== actual[index])
    .map(
      (index) => `line ${index + 1} is shown as ${wanted[index] ?? 'nothing'}, and is ${actual[index] ?? 'nothing'}`,
    );
}
