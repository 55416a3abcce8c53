/** Names of fields as identifiers: Kubernetes' escaping of what CEL's grammar does not allow. */

const KEYWORDS: ReadonlySet<string> = new Set(
  'true false null in as break const continue else for function if import let loop package namespace return var void while'.split(
    ' ',
  ),
);

const ESCAPES: ReadonlyMap<string, string> = new Map([
  ['__', '__underscores__'],
  ['.', '__dot__'],
  ['-', '__dash__'],
  ['/', '__slash__'],
]);

/** The identifier by which rules reach a field; undefined where they cannot. */
export function escapeField(field: string): string | undefined {
  if (!/^[a-zA-Z_./-][a-zA-Z0-9_./-]*$/.test(field)) return undefined;
  if (KEYWORDS.has(field)) return `__${field}__`;
  return field.replaceAll(/__|[-./]/g, (part) => ESCAPES.get(part) ?? part);
}
