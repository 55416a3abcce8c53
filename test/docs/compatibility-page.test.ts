import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

/** docs/compatibility.md names a test for what it claims, and the test is there. */

const root = fileURLToPath(new URL('../..', import.meta.url));
const lines = readFileSync(join(root, 'docs/compatibility.md'), 'utf8').split('\n');

/** The files and directories that a row names in its last column; a name alone is beside the one before it. */
function pathsOf(row: string): string[] {
  const cell = row.split(' | ').at(-1) ?? '';
  let directory = '';
  return [...cell.matchAll(/`([^`]+\.ts|[^`]+\/)`/g)].map(([, name = '']) => {
    const path = name.includes('/') ? name : join(directory, name);
    directory = path.endsWith('/') ? path : dirname(path);
    return path;
  });
}

/** The names of tests that a row has in quotation marks, each with the file before it. */
function casesOf(row: string): { readonly path: string; readonly name: string }[] {
  const cell = row.split(' | ').at(-1) ?? '';
  const paths = pathsOf(row);
  return [...cell.matchAll(/“([^”]+)”/g)].map(({ 1: name = '', index }) => {
    return { path: paths[pathsOf(` | ${cell.slice(0, index)}`).length - 1] ?? '', name };
  });
}

const rows = lines.filter((line) => line.startsWith('| ') && pathsOf(line).length > 0);
const isTested = (path: string): boolean =>
  path.endsWith('.test.ts') ||
  readdirSync(join(root, path), { recursive: true, encoding: 'utf8' }).some((name) => name.endsWith('.test.ts'));

describe('what is said of compatibility', () => {
  it('is shown by tests that are there', () => {
    expect(rows.length).toBeGreaterThan(200);
    const paths = new Set(rows.flatMap(pathsOf));
    expect([...paths].filter((path) => !existsSync(join(root, path)))).toEqual([]);
    expect([...paths].filter((path) => !isTested(path))).toEqual([]);
  });

  it('is shown by tests of these names, where it says which', () => {
    const cases = rows.flatMap(casesOf);
    expect(cases.length).toBeGreaterThan(10);
    const missing = cases.filter(({ path, name }) => !readFileSync(join(root, path), 'utf8').includes(name));
    expect(missing).toEqual([]);
  });

  it('is shown, or is not done, of each of KubeVirt’s tests', () => {
    const from = lines.findIndex((line) => line.startsWith("## KubeVirt's own tests"));
    const inventory = lines.slice(from).filter((line) => line.startsWith('| ') && !line.startsWith('| KubeVirt'));
    const unshown = inventory.filter((line) => pathsOf(line).length === 0);
    expect(unshown.filter((line) => !/ \| not done|\[metrics\.md\]/.test(line))).toEqual([]);
    for (const line of inventory) expect(line).toMatch(/ \| (same|by other means|not done|in addition|likewise)/);
  });
});
