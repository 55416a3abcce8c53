import { type ChildProcess, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { Likeness } from '../docs/likeness.ts';
import { type ShownCommand, stepsOf } from '../docs/page.ts';
import { Terminal } from '../docs/terminal.ts';
import { eventually } from '../support/eventually.ts';
import { passageDirectory } from '../support/passage.ts';
import { IS_FULL, sample } from '../support/sample.ts';
import { say } from '../support/say.ts';

/**
 * Somebody who has never seen the project: clones it, starts it, and does what the README says, which must answer what
 * the README shows. Where the tests run as root, the newcomer is nobody in particular, without any rights.
 */

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 });

const root = fileURLToPath(new URL('../..', import.meta.url));
const PATIENCE_MS = 120_000;
const NOBODY = { uid: 54_321, gid: 54_321 };

/** What a terminal does with what is printed. */
// oxlint-disable-next-line no-control-regex -- escape sequences are what is looked for
const BAR_REDRAWN = /\u001b\[1A\u001b\[J {3}\[#/;
const OK_IN_GREEN = '\u001b[32mok\u001b[0m';
const CTRL_C = '\u0003';
// oxlint-disable-next-line no-control-regex -- escape sequences are what is looked for
const ESCAPES = /\u001b\[[\d;]*[A-Za-z]/g;
/** Where the tour is seen: the other of them, too, in a full run. */
const [where, ...elsewhere] = sample(['screen', 'pipe'] as const, 1);

let home = '';
let clone = '';
let newcomer: typeof NOBODY | undefined;
let serving: ChildProcess | undefined;
let shown: readonly ShownCommand[] = [];
let terminal: Terminal;
const likeness = new Likeness();

function sh(command: string, args: readonly string[], cwd: string): void {
  const { status, stderr } = spawnSync(command, args, { cwd, encoding: 'utf8' });
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} failed: ${stderr}`);
}

/** The repository as it would be cloned, if all that is in the work tree were committed. */
function cloneWorkTree(): void {
  sh('git', ['-c', 'safe.directory=*', 'clone', '--quiet', '--no-hardlinks', root, clone], home);
  const listed = (option: string): string[] => {
    const args = ['-c', 'safe.directory=*', 'ls-files', '-z', '--exclude-standard', option];
    return spawnSync('git', args, { cwd: root, encoding: 'utf8' }).stdout.split('\0').filter(Boolean);
  };
  for (const file of [...listed('--modified'), ...listed('--others')]) {
    if (!existsSync(join(root, file))) rmSync(join(clone, file), { force: true });
    else {
      mkdirSync(dirname(join(clone, file)), { recursive: true });
      cpSync(join(root, file), join(clone, file));
    }
  }
}

/** What was downloaded before need not be downloaded again: the same packages would come. */
function lendDownloads(): void {
  const packages = join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'godwit');
  const cache = join(home, '.cache', 'godwit');
  if (existsSync(packages)) cpSync(packages, cache, { recursive: true });
  if (newcomer) sh('chown', ['-R', `${newcomer.uid}:${newcomer.gid}`, home], home);
  // In the full run they are installed anew. Here they are what the lock says, or they are installed all the same: beside
  // them is which lock they were installed from, and whoever starts looks at that.
  if (IS_FULL) return;
  const { status } = spawnSync('cp', ['-al', join(root, 'node_modules'), clone]);
  if (status !== 0) cpSync(join(root, 'node_modules'), join(clone, 'node_modules'), { recursive: true });
}

function environment(): NodeJS.ProcessEnv {
  const { PATH, LANG } = process.env;
  const temporary = join(home, 'tmp');
  return { PATH, LANG, HOME: home, TMPDIR: temporary, KUBECONFIG: join(home, '.godwit', 'kubeconfig') };
}

function qemus(): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        const isQemu = readFileSync(`/proc/${pid}/comm`, 'utf8').startsWith('qemu');
        return isQemu && readlinkSync(`/proc/${pid}/cwd`).startsWith(home);
      } catch {
        // It has just ended.
        return false;
      }
    })
    .map(Number);
}

beforeAll(() => {
  home = passageDirectory();
  clone = join(home, 'godwit');
  mkdirSync(join(home, 'tmp'));
  const isUsable = process.getuid?.() === 0 && spawnSync(process.execPath, ['--version'], NOBODY).status === 0;
  if (isUsable) newcomer = NOBODY;
  if (newcomer) chownSync(home, newcomer.uid, newcomer.gid);
  cloneWorkTree();
  lendDownloads();
  const steps = stepsOf(readFileSync(join(clone, 'README.md'), 'utf8'), 'Start');
  shown = steps.filter((step) => step.kind === 'command');
  const options = { directory: clone, env: environment(), home };
  terminal = new Terminal(newcomer ? { ...options, user: newcomer } : options);
});
afterAll(async () => {
  if (serving?.pid !== undefined && serving.exitCode === null) process.kill(-serving.pid, 'SIGKILL');
  await terminal.typeToEnd('node dist/cli/main.js down');
  for (const pid of qemus()) process.kill(pid, 'SIGKILL');
  rmSync(home, { recursive: true, force: true, maxRetries: 3 });
});

function shownFor(command: string): readonly string[] {
  const found = shown.find((each) => each.command === command);
  if (!found) throw new Error(`the README does not show ${command}`);
  return found.output;
}

/** What is left to read of what a terminal was told; npm turns a wheel there. */
function read(output: string): string {
  return output.replaceAll(ESCAPES, '').replaceAll(/[\r\u2800-\u28ff]/g, '');
}

/** Has somebody else at the port that is usual, unless there is somebody already. */
async function holdUsualPort(): Promise<Server> {
  const server = createServer();
  await new Promise<void>((resolve) => {
    server.once('error', () => resolve());
    server.listen(6443, '127.0.0.1', () => resolve());
  });
  return server;
}

/** Takes the tour to its end; answers what there was to read. */
async function tour(seenAt: 'screen' | 'pipe'): Promise<string> {
  const { code, output } = await terminal.typeToEnd('npm start -- --exit-after-tour', seenAt);
  expect(code, output).toBe(0);
  if (seenAt === 'pipe') expect(output).not.toMatch(ESCAPES);
  else expect([BAR_REDRAWN.test(output), output.includes(OK_IN_GREEN)], output).toEqual([true, true]);
  return read(output);
}

describe('a newcomer', () => {
  it(`starts where the usual port is taken, and sees the tour that the README shows, on a ${where}`, async () => {
    expect(shown[0]?.command).toMatch(/^git clone /);
    const holder = await holdUsualPort();
    const output = await tour(where ?? 'pipe').finally(() => holder.close());
    expect(output).toContain('Port 6443 is taken');
    const end = "Stopped.\nThe guest goes on; 'npm start' serves it again.";
    expect(output).toContain(end);
    expect(likeness.difference(shownFor('npm start'), output.replace(end, '')), output).toBeUndefined();
    expect(qemus()).toHaveLength(1);
  });

  it('starts again, and finds the guest again, which Ctrl-C does not stop', async () => {
    const { child, output, press } = terminal.typeAtScreen('npm start');
    serving = child;
    await eventually(() => expect(output()).toContain('kubectl get nodes'), PATIENCE_MS);
    expect(output()).not.toContain('tour');
    const ended = once(child, 'close');
    press(CTRL_C);
    await ended;
    expect(read(output())).toMatch(/\^CStopped\.\n$/);
    expect(qemus()).toHaveLength(1);
  });

  it('starts in a pipe, and is shown colours on a screen alone, unless they are not wanted', async () => {
    const { child, output } = terminal.type('npm start');
    serving = child;
    await eventually(() => expect(output()).toContain('kubectl get nodes'), PATIENCE_MS);
    const status = 'node dist/cli/main.js status';
    expect((await terminal.typeToEnd(status, 'screen')).output).toMatch(ESCAPES);
    for (const plain of [
      await terminal.typeToEnd(status),
      await terminal.typeToEnd(`NO_COLOR=1 ${status}`, 'screen'),
    ]) {
      expect(plain).toMatchObject({ code: 0, output: expect.stringContaining('3 nodes') });
      expect(plain.output).not.toMatch(ESCAPES);
    }
  });

  it('does what the README says, and sees what it shows', async () => {
    const rest = shown.filter(({ command }) => !/^(git clone|npm start|export) /.test(`${command} `));
    expect(rest.length).toBeGreaterThan(3);
    await terminal.play(rest, likeness).catch(async (error: unknown) => {
      say((await terminal.typeToEnd('kubectl get events,vmim -o wide; kubectl get vmim -o yaml')).output);
      throw error;
    });
  });

  it('stops everything', async () => {
    const { code, output } = await terminal.typeToEnd('npx --no-install godwit down --stop-vms');
    expect(code, output).toBe(0);
    if (serving?.exitCode === null) await once(serving, 'exit');
    expect(serving?.exitCode).toBe(0);
    expect(qemus()).toEqual([]);
  });

  it.each(elsewhere)('takes the tour again, on a %s', async (seenAt) => {
    expect(await tour(seenAt)).toContain('ok  same boot');
  });
});
