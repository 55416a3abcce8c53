import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { kubectlMinor } from '../support/kubectl.ts';

/** The commands as npm installs them: on the PATH, under both of their names, and with all that they need beside them. */

const root = fileURLToPath(new URL('../..', import.meta.url));
const { version, bin } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  version: string;
  bin: Readonly<Record<string, string>>;
};

let prefix = '';
beforeEach(() => {
  prefix = mkdtempSync(join(tmpdir(), 'godwit-test-'));
});
afterEach(() => rmSync(prefix, { recursive: true, force: true }));

function run(command: string, ...args: readonly string[]): string {
  const PATH = [join(prefix, 'bin'), process.env['PATH']].join(delimiter);
  const { status, stdout, stderr } = spawnSync(command, args, {
    cwd: root,
    encoding: 'utf8',
    env: { ...process.env, PATH },
  });
  expect(status, `${command} ${args.join(' ')}: ${stderr}`).toBe(0);
  return stdout;
}

/** What is true of both ways to have them. */
function areThere(): void {
  expect(run('godwit', '--version')).toBe(`${version}\n`);
  expect(run('godwit', 'manifests', '--only', 'crds')).toContain('kind: CustomResourceDefinition');
  kubectlMinor();
  const kubectl = process.env['GODWIT_KUBECTL'] ?? 'kubectl';
  expect(run(kubectl, 'godwit', 'migrate', '--help')).toContain('kubectl godwit migrate myvm --watch');
}

describe('the commands', () => {
  it('are on the PATH after npm install -g in a clone', () => {
    run('npm', 'install', '-g', '.', '--prefix', prefix, '--ignore-scripts', '--offline', '--no-audit', '--no-fund');
    areThere();
  });

  it('work from what npm packs', () => {
    run('npm', 'pack', '--ignore-scripts', '--pack-destination', prefix);
    run('tar', '-xzf', join(prefix, `godwit-${version}.tgz`), '-C', prefix);
    symlinkSync(join(root, 'node_modules'), join(prefix, 'node_modules'));
    mkdirSync(join(prefix, 'bin'));
    for (const [name, file] of Object.entries(bin))
      symlinkSync(join(prefix, 'package', file), join(prefix, 'bin', name));
    areThere();
  });
});
