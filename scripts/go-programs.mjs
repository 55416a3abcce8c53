// Programs of others that are written in Go: built from their own modules, of the releases that a go.mod of ours names, and kept in the
// user's cache, so that only the first run builds. Plain JavaScript on Node's own modules, like all scripts.
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';

const BUILD = ['build', '-mod=readonly'];
const PROGRESS_MS = 20_000;

/** Where the user has what can be made again. */
export const cacheHome = () => process.env.XDG_CACHE_HOME || join(homedir(), '.cache');

/** What is built with: values of variables, by their full names, are told to the linker, as whoever releases a program does it. */
function buildArguments({ variables = {} }) {
  const flags = Object.entries(variables).map(([variable, value]) => `-X ${variable}=${value}`);
  return flags.length === 0 ? BUILD : [...BUILD, '-ldflags', flags.join(' ')];
}

/** One directory for each set of sources and each compiler. */
function programsDirectory(wanted) {
  const { name, module, fail } = wanted;
  const { error, stdout } = spawnSync('go', ['env', 'GOVERSION', 'GOOS', 'GOARCH'], { cwd: module, encoding: 'utf8' });
  if (error) fail(`it is built with Go, which is not installed (${error.message}); see https://go.dev/dl`);
  const digest = createHash('sha256').update(stdout).update(buildArguments(wanted).join(' '));
  for (const file of ['go.mod', 'go.sum']) digest.update(readFileSync(join(module, file))).update('\0');
  return join(cacheHome(), 'godwit', name, digest.digest('hex').slice(0, 16));
}

/** The release of a module that our go.mod names, as `v1.2.3`. */
export function releaseOf(module, source) {
  const lines = readFileSync(join(module, 'go.mod'), 'utf8').split('\n');
  const [, release] = lines.map((line) => line.trim().split(' ')).find(([name]) => name === source) ?? [];
  return release;
}

/** Builds all in one go, which shares most of the work. */
function build(wanted, directory) {
  const { module, source, programs, renamed = {}, minutes, fail } = wanted;
  const release = `${source} ${releaseOf(module, source)}`;
  console.log(`== building ${programs.join(', ')} (${release}; some ${minutes} minutes the first time, on two cores)`);
  const args = [...buildArguments(wanted), '-o', `${directory}/`, 'tool'];
  const progress = progressReport(programs, directory);
  const { status, error } = spawnSync('go', args, {
    cwd: module,
    stdio: 'inherit',
    env: { ...process.env, CGO_ENABLED: '0', GOWORK: 'off' },
  });
  progress.kill();
  if (error) fail(`cannot run go: ${error.message}`);
  if (status !== 0) fail('go build has failed; what it said is above');
  for (const [built, name] of Object.entries(renamed)) renameSync(join(directory, built), join(directory, name));
}

/** Tells every now and then what is done, from a process of its own: this one waits for the compiler. */
function progressReport(programs, directory) {
  const script = `
    const { existsSync } = require('node:fs');
    const startedMs = Date.now();
    setInterval(() => {
      const done = ${JSON.stringify(programs)}.filter((name) => existsSync(${JSON.stringify(directory)} + '/' + name));
      const minutes = ((Date.now() - startedMs) / 60000).toFixed(1);
      console.log('== building for ' + minutes + ' minutes; ' + (done.length ? 'done: ' + done.join(', ') : 'none is done yet'));
    }, ${PROGRESS_MS});`;
  return spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'inherit', 'ignore'] });
}

/**
 * Sees to it that all programs are there, and answers the directory that has them. `module` is where our go.mod is, whose tools they
 * are, and `source` the module that they are of; `variables` are those of theirs that have other values than in their sources, and
 * `renamed` says which are called otherwise than Go does. `fail` ends the process.
 */
export function ensureGoPrograms(wanted) {
  const directory = programsDirectory(wanted);
  if (wanted.programs.every((name) => existsSync(join(directory, name)))) return directory;
  mkdirSync(dirname(directory), { recursive: true });
  const unfinished = `${directory}.unfinished`;
  mkdirSync(unfinished, { recursive: true });
  build(wanted, unfinished);
  rmSync(directory, { recursive: true, force: true });
  renameSync(unfinished, directory);
  return directory;
}
