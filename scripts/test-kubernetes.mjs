// `npm run test:kubernetes`: the suites that speak to a cluster through its API alone, on a real Kubernetes control plane with our
// agents as its nodes. `npm run test:kubernetes -- PATH` runs only what is below a path.
import { spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { join } from 'node:path';
import { ensureHelm } from './helm-program.mjs';
import { ensureGuestsCanRun } from './host-packages.mjs';
import { ensureKubernetes } from './kubernetes-programs.mjs';
import { openScratch } from './scratch.mjs';
import { root, setUp } from './setup.mjs';

const SUITES = ['test/kubernetes', 'test/cluster', 'test/migration', 'test/eviction', 'test/decentralized'];
/** Plays a cluster's hosts itself, so that it needs a cluster of its own. */
const INSTALL = 'test/kubernetes/install';
/** The machine has a whole control plane more to carry for each file than in other runs. */
const LIMITS = ['--testTimeout=300000', '--hookTimeout=600000'];

const given = process.argv.slice(2);
const paths = given.length > 0 ? given : SUITES;
const seed = process.env.GODWIT_TEST_SEED ?? (process.env.CI ? '1' : String(randomInt(2 ** 31)));
ensureGuestsCanRun();
setUp();
const other = process.env.GODWIT_TEST_KUBECONFIG;
// A cluster that is there already is used by one file at a time.
const workers = other === undefined ? 2 : 1;
const programs =
  other === undefined ? { GODWIT_TEST_KUBERNETES: ensureKubernetes(), GODWIT_TEST_HELM: ensureHelm() } : {};
const leftOut = other === undefined ? [] : [`--exclude=${INSTALL}/**`];
if (leftOut.length > 0) console.log(`== left out: ${INSTALL}, which is for Kubernetes of our own`);
console.log(`== on ${other === undefined ? 'Kubernetes of our own' : other}, seed ${seed}`);
const scratch = openScratch();
const vitest = join(root, 'node_modules', 'vitest', 'vitest.mjs');
const { status } = spawnSync(
  process.execPath,
  [vitest, 'run', '--project', 'real', `--maxWorkers=${workers}`, ...LIMITS, ...leftOut, ...paths],
  {
    cwd: root,
    stdio: 'inherit',
    // Tests that are cut short clean nothing up themselves.
    env: {
      ...process.env,
      ...programs,
      GODWIT_TEST_SEED: seed,
      TMPDIR: scratch.directory,
    },
  },
);
await scratch.close();
process.exit(status ?? 1);
