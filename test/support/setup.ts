import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { configureGlobal } from 'fast-check';
import { afterAll } from 'vitest';
import { IS_FULL, SEED } from './sample.ts';

// One printed seed reproduces a whole run; the full run looks longer.
configureGlobal({ seed: SEED, ...(IS_FULL ? { numRuns: 1000 } : {}) });

// Whatever a file's tests, and the processes that they start, leave in the temporary directory goes with them.
const outer = tmpdir();
const scratch = mkdtempSync(join(outer, 'godwit-test-'));
process.env['TMPDIR'] = scratch;
afterAll(() => {
  process.env['TMPDIR'] = outer;
  rmSync(scratch, { recursive: true, force: true, maxRetries: 3 });
});
