// `npm test`: everything that must hold. `--full` runs every cell of the long tables instead of a sample.
// `npm test -- PATH` runs only the tests below a path, without the checks around them.
import { spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { ensureGuestsCanRun } from './host-packages.mjs';
import { openScratch } from './scratch.mjs';
import { root, run, setUp } from './setup.mjs';

const MINUTE = 60_000;
const isFull = process.argv.includes('--full');
const paths = process.argv.slice(2).filter((argument) => argument !== '--full');
// Continuous integration judges the change, not the luck of a draw; everyone else draws anew.
const seed = process.env.GODWIT_TEST_SEED ?? (process.env.CI ? '1' : String(randomInt(2 ** 31)));
/** Far more than a run takes. What is not over by then never will be: a process that waits for itself has no timeout of its own. */
const longestMs = (isFull ? 120 : 40) * MINUTE;
/** More files than these do not fail for want of luck. */
const MOST_AGAIN = 5;
/** What is drawn from a seed and sees no clock fails alike each time, or it is a fault that it does not. */
const NO_LUCK = /\.(sim|model|property)\.test\.ts$/;

function step(name, file, args) {
  console.log(`== ${name}`);
  run(process.execPath, [join(root, 'node_modules', ...file), ...args]);
}

/** What each file came to, by project and path, and the files that errors outside of tests are of; one of its own is of none. */
function read(progress) {
  const results = new Map();
  let end;
  for (const line of readFileSync(progress, 'utf8').split('\n').filter(Boolean)) {
    const entry = JSON.parse(line);
    if (entry.ended) end = entry;
    else results.set(`${entry.project} ${entry.file}`, entry);
  }
  return { results, errors: end?.errors ?? [''] };
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'];
let isStopped = false;

/** Runs the tests below the paths, in a group of processes that ends as one. */
async function runTests(args, { isAlone = false } = {}) {
  const scratch = openScratch();
  const progress = join(scratch.directory, 'progress');
  writeFileSync(progress, '');
  const reporters = ['default', join(root, 'scripts', 'test-progress.mjs')].map((name) => `--reporter=${name}`);
  const vitest = spawn(
    process.execPath,
    [join(root, 'node_modules', 'vitest', 'vitest.mjs'), 'run', ...reporters, ...args],
    {
      cwd: root,
      stdio: 'inherit',
      detached: true,
      env: {
        ...process.env,
        GODWIT_TEST_SEED: seed,
        GODWIT_TEST_FULL: isFull ? '1' : '',
        GODWIT_TEST_PROGRESS: progress,
        GODWIT_TEST_ALONE: isAlone ? '1' : '',
        // Tests that are cut short clean nothing up themselves.
        TMPDIR: scratch.directory,
        GODWIT_TEST_SCRATCH: scratch.directory,
      },
    },
  );
  const stop = (signal) => {
    isStopped = true;
    process.kill(-vitest.pid, signal);
  };
  for (const signal of SIGNALS) process.on(signal, stop);
  let isCutShort = false;
  const timer = setTimeout(() => {
    isCutShort = true;
    process.kill(-vitest.pid, 'SIGKILL');
  }, longestMs);
  await new Promise((resolve) => vitest.once('exit', resolve));
  clearTimeout(timer);
  for (const signal of SIGNALS) process.off(signal, stop);
  const seen = { ...read(progress), isCutShort };
  await scratch.close();
  return seen;
}

ensureGuestsCanRun();
setUp();
if (paths.length === 0) {
  step('format', ['@biomejs', 'biome', 'bin', 'biome'], ['format', '--error-on-warnings', '.']);
  step('types', ['typescript', 'bin', 'tsc'], ['-p', 'tsconfig.json']);
  step('lint', ['oxlint', 'bin', 'oxlint'], ['--type-aware', '--deny-warnings']);
  step('dead code', ['knip', 'bin', 'knip.js'], ['--no-progress']);
}

console.log(
  `== tests, seed ${seed}${isFull ? ', every cell' : ', long tables sampled'} (repeat with GODWIT_TEST_SEED=${seed})`,
);
let { results, isCutShort, errors } = await runTests(paths);
const wrong = [...results.values()].filter(({ state }) => state !== 'passed');
const suspects = [...wrong.map(({ file }) => file), ...errors.filter((file) => file !== '')];
const names = [...new Set(suspects.map((file) => relative(root, file)))];
const isLuck = names.length > 0 && names.length <= MOST_AGAIN && !names.some((name) => NO_LUCK.test(name));
if (isLuck && !isStopped) {
  // Machines are busy, and guests slow: what fails by itself, too, fails.
  console.log(`== once more, alone: ${names.join(' ')}`);
  const again = await runTests(names, { isAlone: true });
  // A run that was cut short said nothing of errors.
  const own = isCutShort ? [] : errors.filter((file) => file === '');
  errors = [...own, ...again.errors];
  results = new Map([...results, ...again.results]);
}

const all = [...results.values()];
const sum = (name) => all.reduce((total, result) => total + (result[name] ?? 0), 0);
const unfinished = all.filter(({ state, failed }) => state !== 'passed' && !failed);
const failed = sum('failed') + unfinished.length + errors.length;
const unlucky = names.filter((name) =>
  all.every(({ file, state }) => relative(root, file) !== name || state === 'passed'),
);
for (const { file } of unfinished) console.log(`did not run to its end: ${relative(root, file)}`);
if (errors.length > 0) console.log('something outside of the tests failed: see above');
if (unlucky.length > 0) console.log(`failed among others, passed alone: ${unlucky.join(' ')}`);
console.log(`tests: ${sum('passed')} passed, ${failed} failed, ${sum('skipped')} skipped`);
process.exit(failed === 0 && all.length > 0 ? 0 : 1);
