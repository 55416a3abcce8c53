// Debian's packages as files: taken apart and never installed, so that nothing of them is started, nor found by others.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Puts all files of packages below a directory. `fail` ends the process, with the reason. */
export function unpackPackages(packages, directory, fail) {
  const run = (command, args, options = {}) => {
    const { status, stderr, error } = spawnSync(command, args, { encoding: 'utf8', ...options });
    if (error || status !== 0) fail(`${[command, ...args].join(' ')}: ${error?.message ?? stderr.trim().slice(-2000)}`);
  };
  if (spawnSync('sh', ['-c', 'command -v apt-get dpkg-deb'], { stdio: 'ignore' }).status !== 0)
    fail(`there is no apt-get to get ${packages.join(', ')} from Debian with`);
  console.log(`== getting ${packages.join(', ')} from Debian`);
  const archives = mkdtempSync(join(tmpdir(), 'godwit-packages-'));
  try {
    run('apt-get', ['download', '-qq', ...packages], { cwd: archives });
    for (const name of readdirSync(archives)) run('dpkg-deb', ['-x', join(archives, name), directory]);
  } finally {
    rmSync(archives, { recursive: true });
  }
}
