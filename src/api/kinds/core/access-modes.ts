import { type FieldError, forbidden, notSupported } from '../../field-error.ts';

const SHORT: ReadonlyMap<string, string> = new Map([
  ['ReadWriteOnce', 'RWO'],
  ['ReadOnlyMany', 'ROX'],
  ['ReadWriteMany', 'RWX'],
  ['ReadWriteOncePod', 'RWOP'],
]);
const SUPPORTED = [...SHORT.keys()].sort();

/** Access modes in the short form of `kubectl get`, each once, in a fixed order. */
export function accessModesText(modes: readonly string[]): string {
  return [...SHORT]
    .filter(([mode]) => modes.includes(mode))
    .map(([, short]) => short)
    .join(',');
}

/** What is wrong with a list of access modes. */
export function accessModeErrors(modes: readonly string[], path: string): FieldError[] {
  const errors = modes.filter((mode) => !SHORT.has(mode)).map((mode) => notSupported(path, mode, SUPPORTED));
  const others = modes.filter((mode) => SHORT.has(mode) && mode !== 'ReadWriteOncePod');
  if (others.length > 0 && modes.includes('ReadWriteOncePod')) {
    errors.push(forbidden(path, 'may not use ReadWriteOncePod with other access modes'));
  }
  return errors;
}
