import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { fencedIn } from '../docs/page.ts';
import { eventually } from '../support/eventually.ts';

/**
 * `npm start`, around commands that only say what they are: when there is a tour, and how all of it ends. What it is like with the
 * real ones is in `test/newcomer`.
 */

const scripts = fileURLToPath(new URL('../../scripts', import.meta.url));

/** `godwit`: serves until it is told to stop; tours end as FAKE_TOUR says. */
const GODWIT = `
import { existsSync, mkdirSync } from 'node:fs';
const [command, ...args] = process.argv.slice(2);
const directory = args[args.indexOf('--data-dir') + 1];
const say = (text) => process.stdout.write(text + '\\n');
process.stdout.on('error', () => undefined);
const ended = (code, text) => () => { say(text); process.exit(code); };
if (command === 'up') {
  if (existsSync(directory + '/broken')) { process.stderr.write('godwit: it is broken\\n'); process.exit(1); }
  mkdirSync(directory + '/data', { recursive: true });
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, ended(0, 'Stopped.'));
  setInterval(() => undefined, 1000);
  say('serving ' + args.filter((each) => !each.startsWith(directory)).join(' '));
  process.send('serving');
} else {
  const how = process.env.FAKE_TOUR;
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, ended(130, 'the tour was stopped'));
  say('a tour');
  if (how === 'waits') setInterval(() => undefined, 1000);
  else if (how === 'fails') { process.stderr.write('godwit: the guest did not boot\\n'); process.exit(1); }
  else ended(0, 'all is well')();
}
`;

let root = '';
let data = '';
let running: ChildProcess | undefined;

function put(path: string, text: string, mode = 0o644): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
  chmodSync(join(root, path), mode);
}

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'godwit-test-'));
  data = join(root, 'cluster');
  for (const name of ['start.mjs', 'setup.mjs', 'host-packages.mjs'])
    cpSync(join(scripts, name), join(root, 'scripts', name));
  put('package.json', '{"type": "module"}');
  for (const name of ['package-lock.json', 'src/main.ts']) put(name, '{}');
  put('node_modules/rolldown/package.json', '{}');
  // A build that builds nothing.
  put('scripts/bundle.mjs', '');
  put('dist/cli/main.js', GODWIT);
  put('guest/linux/build.mjs', '');
  for (const name of ['npm', 'qemu-system-x86_64', 'gcc', 'ld', 'xz', 'zstd']) put(`bin/${name}`, '#!/bin/sh\n', 0o755);
  symlinkSync('/bin/sh', join(root, 'bin', 'sh'));
});
afterEach(async () => {
  if (running?.pid !== undefined && running.exitCode === null) {
    process.kill(-running.pid, 'SIGKILL');
    await once(running, 'exit');
  }
  rmSync(root, { recursive: true, force: true });
});

interface Started {
  readonly child: ChildProcess;
  readonly output: () => string;
  readonly code: Promise<number>;
}

function start(tour: 'goes well' | 'waits' | 'fails', ...args: readonly string[]): Started {
  const child = spawn(process.execPath, [join(root, 'scripts', 'start.mjs'), '--data-dir', data, ...args], {
    env: { PATH: join(root, 'bin'), HOME: root, FAKE_TOUR: tour },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  running = child;
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk: Buffer) => (output += chunk));
  const code = once(child, 'close').then(([it]) => it as number);
  return { child, output: () => output, code };
}

const says = ({ output }: Started, text: string): Promise<void> =>
  eventually(() => expect(output()).toContain(text), 30_000);
/** As a terminal does at Ctrl-C. */
const ctrlC = ({ child }: Started): boolean => process.kill(-(child.pid ?? 0), 'SIGINT');

describe('npm start', () => {
  it.each([
    ['18.20.4', false],
    ['20.18.3', false],
    ['20.19.0', true],
    ['24.1.0', true],
  ])('says how to get another Node.js where that is too old: %s', async (version, isEnough) => {
    put('pretend.cjs', `Object.defineProperty(process.versions, 'node', { value: '${version}' });`);
    const setUp = join(root, 'scripts', 'setup.mjs');
    const { status, stderr } = spawnSync(process.execPath, ['--require', join(root, 'pretend.cjs'), setUp], {
      env: { PATH: join(root, 'bin'), HOME: root },
      encoding: 'utf8',
    });
    expect(status, stderr).toBe(isEnough ? 0 : 1);
    if (!isEnough)
      expect(stderr).toMatch(
        new RegExp(
          `^godwit: Node\\.js 20\\.19 or later is needed, this is ${version}; get it from https://nodejs\\.org, .*\\n$`,
        ),
      );
  });

  it('tells what to try next as the README shows it', async () => {
    data = join(root, '.godwit');
    const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');
    const [shown] = fencedIn(readme, 'Start').filter(({ language }) => language === 'text');
    const first = start('goes well');
    await says(first, 'stops both.');
    expect(first.output()).toContain(`all is well\n\n${shown?.lines.join('\n')}\n`);
    ctrlC(first);
    expect(await first.code).toBe(0);
  });

  it('sets up, and takes a tour the first time; then it goes on, until Ctrl-C', async () => {
    const first = start('goes well');
    for (const command of ['logs guest -f', 'migrate guest', 'console guest']) await says(first, `godwit ${command}`);
    expect(first.output()).toMatch(/^godwit: installing dependencies \(npm ci\)\ngodwit: building\nserving/);
    expect(first.output()).toContain('a tour\nall is well\n');
    ctrlC(first);
    expect(await first.code).toBe(0);

    const second = start('goes well');
    await says(second, 'serving');
    ctrlC(second);
    expect(await second.code, second.output()).toBe(0);
    expect(second.output()).toMatch(/^serving.*\nStopped\.\n$/);
  });

  it('takes the tour again that somebody stopped, and not one that was left out', async () => {
    const first = start('waits');
    await says(first, 'a tour');
    ctrlC(first);
    expect(await first.code).toBe(0);
    expect(first.output()).toContain('the tour was stopped');
    expect(existsSync(join(data, 'tour-begun'))).toBe(true);

    const second = start('waits');
    await says(second, 'a tour');
    second.child.kill('SIGTERM');
    expect(await second.code).toBe(0);

    const third = start('waits', '--no-tour');
    await says(third, 'serving');
    third.child.kill('SIGINT');
    expect(await third.code).toBe(0);
    expect(third.output()).not.toContain('a tour');
    expect(existsSync(join(data, 'tour-begun'))).toBe(false);
  });

  it('goes on where the tour has failed, and does not insist', async () => {
    const first = start('fails');
    await says(first, "godwit tour' takes the tour again");
    expect(first.output()).toContain('godwit: the guest did not boot');
    ctrlC(first);
    expect(await first.code).toBe(0);
    expect(existsSync(join(data, 'tour-begun'))).toBe(false);
  });

  it('ends after the tour where asked to, with its reason where there is one', async () => {
    const good = start('goes well', '--exit-after-tour');
    expect(await good.code).toBe(0);
    expect(good.output()).toMatch(/all is well\nStopped\.\nThe guest goes on; 'npm start' serves it again\.\n$/);
    const bad = start('fails', '--exit-after-tour');
    expect(await bad.code).toBe(1);
    expect(bad.output()).toContain('godwit: the guest did not boot');
    const stopped = start('waits', '--exit-after-tour');
    await says(stopped, 'a tour');
    ctrlC(stopped);
    expect(await stopped.code).toBe(130);
    mkdirSync(data, { recursive: true });
    writeFileSync(join(data, 'broken'), '');
    const broken = start('goes well', '--exit-after-tour');
    expect(await broken.code).toBe(1);
    expect(broken.output()).toContain('godwit: it is broken');
  });

  it('goes on where nobody reads any more what it says', async () => {
    const { child, code } = start('waits');
    child.stdout?.destroy();
    child.stderr?.destroy();
    await eventually(() => expect(existsSync(join(data, 'tour-begun'))).toBe(true), 30_000);
    child.kill('SIGINT');
    expect(await code).toBe(0);
  });

  it('gets the lists of packages where the guest cannot be built without them', async () => {
    put(
      'guest/linux/build.mjs',
      `import { existsSync } from 'node:fs'; process.exit(existsSync('${root}/lists') ? 0 : 1);`,
    );
    put('bin/apt-get', `#!/bin/sh\necho "$1" >> ${root}/lists\n`, 0o755);
    put('bin/sudo', '#!/bin/sh\n[ "$1" = -n ] || exec "$@"\n', 0o755);
    const first = start('goes well', '--exit-after-tour');
    expect(await first.code, first.output()).toBe(0);
    expect(first.output()).toMatch(/\ngodwit: getting the lists of packages \((sudo )?apt-get update\)\nserving/);
    expect(await start('goes well', '--exit-after-tour').code).toBe(0);
    expect(readFileSync(join(root, 'lists'), 'utf8')).toBe('update\n');
  });

  it('has no tour where there are too few nodes, or no guest for it, which it says', async () => {
    const small = start('goes well', '--nodes', '1');
    await says(small, 'serving');
    ctrlC(small);
    expect(await small.code).toBe(0);
    rmSync(data, { recursive: true });
    put('guest/linux/build.mjs', "process.stderr.write('no kernel'); process.exit(1);");
    const none = start('goes well', '--exit-after-tour');
    expect(await none.code).toBe(1);
    expect(none.output()).toContain('there can be no tour: the guest of the examples was not built');
    expect([small.output(), none.output()].join('')).not.toContain('a tour\n');
  });
});
