import { readdirSync } from 'node:fs';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { defineConfig } from 'vitest/config';

/** What takes minutes. It goes first, so that it does not come last when everything else is over. */
const LONG = [
  'right-to-run.model.test.ts',
  'images.model.test.ts',
  'restored.model.test.ts',
  'across.model.test.ts',
  'swarm.sim.test.ts',
  'planted-bugs.sim.test.ts',
  'decentralized/crashes.test.ts',
  'decentralized/deletions.test.ts',
  'newcomer.test.ts',
  'tutorials.test.ts',
];
const [PURE, REAL] = ['pure', 'real'];
/**
 * What is tried once more with two migrations for each move, to another namespace and back. The few tests that mean nothing then are left
 * out where they are, with the reason. All of it in a full run, otherwise one file, by the run's seed.
 */
const PAIRED = readdirSync(new URL('test/migration', import.meta.url))
  .filter((name) => name.endsWith('.test.ts'))
  .toSorted()
  .map((name) => `test/migration/${name}`);
/** What only `npm run test:kubernetes` can show. */
const KUBERNETES = 'test/kubernetes/**';
const isGiven = process.env['GODWIT_TEST_KUBECONFIG'] !== undefined;
const isOnKubernetes = isGiven || (process.env['GODWIT_TEST_KUBERNETES'] ?? '') !== '';
/** What is to run alone runs so: a cluster that is given is used by one file at a time. */
const isAlone = isGiven || process.env['GODWIT_TEST_ALONE'] === '1';
const leftOut = (process.env['GODWIT_TEST_LEFT_OUT'] ?? '').split(',').filter((path) => path !== '');
const isFull = process.env['GODWIT_TEST_FULL'] === '1';
const drawn = PAIRED[Number(process.env['GODWIT_TEST_SEED'] ?? 1) % PAIRED.length] ?? '';
/** Whole clusters in one thread, what dies in the middle of a write, and what changes something of its process. */
const APART = [
  'src/**/*.sim.test.ts',
  'src/**/*.crash.test.ts',
  'src/**/*.model.test.ts',
  'src/env/real*.test.ts',
  'src/node/migrations/socket-relays.test.ts',
];

/** What is pure is short, and comes last: it fills what the others leave. What shares processes comes in a row, so that it can. */
class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId, project }: TestSpecification): number =>
      LONG.some((name) => moduleId.endsWith(`/${name}`)) ? 0 : 1 + [REAL, PURE].indexOf(project.name) + 1;
    return (await super.sort(files)).toSorted((one, other) => rank(one) - rank(other));
  }
}

export default defineConfig({
  test: {
    setupFiles: ['test/support/setup.ts'],
    // What the command line says of this, of workers and of what is left out does not reach projects. Where each file has a whole
    // control plane more to carry, it has more time.
    testTimeout: isOnKubernetes ? 300_000 : 60_000,
    hookTimeout: isOnKubernetes ? 600_000 : 120_000,
    // Twice the two cores: tests of real processes wait for most of their time.
    maxWorkers: isAlone ? 1 : 4,
    sequence: { sequencer: LongFirst },
    projects: [
      { extends: true, test: { name: 'apart', include: APART } },
      {
        extends: true,
        test: { name: 'paired', include: isFull ? PAIRED : [drawn], env: { GODWIT_TEST_PAIRED: '1' } },
      },
      // Nothing in the house is ambient, so that files can share a process, and all that was loaded there.
      {
        extends: true,
        test: {
          name: REAL,
          include: ['test/**/*.test.ts'],
          exclude: isOnKubernetes ? leftOut : [KUBERNETES],
          isolate: false,
        },
      },
      { extends: true, test: { name: PURE, include: ['src/**/*.test.ts'], exclude: APART, isolate: false } },
    ],
  },
});
