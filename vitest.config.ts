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
const isOnKubernetes = (process.env['GODWIT_TEST_KUBERNETES'] ?? process.env['GODWIT_TEST_KUBECONFIG'] ?? '') !== '';
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
    testTimeout: 60_000,
    hookTimeout: 120_000,
    // Twice the two cores: tests of real processes wait for most of their time. (What the command line says does not reach projects.)
    maxWorkers: process.env['GODWIT_TEST_ALONE'] === '1' ? 1 : 4,
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
          exclude: isOnKubernetes ? [] : [KUBERNETES],
          isolate: false,
        },
      },
      { extends: true, test: { name: PURE, include: ['src/**/*.test.ts'], exclude: APART, isolate: false } },
    ],
  },
});
