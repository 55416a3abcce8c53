// The programs of a Kubernetes control plane: etcd as Debian has it, the others built from Kubernetes' own Go module.
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { unpackPackages } from './debian-packages.mjs';
import { ensureGoPrograms, releaseOf } from './go-programs.mjs';
import { root } from './setup.mjs';

const ETCD_PACKAGE = 'etcd-server';
const MODULE = join(root, 'test', 'kubernetes', 'control-plane');
const SOURCE = 'k8s.io/kubernetes';

function fail(reason) {
  console.error(`godwit: there can be no Kubernetes control plane here: ${reason}`);
  console.error('godwit: GODWIT_TEST_KUBECONFIG=FILE runs the suites on a cluster that is there already.');
  process.exit(1);
}

/** The one that is installed, or that of Debian's package. */
function provideEtcd(directory) {
  const installed = spawnSync('sh', ['-c', 'command -v etcd'], { encoding: 'utf8' });
  if (installed.status === 0) {
    copyFileSync(installed.stdout.trim(), join(directory, 'etcd'));
    return;
  }
  const below = mkdtempSync(join(directory, 'etcd-'));
  unpackPackages([ETCD_PACKAGE], below, fail);
  renameSync(join(below, 'usr', 'bin', 'etcd'), join(directory, 'etcd'));
  rmSync(below, { recursive: true });
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
    programs: ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler', 'kubelet'],
    minutes: 15,
    others: ['etcd'],
    provide: provideEtcd,
    fail,
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) console.log(ensureKubernetes());
