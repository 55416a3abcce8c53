/**
 * Whether commands print what a page shows. Some of it differs from time to time and from machine to machine, and is told
 * by its shape: what has the shape of an age is compared with what has the shape of an age. All else is as the page has it.
 *
 * - Values (ages, sizes, addresses …) match any of their kind.
 * - Names that are drawn (boots, UIDs, generated names …) match any of their kind, but the same one each time: what has
 *   one name on the page has one name in the cluster.
 * - Places (nodes, and where servers listen) match any of their kind: which node takes a guest is up to the scheduler. In
 *   commands a place stands for the one that was last seen where the page shows it, as a reader would type it.
 * - `…` matches anything in a line, and alone in a line any number of lines, also none.
 */

const VALUES: readonly RegExp[] = [
  /\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\d(?:\.\d+)?Z)?/,
  /(?:\d{1,3}\.){3}\d{1,3}\b/,
  /v\d+\.\d+\.\d+\+godwit/,
  /(?<=\b(?:count|uptime|checked|written)=)\d+(?:\.\d+)?/,
  /(?<=\bcounts )\d+ to \d+/,
  /(?<=\bprocess(?:es)? )\d+(?:, \d+)*/,
  /\d+(?:\.\d+)? (?:[KMGT]i)?B\b(?:\/s)?/,
  /\d+(?:\.\d+)?(?: ms|ms|[smhd](?:\d+[smhd])*)\b/,
  // That all is done is no matter of chance.
  /\b\d{1,2}%/,
  /(?:[0-9A-F]{2}:){2,}[0-9A-F]{2}/,
  /[▁▂▃▄▅▆▇█]+/,
];
const NAMES: readonly RegExp[] = [
  /\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b/,
  /\b[0-9a-f]{32}\b/,
  /\bsha256:[0-9a-f]{12,64}\b/,
  /\b[a-z0-9]{6}\.[a-z0-9]{16}\b/,
  /\b(?:kubevirt-(?:migrate-vm|evacuation|workload-update|disruption-budget)|virt-launcher-[a-z0-9-]+|send|receive)-[a-z0-9]{5,13}\b/,
];
const PLACES: readonly RegExp[] = [/\bnode-\d+\b/, /\b(?:\d{1,3}\.){3}\d{1,3}:\d+\b/];

const KINDS = [...NAMES, ...PLACES, ...VALUES];
const anyOf = (kinds: readonly RegExp[]): string => kinds.map(({ source }) => `(${source})`).join('|');
/** Columns are as wide as what is in them. */
const SPACES = / {2,}/;
const SPECIAL = new RegExp(`${anyOf(KINDS)}|(…)|(${SPACES.source})`, 'gu');

/** What is done only where it has not been done yet, and what npm says of itself. */
const OPTIONAL = /^(godwit: (installing|building|getting)|Port \d+ is taken|npm (warn|notice)|added \d+ packages|> )/;
/** Lines that a terminal writes over, of which the last one is left. */
const LIVE: readonly RegExp[] = [/^Nodes that are ready:/, /^ *(guest boots:|guest runs on)/, /^ *\[[#-]+\]/];

/** What kubectl says from 1.34 on. */
const SINCE = / from \S+ namespace$/;

const escaped = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\/]/gu, '\\$&');

function settled(lines: readonly string[]): string[] {
  const kept = lines
    .map((line) => line.trimEnd().replace(SINCE, ''))
    .filter((line) => line !== '' && !OPTIONAL.test(line));
  return kept.filter((line, index) => {
    const live = LIVE.find((pattern) => pattern.test(line));
    return live === undefined || !live.test(kept[index + 1] ?? '');
  });
}

/** One page, and what its names are called in the cluster that it is played on. */
export class Likeness {
  readonly #actual = new Map<string, string>();
  readonly #places = new Map<string, string>();

  /** A command of the page, with the names of the cluster. */
  translated(command: string): string {
    const named = new RegExp(anyOf([...NAMES, ...PLACES]), 'gu');
    return command.replaceAll(named, (name) => this.#actual.get(name) ?? this.#places.get(name) ?? name);
  }

  /** What is other than shown, in a sentence; undefined, and the names are remembered, where nothing is. */
  difference(shown: readonly string[], printed: string): string | undefined {
    return this.#compare(settled(shown), settled(printed.split('\n')), '$');
  }

  /** The same of a command that goes on, of which only the beginning is shown. */
  differenceSoFar(shown: readonly string[], printed: string): string | undefined {
    return this.#compare(settled(shown), settled(printed.split('\n').slice(0, -1)), '');
  }

  #compare(wanted: readonly string[], actual: readonly string[], end: '$' | ''): string | undefined {
    const text = actual.map((line) => `${line}\n`).join('');
    const { source, names } = this.#pattern(wanted);
    const found = new RegExp(`^${source}${end}`, 'u').exec(text);
    if (found) return this.#remember(names.map((name, index) => [name, found.groups?.[`name${index}`] ?? '']));
    const first = wanted.findIndex((_, index) => {
      return !new RegExp(`^${this.#pattern(wanted.slice(0, index + 1)).source}`, 'u').test(text);
    });
    return first < 0 ? 'more is printed than is shown' : `what is shown as '${wanted[first]}' is not what is printed`;
  }

  #remember(seen: readonly (readonly [string, string])[]): string | undefined {
    const isPlace = (name: string): boolean => PLACES.some((kind) => kind.test(name));
    const drawn = seen.filter(([name]) => !isPlace(name));
    const known = new Map([...this.#actual].map(([name, actual]) => [actual, name]));
    for (const [name, actual] of drawn) {
      const other = known.get(actual) ?? name;
      if (other !== name) return `'${actual}' is shown as '${name}', and was shown as '${other}'`;
      known.set(actual, name);
    }
    for (const [name, actual] of seen) (isPlace(name) ? this.#places : this.#actual).set(name, actual);
    return undefined;
  }

  /** What lines have to look like, and the names that are learnt from them. */
  #pattern(lines: readonly string[]): { readonly source: string; readonly names: readonly string[] } {
    const names: string[] = [];
    const one = (text: string, kind: RegExp | undefined): string => {
      if (!kind) return text === '…' ? '.*?' : ' {2,}';
      if (VALUES.includes(kind)) return `(?:${kind.source})`;
      const known = this.#actual.get(text);
      if (known !== undefined) return escaped(known);
      const index = names.indexOf(text);
      if (index >= 0 && !PLACES.includes(kind)) return `\\k<name${index}>`;
      names.push(text);
      return `(?<name${names.length - 1}>${kind.source})`;
    };
    const ofLine = (line: string): string => {
      if (line === '…') return '(?:.*\\n)*?';
      let [source, at] = ['', 0];
      for (const match of line.matchAll(SPECIAL)) {
        const kind = KINDS[match.slice(1).findIndex((group) => group !== undefined)];
        source += escaped(line.slice(at, match.index)) + one(match[0], kind);
        at = match.index + match[0].length;
      }
      return `${source}${escaped(line.slice(at))} *\\n`;
    };
    return { source: lines.map(ofLine).join(''), names };
  }
}
