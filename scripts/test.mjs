// `npm test`: everything that must hold. `--full` runs every cell of the long tables instead of a sample.
// `npm test -- PATH` runs only the tests below a path, without the checks around them.
import { spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root, run, setUp } from './setup.mjs';

const isFull = process.argv.includes('--full');
const paths = process.argv.slice(2).filter((argument) => argument !== '--full');
// Continuous integration judges the change, not the luck of a draw; everyone else draws anew.
const seed = process.env.GODWIT_TEST_SEED ?? (process.env.CI ? '1' : String(randomInt(2 ** 31)));

function step(name, file, args) {
  console.log(`== ${name}`);
  run(process.execPath, [join(root, 'node_modules', ...file), ...args]);
}

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
const scratch = mkdtempSync(join(tmpdir(), 'godwit-test-'));
const report = join(scratch, 'report.json');
const result = spawnSync(
  process.execPath,
  [
    join(root, 'node_modules', 'vitest', 'vitest.mjs'),
    'run',
    '--reporter=default',
    '--reporter=json',
    `--outputFile.json=${report}`,
    ...paths,
  ],
  {
    cwd: root,
    stdio: 'inherit',
    env: {
      ...process.env,
      GODWIT_TEST_SEED: seed,
      GODWIT_TEST_FULL: isFull ? '1' : '',
      // Tests that are cut short clean nothing up themselves.
      TMPDIR: scratch,
    },
  },
);
let failed = 1;
try {
  const { numPassedTests, numFailedTests, numFailedTestSuites, numPendingTests } = JSON.parse(
    readFileSync(report, 'utf8'),
  );
  failed = numFailedTests + (numFailedTests === 0 ? numFailedTestSuites : 0);
  if (result.status !== 0 && failed === 0) failed = 1;
  console.log(`tests: ${numPassedTests} passed, ${failed} failed, ${numPendingTests} skipped`);
} catch (error) {
  console.error(`godwit: the test run left no report: ${error.message}`);
}
rmSync(scratch, { recursive: true, force: true });
process.exit(result.status === 0 && failed === 0 ? 0 : 1);
