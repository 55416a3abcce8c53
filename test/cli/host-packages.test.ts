import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

/** What `npm start` installs, on machines whose commands are scripts of this test's. */

interface KernelPackages {
  readonly currentKernelPackages: (aptCache: (args: readonly string[]) => string) => { name: string; file: string }[];
  readonly kernelOfCache: (files: readonly string[]) => string[] | undefined;
}
interface HostPackages {
  readonly neededOn: (osRelease: string) => (readonly [command: string, name: string])[];
}

/** Scripts that run before anything is installed are plain JavaScript, without types. */
const load = (path: string): Promise<unknown> => import(new URL(`../../${path}`, import.meta.url).href);
const { currentKernelPackages, kernelOfCache } = (await load('guest/linux/kernel-packages.mjs')) as KernelPackages;
const { neededOn } = (await load('scripts/host-packages.mjs')) as HostPackages;

const ORIGINAL = fileURLToPath(new URL('../../scripts/host-packages.mjs', import.meta.url));
const INSTALL = 'apt-get install -y --no-install-recommends';
const ALL = 'qemu-system-x86 gcc libc6-dev binutils';
const NOBODY = { uid: 54_321, gid: 54_321 };
const isRoot = process.getuid?.() === 0;
/** Somebody without rights: whoever runs the tests, or nobody in particular where that is root. */
const asUser = isRoot ? NOBODY : {};

let directory = '';
let bin = '';
let script = '';

beforeEach(() => {
  // Where somebody else may go, too.
  directory = mkdtempSync('/tmp/gw-');
  chmodSync(directory, 0o777);
  bin = join(directory, 'bin');
  mkdirSync(bin);
  chmodSync(bin, 0o777);
  // The clone may be where nobody else gets to.
  script = join(directory, 'host-packages.mjs');
  copyFileSync(ORIGINAL, script);
  chmodSync(script, 0o644);
  for (const command of ['sh', 'touch', 'chmod', 'cat']) symlinkSync(`/bin/${command}`, join(bin, command));
  writeFileSync(join(directory, 'log'), '');
  chmodSync(join(directory, 'log'), 0o666);
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

function command(name: string, lines: string): void {
  writeFileSync(join(bin, name), `#!/bin/sh\necho "${name} $*" >> ${directory}/log\n${lines}\n`);
  chmodSync(join(bin, name), 0o755);
}

/** An archive that has everything: what is installed is there afterwards. */
function aptGet(update = ':'): void {
  const made = ['qemu-system-x86_64', 'gcc', 'ld', 'xz', 'zstd'].map((name) => join(bin, name)).join(' ');
  command('apt-get', `case "$1" in update) ${update};; install) touch ${made}; chmod +x ${made};; esac`);
}

function start(who: object, hasTerminal = false) {
  const code = `import('${script}').then((it) => process.exit(it.ensureHostPackages('start again') ? 0 : 1))`;
  const isTerminal = hasTerminal ? 'process.stdin.isTTY = true;' : '';
  const { status, stderr } = spawnSync(process.execPath, ['-e', isTerminal + code], {
    env: { PATH: bin },
    encoding: 'utf8',
    cwd: '/',
    stdio: ['ignore', 'pipe', 'pipe'],
    ...who,
  });
  return { status, stderr, log: readFileSync(join(directory, 'log'), 'utf8').trim().split('\n') };
}

describe('what a machine needs from its distribution', () => {
  it('is installed through sudo by who is not root, and said first', () => {
    aptGet();
    command('sudo', 'if [ "$1" = -n ]; then exit 0; fi; exec "$@"');
    const { status, stderr, log } = start(asUser);
    expect(status, stderr).toBe(0);
    expect(stderr).toMatch(/^godwit: installing qemu-system-x86, gcc libc6-dev, binutils.* \(sudo apt-get install -y /);
    expect(log.filter((line) => line.startsWith('apt-get'))).toEqual([
      expect.stringMatching(/^apt-get update /),
      expect.stringMatching(/^apt-get install -y --no-install-recommends .* qemu-system-x86 gcc libc6-dev binutils/),
    ]);
  });

  it('is installed also where one of the sources of packages is out of order, and that is said', () => {
    aptGet('exit 100');
    command('sudo', 'if [ "$1" = -n ]; then exit 0; fi; exec "$@"');
    const { status, stderr } = start(asUser);
    expect(status, stderr).toBe(0);
    expect(stderr).toContain('lists of packages could not all be got (sudo apt-get update ');
  });

  it.each([
    ['there is no sudo', () => undefined],
    ['sudo would ask for a password, and nobody can type one', () => command('sudo', 'exit 1')],
  ])('is left to the user where %s', (_, prepare) => {
    aptGet();
    prepare();
    const { status, stderr, log } = start(asUser);
    expect(status).toBe(1);
    expect(stderr).toContain(`run 'sudo ${INSTALL} ${ALL}`);
    expect(stderr).toMatch(/' and start again\n$/);
    expect(log.filter((line) => line.startsWith('apt-get'))).toEqual([]);
  });

  it('is asked for on a terminal, where sudo may want a password', () => {
    aptGet();
    command('sudo', 'if [ "$1" = -n ]; then exit 1; fi; exec "$@"');
    expect(start(asUser, true)).toMatchObject({ status: 0 });
  });

  it('is named once more where installing it has failed', () => {
    command('apt-get', 'exit 100');
    command('sudo', 'if [ "$1" = -n ]; then exit 0; fi; exec "$@"');
    const { status, stderr } = start(asUser);
    expect(status).toBe(1);
    expect(stderr).toContain(`run 'sudo ${INSTALL} ${ALL}`);
  });

  it('is left to the user where there is no apt', () => {
    expect(start(asUser)).toMatchObject({ status: 1, log: [''] });
  });

  it('is nothing where all is there', () => {
    for (const name of ['qemu-system-x86_64', 'gcc', 'ld', 'xz', 'zstd']) command(name, '');
    aptGet();
    expect(start(asUser)).toMatchObject({ status: 0, stderr: '', log: [''] });
  });

  if (isRoot)
    it('is installed without sudo by root', () => {
      aptGet();
      const { status, stderr } = start({});
      expect([status, stderr]).toEqual([0, expect.stringMatching(/\(apt-get install -y /)]);
    });

  it.each([
    ['ID=debian\nVERSION_ID="12"\n', []],
    ['ID=debian\nVERSION_ID="13"\n', ['xz-utils']],
    ['NAME=x\nID=ubuntu\nID_LIKE=debian\nVERSION_ID="24.04"\n', ['zstd']],
    ['ID=linuxmint\nID_LIKE="ubuntu debian"\n', ['zstd']],
    ['ID=fedora\n', []],
    ['', []],
  ])('is by its os-release %j, besides QEMU and a compiler', (osRelease, more) => {
    const packages = neededOn(osRelease).map(([, name]) => name);
    expect(packages).toEqual(['qemu-system-x86', 'gcc libc6-dev', 'binutils', ...more]);
  });
});

describe("the guest's kernel", () => {
  const lists: Readonly<Record<string, Readonly<Record<string, string>>>> = {
    Debian: {
      'depends linux-image-cloud-amd64': 'linux-image-cloud-amd64\n  Depends: linux-image-6.1.0-37-cloud-amd64\n',
      'depends linux-image-6.1.0-37-cloud-amd64': 'x\n  Depends: kmod\n |Depends: linux-initramfs-tool\n',
      'show --no-all-versions linux-image-6.1.0-37-cloud-amd64': 'Package: x\nVersion: 6.1.140-1\n',
    },
    Ubuntu: {
      'depends linux-image-virtual': 'linux-image-virtual\n  Depends: linux-image-6.8.0-60-generic\n',
      'depends linux-image-6.8.0-60-generic': 'x\n  Depends: kmod\n  Depends: linux-modules-6.8.0-60-generic\n',
      'show --no-all-versions linux-image-6.8.0-60-generic': 'Version: 6.8.0-60.63\n',
      'show --no-all-versions linux-modules-6.8.0-60-generic': 'Version: 1:6.8.0-60.63\n',
    },
    nowhere: {},
  };
  const aptCacheOf =
    (where: string) =>
    (args: readonly string[]): string => {
      const text = lists[where]?.[args.join(' ')];
      if (text === undefined) throw new Error('E: No packages found');
      return text;
    };

  it('is one package of Debian', () => {
    expect(currentKernelPackages(aptCacheOf('Debian'))).toEqual([
      {
        name: 'linux-image-6.1.0-37-cloud-amd64',
        file: 'linux-image-6.1.0-37-cloud-amd64_6.1.140-1_amd64.deb',
      },
    ]);
  });

  it('is an image and its modules of Ubuntu', () => {
    expect(currentKernelPackages(aptCacheOf('Ubuntu')).map(({ file }) => file)).toEqual([
      'linux-image-6.8.0-60-generic_6.8.0-60.63_amd64.deb',
      'linux-modules-6.8.0-60-generic_1%3a6.8.0-60.63_amd64.deb',
    ]);
  });

  it('is not there where the lists are missing, and what helps is said', () => {
    expect(() => currentKernelPackages(aptCacheOf('nowhere'))).toThrow('apt-get update');
  });

  it('may be one that was downloaded before', () => {
    expect(kernelOfCache(['linux-modules-6_1_amd64.deb', 'linux-image-6_1_amd64.deb'])).toEqual([
      'linux-image-6_1_amd64.deb',
      'linux-modules-6_1_amd64.deb',
    ]);
    expect(kernelOfCache(['linux-image-5_1_amd64.deb', 'linux-modules-6_1_amd64.deb'])).toEqual([
      'linux-image-5_1_amd64.deb',
    ]);
    expect(kernelOfCache([])).toBeUndefined();
  });
});
