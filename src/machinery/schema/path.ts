/** Where a walk is: field names and indexes from the root. Strings are made of it only when there is something to say. */
export type Path = (string | number)[];

/** The path as field errors spell it, e.g. `spec.containers[0].name`. */
export function spell(path: readonly (string | number)[]): string {
  let text = '';
  for (const part of path) {
    if (typeof part === 'number') text += `[${part}]`;
    else text += text === '' ? part : `.${part}`;
  }
  return text;
}
