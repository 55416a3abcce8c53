/** So many lines are told, of nodes or of what they lack: a condition is read by people. */
const LINES_MAX = 30;
/** So many nodes are named that lack the same. */
const NAMES_MAX = 3;

/** What each node lacks, by its name, in words; where there are many, by what it is, so that each of them is counted. */
export function unfitnessText(lacks: ReadonlyMap<string, string>): string {
  if (lacks.size === 0) return 'there are no nodes';
  const names = [...lacks.keys()].toSorted();
  if (names.length <= LINES_MAX) return names.map((name) => `${name}: ${lacks.get(name)}`).join('; ');
  const byLacking = new Map<string, string[]>();
  for (const name of names) {
    const lacking = lacks.get(name) ?? '';
    const members = byLacking.get(lacking) ?? [];
    members.push(name);
    byLacking.set(lacking, members);
  }
  const groups = [...byLacking].toSorted(([, left], [, right]) => right.length - left.length);
  const rest = groups.slice(LINES_MAX).reduce((sum, [, members]) => sum + members.length, 0);
  const lines = groups.slice(0, LINES_MAX).map(([lacking, members]) => `${namesText(members)}: ${lacking}`);
  return [...lines, ...(rest > 0 ? [`and ${rest} more, for other reasons`] : [])].join('; ');
}

function namesText(names: readonly string[]): string {
  const rest = names.length - NAMES_MAX;
  return `${names.slice(0, NAMES_MAX).join(', ')}${rest > 0 ? ` and ${rest} more` : ''}`;
}
