import { execFileSync } from 'node:child_process';
import { basename, join, relative, resolve } from 'node:path';

const root = resolve(import.meta.dirname, '../..');

/** Makes a program that Node runs of a TypeScript file, for tests that start and kill processes; answers where it is. */
export function programOf(file: string): string {
  const name = basename(file, '.ts');
  const directory = join('dist', 'test', name);
  execFileSync(process.execPath, [join(root, 'scripts', 'bundle.mjs'), relative(root, file), directory]);
  return join(root, directory, `${name}.js`);
}
