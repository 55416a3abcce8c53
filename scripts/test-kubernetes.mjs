// `npm run test:kubernetes`: the suites that speak to a cluster through its API alone, on a real Kubernetes control plane with our
// agents as its nodes. `npm run test:kubernetes -- PATH` runs only what is below a path. On a cluster that is there already
// (GODWIT_TEST_KUBECONFIG) what cannot be shown on it is left out of the whole, by name, and fails with the reason where it is asked for.
// The whole on our own ends with whether our components have used all of their rights.
import { spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { join } from 'node:path';
import { ensureBuildah, ensureContainers } from './container-programs.mjs';
import { ensureHelm } from './helm-program.mjs';
import { ensureGuestsCanRun } from './host-packages.mjs';
import { ensureKubernetes } from './kubernetes-programs.mjs';
import { openScratch } from './scratch.mjs';
import { root, setUp } from './setup.mjs';

const SUITES = ['test/kubernetes', 'test/cluster', 'test/migration', 'test/eviction', 'test/decentralized'];
/** What is judged of all suites together, once they are over. */
const RIGHTS_USED = 'test/kubernetes/rights-used.test.ts';
/** What needs Kubernetes of our own, and why. Whatever else does fails with the reason on another cluster. */
const TWO_CLUSTERS = 'it is about two clusters, and one is given';
const OWN_ALONE = new Map([
  ['test/kubernetes/install/**', 'it plays the hosts of its cluster, whose API server has to reach their pods'],
  ['test/kubernetes/image.test.ts', 'it is about no cluster'],
  [RIGHTS_USED, 'it reads the audit logs of clusters of our own'],
  ['test/kubernetes/kubelets.test.ts', 'its nodes are kubelets of its own'],
  ...['crashes', 'deletions', 'furnished', 'move-to-cluster', 'pairs', 'there-and-back'].map((name) => [
    `test/decentralized/${name}.test.ts`,
    TWO_CLUSTERS,
  ]),
]);

const given = process.argv.slice(2);
const paths = given.length > 0 ? given : SUITES;
const seed = process.env.GODWIT_TEST_SEED ?? (process.env.CI ? '1' : String(randomInt(2 ** 31)));
const other = process.env.GODWIT_TEST_KUBECONFIG;
if (other === undefined && process.getuid() !== 0) {
  console.error(
    'godwit: there can be no Kubernetes control plane here: its hosts are network namespaces, which take root; run it as root.',
  );
  console.error('godwit: GODWIT_TEST_KUBECONFIG=FILE runs the suites on a cluster that is there already.');
  process.exit(1);
}
ensureGuestsCanRun();
setUp();
const programs =
  other === undefined
    ? {
        GODWIT_TEST_KUBERNETES: ensureKubernetes(),
        GODWIT_TEST_HELM: ensureHelm(),
        GODWIT_TEST_CONTAINERS: ensureContainers(),
        GODWIT_TEST_BUILDAH: ensureBuildah(),
      }
    : {};
const leftOut = other === undefined || given.length > 0 ? [] : [...OWN_ALONE];
for (const [path, reason] of leftOut) console.log(`== left out: ${path}: ${reason}`);
console.log(`== on ${other === undefined ? 'Kubernetes of our own' : other}, seed ${seed}`);
const scratch = openScratch();
const isWhole = given.length === 0 && other === undefined;
const rightsUsed = isWhole ? { GODWIT_TEST_RIGHTS_USED: join(scratch.directory, 'rights-used') } : {};
const vitest = join(root, 'node_modules', 'vitest', 'vitest.mjs');

function runTests(paths, without) {
  const { status } = spawnSync(process.execPath, [vitest, 'run', '--project', 'real', ...paths], {
    cwd: root,
    stdio: 'inherit',
    // Tests that are cut short clean nothing up themselves.
    env: {
      ...process.env,
      ...programs,
      ...rightsUsed,
      GODWIT_TEST_SEED: seed,
      GODWIT_TEST_LEFT_OUT: without.join(','),
      TMPDIR: scratch.directory,
      GODWIT_TEST_SCRATCH: scratch.directory,
    },
  });
  return status ?? 1;
}

let status = runTests(paths, [...leftOut.map(([path]) => path), ...(given.includes(RIGHTS_USED) ? [] : [RIGHTS_USED])]);
if (status === 0 && isWhole) {
  console.log('== whether all rights were used');
  status = runTests([RIGHTS_USED], []);
}
await scratch.close();
process.exit(status);
