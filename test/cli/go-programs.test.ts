import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

/** How `npm run test:kubernetes` gets programs that are written in Go, where `go` is a script of this test's. */

const script = fileURLToPath(new URL('../../scripts/go-programs.mjs', import.meta.url));
/** As Go does it: what is built is called as the directory that it is in. */
const BUILDS = 'for each in apiserver server; do echo built > "$directory/$each"; done';

let directory = '';

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'godwit-go-'));
  for (const name of ['bin', 'module', 'cache']) mkdirSync(join(directory, name));
  symlinkSync('/bin/sh', join(directory, 'bin', 'sh'));
  writeFileSync(join(directory, 'module', 'go.mod'), 'require (\n\texample.com/it v1.2.3\n)\n');
  writeFileSync(join(directory, 'module', 'go.sum'), '');
  writeFileSync(join(directory, 'log'), '');
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

/** The compiler: says who it is, and builds into the directory after `-o`. */
function go(build: string): void {
  const path = join(directory, 'bin', 'go');
  const lines = ['#!/bin/sh', 'if [ "$1" = env ]; then echo go1.2.3; exit 0; fi', `echo "$*" >> ${directory}/log`];
  lines.push('while [ "$1" != -o ]; do shift; done', 'directory=$2', build);
  writeFileSync(path, lines.join('\n'));
  chmodSync(path, 0o755);
}

function ensure() {
  const code = `import(${JSON.stringify(script)}).then((it) => console.log(it.ensureGoPrograms({
    name: 'it', module: ${JSON.stringify(join(directory, 'module'))}, source: 'example.com/it', minutes: 15,
    variables: { 'example.com/it.version': 'v1.2.3' }, programs: ['apiserver', 'etcd'], renamed: { server: 'etcd' },
    fail: (reason) => { console.error('there can be none: ' + reason); process.exit(1); },
  })))`;
  const { status, stdout, stderr } = spawnSync(process.execPath, ['-e', code], {
    env: { PATH: join(directory, 'bin'), XDG_CACHE_HOME: join(directory, 'cache') },
    encoding: 'utf8',
  });
  const builds = readFileSync(join(directory, 'log'), 'utf8').split('\n').filter(Boolean);
  return { status, said: `${stdout}${stderr}`, place: stdout.trim().split('\n').at(-1) ?? '', builds };
}

describe('programs that are built with Go', () => {
  it('are built once, of the release that is named, and said to take their time', () => {
    go(BUILDS);
    const first = ensure();
    expect(first.status, first.said).toBe(0);
    expect(first.said).toMatch(/^== building apiserver, etcd \(example.com\/it v1.2.3; some 15 minutes/);
    expect(first.builds).toEqual([
      expect.stringMatching(/^build -mod=readonly -ldflags -X example.com\/it.version=v1.2.3 -o .*\/ tool$/),
    ]);
    expect(['apiserver', 'etcd', 'server'].map((name) => existsSync(join(first.place, name)))).toEqual([
      true,
      true,
      false,
    ]);
    const second = ensure();
    expect(second.said.trim()).toBe(first.place);
    expect(second.builds).toEqual(first.builds);
  });

  it('are built anew where other releases are asked for', () => {
    go(BUILDS);
    const { place } = ensure();
    writeFileSync(join(directory, 'module', 'go.sum'), 'another\n');
    const { place: other, builds } = ensure();
    expect(other).not.toBe(place);
    expect(builds).toHaveLength(2);
  });

  it('cannot be had without Go, which is said with where to get it', () => {
    const { status, said } = ensure();
    expect(status).toBe(1);
    expect(said).toMatch(/there can be none: it is built with Go, which is not installed .*https:\/\/go\.dev\/dl/);
  });

  it('cannot be had where the build fails, and are built by the next one that does not', () => {
    go('echo "no such module" >&2; exit 1');
    const failed = ensure();
    expect(failed.status).toBe(1);
    expect(failed.said).toContain('no such module');
    expect(failed.said).toContain('there can be none: go build has failed');
    go(BUILDS);
    expect(ensure()).toMatchObject({ status: 0, builds: [expect.anything(), expect.anything()] });
  });
});
