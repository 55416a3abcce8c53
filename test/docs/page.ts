/** What a page tells its readers to do: commands with what they print, and files. */

/** A command, and what the page shows below it. */
export interface ShownCommand {
  readonly kind: 'command';
  readonly command: string;
  readonly output: readonly string[];
  /** Where the command is on the page. */
  readonly line: number;
}

/** A file that the reader is to save: YAML that begins with its name, as a comment. */
export interface ShownFile {
  readonly kind: 'file';
  readonly name: string;
  readonly text: string;
}

export type Step = ShownCommand | ShownFile;

/** What is between two fences. */
export interface Fenced {
  /** The first word after the opening fence; empty where there is none. */
  readonly language: string;
  readonly lines: readonly string[];
  /** Where the first of them is on the page. */
  readonly line: number;
}

const FENCE = /^( *)```(.*)$/;
const PROMPT = '$ ';

/** All that is fenced on a page, or below one of its headings of the second rank. */
export function fencedIn(markdown: string, section?: string): Fenced[] {
  const found: Fenced[] = [];
  let [open, indent, language, inSection] = [-1, 0, '', section === undefined];
  const lines = markdown.split('\n');
  for (const [index, text] of lines.entries()) {
    const fence = FENCE.exec(text);
    if (open < 0 && section !== undefined && text.startsWith('## ')) inSection = text === `## ${section}`;
    if (!fence) continue;
    const [, spaces = '', words = ''] = fence;
    if (open < 0) [open, indent, language] = [index + 1, spaces.length, words.trim().split(' ')[0] ?? ''];
    else {
      const within = lines.slice(open, index).map((line) => line.slice(indent));
      if (inSection) found.push({ language, lines: within, line: open + 1 });
      open = -1;
    }
  }
  if (open >= 0) throw new Error(`what is fenced from line ${open} on has no end`);
  return found;
}

/** The commands among lines: each begins with the prompt, goes on while its lines end with a backslash, and prints the rest. */
export function commandsIn({ lines, line }: Fenced): ShownCommand[] {
  const commands: { kind: 'command'; command: string; output: string[]; line: number }[] = [];
  let isContinued = false;
  for (const [index, text] of lines.entries()) {
    const last = commands.at(-1);
    if (isContinued && last) last.command += `\n${text}`;
    else if (text.startsWith(PROMPT))
      commands.push({ kind: 'command', command: text.slice(PROMPT.length), output: [], line: line + index });
    else if (last) last.output.push(text);
    else throw new Error(`line ${line + index} is printed by no command: ${text}`);
    isContinued = text.endsWith('\\') && (isContinued || text.startsWith(PROMPT));
  }
  return commands;
}

function fileIn({ lines }: Fenced): ShownFile[] {
  const [, name] = /^# (\S+\.yaml)$/.exec(lines[0] ?? '') ?? [];
  return name === undefined ? [] : [{ kind: 'file', name, text: `${lines.join('\n')}\n` }];
}

/** What a reader does, in order. */
export function stepsOf(markdown: string, section?: string): Step[] {
  return fencedIn(markdown, section).flatMap((fenced): readonly Step[] => {
    if (fenced.language === 'console') return commandsIn(fenced);
    return fenced.language === 'yaml' ? fileIn(fenced) : [];
  });
}

/** Without what is fenced. */
export function proseOf(markdown: string): string {
  return markdown.replaceAll(/^ *```[\s\S]*?^ *```$/gm, '');
}

/** Where links can lead to on a page, as GitHub names its headings. */
export function anchorsIn(markdown: string): ReadonlySet<string> {
  const seen = new Map<string, number>();
  return new Set(
    [...proseOf(markdown).matchAll(/^#{1,6} (.+)$/gm)].map(([, heading = '']) => {
      const text = heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase();
      const slug = text.replaceAll(/[^\p{L}\p{N}\s_-]/gu, '').replaceAll(' ', '-');
      const count = seen.get(slug) ?? 0;
      seen.set(slug, count + 1);
      return count === 0 ? slug : `${slug}-${count}`;
    }),
  );
}
