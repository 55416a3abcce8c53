// The programs of a Kubernetes control plane, built from Kubernetes' own Go module and from etcd's, of the release that it names: with those of
// distributions, which are often older, kube-apiserver refuses what it offers everywhere else.
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ensureGoPrograms, releaseOf } from './go-programs.mjs';
import { root } from './setup.mjs';

const MODULE = join(root, 'test', 'kubernetes', 'control-plane');
const SOURCE = 'k8s.io/kubernetes';

function fail(reason) {
  console.error(`godwit: there can be no Kubernetes control plane here: ${reason}`);
  console.error('godwit: GODWIT_TEST_KUBECONFIG=FILE runs the suites on a cluster that is there already.');
  process.exit(1);
}

/** What the programs say that they are: otherwise they are of no version, and charts that ask for a recent one are refused. */
function versionVariables() {
  const gitVersion = releaseOf(MODULE, SOURCE);
  const [gitMajor, gitMinor] = gitVersion.slice(1).split('.');
  const values = Object.entries({ gitVersion, gitMajor, gitMinor });
  return Object.fromEntries(values.map(([name, value]) => [`k8s.io/component-base/version.${name}`, value]));
}

/** Sees to it that all programs are there, and answers the directory that has them. Ends the process where they cannot be. */
export function ensureKubernetes() {
  return ensureGoPrograms({
    name: 'kubernetes',
    module: MODULE,
    source: SOURCE,
    variables: versionVariables(),
    programs: ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler', 'kubelet', 'etcd'],
    // Go calls a program as the directory that it is in.
    renamed: { server: 'etcd' },
    minutes: 15,
    fail,
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) console.log(ensureKubernetes());
