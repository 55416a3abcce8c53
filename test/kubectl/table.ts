/** Tables as kubectl prints them, taken apart so that tests need not know widths and ages. */

export type Row = Readonly<Record<string, string>>;

/** The rows of one printed table, by header. Columns begin where their headers do. */
export function tableOf(text: string): Row[] {
  const [header = '', ...lines] = text.split('\n').filter((line) => line !== '');
  const columns = [...header.matchAll(/\S+(?: \S+)*/g)].map(({ 0: name, index }) => ({ name, index }));
  return lines.map((line) =>
    Object.fromEntries(
      columns.map(({ name, index }, at) => [name, line.slice(index, columns[at + 1]?.index).trim()] as const),
    ),
  );
}

/** The headers of one printed table, in order. */
export function headersOf(text: string): string[] {
  return [...(text.split('\n')[0] ?? '').matchAll(/\S+(?: \S+)*/g)].map(([name]) => name);
}

/** The tables of an answer about several kinds, which kubectl parts by empty lines. */
export function tablesOf(text: string): Row[][] {
  return text.trimEnd().split('\n\n').map(tableOf);
}

/** How kubectl says how old something is. */
export const AGE = /^(\d+[smhdy])+$/;
