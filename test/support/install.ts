import { spawnSync } from 'node:child_process';
import { say } from './say.ts';

/** Several test files may want something at once; the package manager serves one. */
const LOCK = '/tmp/godwit-test-install.lock';

/** Installs packages of the distribution unless `isThere` says that there is no need, asking again once it is our turn. */
export function install(name: string, packages: readonly string[], isThere: () => boolean): void {
  if (isThere()) return;
  say(`${name} is not on the PATH: installing ${packages.join(' ')} from the distribution`);
  const quiet = '-qq -o DPkg::Lock::Timeout=120';
  const steps = [
    `command -v ${name} > /dev/null && exit 0`,
    `apt-get update ${quiet}`,
    `apt-get install -y ${quiet} --no-install-recommends ${packages.join(' ')}`,
  ];
  spawnSync('flock', [LOCK, 'sh', '-c', steps.join('\n')], { stdio: 'inherit' });
}
