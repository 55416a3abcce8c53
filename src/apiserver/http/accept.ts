/** The Accept header, as far as the forms of our answers need it. */

export interface MediaRange {
  /** In lower case, e.g. `application/json` or `*` + `/*`. */
  readonly type: string;
  readonly parameters: ReadonlyMap<string, string>;
}

/** More clauses than any client sends; the rest is ignored. */
const CLAUSES_MAX = 32;

/** The acceptable media types, best first; none when the header is absent or empty. */
export function parseAccept(header: string | undefined): readonly MediaRange[] {
  if (!header) return [];
  const clauses = header.split(',', CLAUSES_MAX).map((clause) => {
    const [type = '', ...rest] = clause.split(';').map((part) => part.trim());
    const parameters = new Map<string, string>();
    for (const part of rest) {
      const equals = part.indexOf('=');
      if (equals > 0)
        parameters.set(part.slice(0, equals).trim().toLowerCase(), unquote(part.slice(equals + 1).trim()));
    }
    const quality = Number(parameters.get('q') ?? '1');
    return { type: type.toLowerCase(), parameters, quality: Number.isNaN(quality) ? 1 : quality };
  });
  return clauses.filter((clause) => clause.type !== '' && clause.quality > 0).sort((a, b) => b.quality - a.quality);
}

/** Whether a media range covers a type such as `application/json`. */
export function covers(range: MediaRange, type: string): boolean {
  return range.type === type || range.type === '*/*' || range.type === `${type.slice(0, type.indexOf('/'))}/*`;
}

function unquote(text: string): string {
  return text.startsWith('"') && text.endsWith('"') && text.length > 1 ? text.slice(1, -1) : text;
}
