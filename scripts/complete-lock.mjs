// Run after changing dependencies. Lists optional packages of other platforms that the registry in use did not have, so
// that `npm ci` accepts the lockfile everywhere, and drops download addresses, which differ from one registry to the next.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './setup.mjs';

const OPERATING_SYSTEMS = [
  'aix',
  'android',
  'darwin',
  'freebsd',
  'linux',
  'netbsd',
  'openbsd',
  'openharmony',
  'sunos',
  'win32',
];
const PROCESSORS = ['arm', 'arm64', 'ia32', 'loong64', 'mips64el', 'ppc64', 'riscv64', 's390x', 'wasm32', 'x64'];

const path = join(root, 'package-lock.json');
const lock = JSON.parse(readFileSync(path, 'utf8'));
for (const [place, entry] of Object.entries(lock.packages)) {
  delete entry.resolved;
  for (const [name, version] of Object.entries(entry.optionalDependencies ?? {})) {
    if (lock.packages[`node_modules/${name}`] || lock.packages[`${place}/node_modules/${name}`]) continue;
    const words = name.split(/[-/@.]/);
    const os = OPERATING_SYSTEMS.filter((each) => words.includes(each));
    const cpu = PROCESSORS.filter((each) => words.includes(each));
    lock.packages[`node_modules/${name}`] = {
      version: version.replace(/^[\^~]/, ''),
      ...(cpu.length > 0 ? { cpu } : {}),
      ...(entry.dev ? { dev: true } : {}),
      optional: true,
      ...(os.length > 0 ? { os } : {}),
    };
  }
}
const { '': project, ...packages } = lock.packages;
lock.packages = {
  '': project,
  ...Object.fromEntries(Object.entries(packages).sort(([a], [b]) => a.localeCompare(b, 'en'))),
};
writeFileSync(path, `${JSON.stringify(lock, null, 2)}\n`);
