import { stringify } from 'yaml';
import type { OutputFormat } from './cluster-options.ts';

/** Prints something as programs read it; answers whether that was what was asked for. */
export function printValue(
  value: unknown,
  format: OutputFormat | undefined,
  print: (line: string) => void,
): format is 'json' | 'yaml' {
  if (format === 'json') print(JSON.stringify(value, undefined, 2));
  // Twice through JSON, so that both formats have the very same fields.
  if (format === 'yaml') print(stringify(JSON.parse(JSON.stringify(value))).trimEnd());
  return format === 'json' || format === 'yaml';
}
