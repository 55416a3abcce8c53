// The programs of a Kubernetes control plane: etcd as Debian has it, the others built from Kubernetes' own Go module. They are kept
// in the user's cache, so that only the first run builds. Plain JavaScript on Node's own modules, like all scripts.
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { root } from './setup.mjs';

const MODULE = join(root, 'test', 'kubernetes', 'control-plane');
const BUILT = ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler', 'kubelet'];
const BUILD = ['build', '-mod=readonly'];
const ETCD_PACKAGE = 'etcd-server';
const PROGRESS_MS = 20_000;

function fail(reason) {
  console.error(`godwit: there can be no Kubernetes control plane here: ${reason}`);
  console.error('godwit: GODWIT_TEST_KUBECONFIG=FILE runs the suites on a cluster that is there already.');
  process.exit(1);
}

function output(command, args, options = {}) {
  const { status, stdout, stderr, error } = spawnSync(command, args, { encoding: 'utf8', ...options });
  if (error || status !== 0) fail(`${[command, ...args].join(' ')}: ${error?.message ?? stderr.trim().slice(-2000)}`);
  return stdout.trim();
}

const cacheHome = () => process.env.XDG_CACHE_HOME || join(homedir(), '.cache');

/** One directory for each set of sources and each compiler. */
function programsDirectory() {
  const { error, stdout } = spawnSync('go', ['env', 'GOVERSION', 'GOOS', 'GOARCH'], { cwd: MODULE, encoding: 'utf8' });
  if (error) fail(`it is built with Go, which is not installed (${error.message}); see https://go.dev/dl`);
  const digest = createHash('sha256').update(stdout).update(BUILD.join(' '));
  for (const file of ['go.mod', 'go.sum']) digest.update(readFileSync(join(MODULE, file))).update('\0');
  return join(cacheHome(), 'godwit', 'kubernetes', digest.digest('hex').slice(0, 16));
}

const releaseIn = (text) => /k8s\.io\/kubernetes (v\S+)/.exec(text)?.[1] ?? '';

/** Builds all in one go, which shares most of the work. */
function build(directory) {
  const release = releaseIn(readFileSync(join(MODULE, 'go.mod'), 'utf8'));
  console.log(`== building ${BUILT.join(', ')} ${release} (some 15 minutes the first time, on two cores)`);
  const args = [...BUILD, '-o', `${directory}/`, 'tool'];
  const progress = progressReport(directory);
  const { status, error } = spawnSync('go', args, {
    cwd: MODULE,
    stdio: 'inherit',
    env: { ...process.env, CGO_ENABLED: '0', GOWORK: 'off' },
  });
  progress.kill();
  if (error) fail(`cannot run go: ${error.message}`);
  if (status !== 0) fail('go build has failed; what it said is above');
}

/** Tells every now and then what is done, from a process of its own: this one waits for the compiler. */
function progressReport(directory) {
  const script = `
    const { existsSync } = require('node:fs');
    const startedMs = Date.now();
    setInterval(() => {
      const done = ${JSON.stringify(BUILT)}.filter((name) => existsSync(${JSON.stringify(directory)} + '/' + name));
      const minutes = ((Date.now() - startedMs) / 60000).toFixed(1);
      console.log('== building for ' + minutes + ' minutes; ' + (done.length ? 'done: ' + done.join(', ') : 'none is done yet'));
    }, ${PROGRESS_MS});`;
  return spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'inherit', 'ignore'] });
}

/** The one that is installed, or out of Debian's package, which is taken apart and not installed: nothing is to be started. */
function provideEtcd(directory) {
  const installed = spawnSync('sh', ['-c', 'command -v etcd'], { encoding: 'utf8' });
  if (installed.status === 0) {
    copyFileSync(installed.stdout.trim(), join(directory, 'etcd'));
    return;
  }
  if (spawnSync('sh', ['-c', 'command -v apt-get dpkg-deb'], { stdio: 'ignore' }).status !== 0)
    fail('there is no etcd, and no apt-get to take it from Debian with');
  console.log(`== getting etcd (Debian's ${ETCD_PACKAGE})`);
  const below = mkdtempSync(join(directory, 'etcd-'));
  output('apt-get', ['download', '-qq', ETCD_PACKAGE], { cwd: below });
  const [archive] = readdirSync(below).filter((name) => name.endsWith('.deb'));
  output('dpkg-deb', ['-x', archive, '.'], { cwd: below });
  renameSync(join(below, 'usr', 'bin', 'etcd'), join(directory, 'etcd'));
  rmSync(below, { recursive: true });
}

/** Sees to it that all programs are there, and answers the directory that has them. Ends the process where they cannot be. */
export function ensureKubernetes() {
  const directory = programsDirectory();
  if ([...BUILT, 'etcd'].every((name) => existsSync(join(directory, name)))) return directory;
  mkdirSync(dirname(directory), { recursive: true });
  const unfinished = `${directory}.unfinished`;
  mkdirSync(unfinished, { recursive: true });
  if (!existsSync(join(unfinished, 'etcd'))) provideEtcd(unfinished);
  build(unfinished);
  rmSync(directory, { recursive: true, force: true });
  renameSync(unfinished, directory);
  return directory;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) console.log(ensureKubernetes());
