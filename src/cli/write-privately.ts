import { chmodSync, renameSync, writeFileSync } from 'node:fs';

/** Writes a file that appears whole, and is private from its first byte; answers its path. */
export function writePrivately(path: string, text: string): string {
  const temporary = `${path}.new`;
  writeFileSync(temporary, text, { mode: 0o600 });
  chmodSync(temporary, 0o600);
  renameSync(temporary, path);
  return path;
}
