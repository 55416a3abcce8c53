import { configureGlobal } from 'fast-check';

// One printed seed reproduces a whole run; the full run looks longer.
const isFull = process.env['GODWIT_TEST_FULL'] === '1';
const seed = Number(process.env['GODWIT_TEST_SEED'] ?? 1);
configureGlobal({ seed, ...(isFull ? { numRuns: 1000 } : {}) });
