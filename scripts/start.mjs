// `npm start`: sets up what is missing, then runs `godwit up` with the arguments given after `--`. The first time that a
// data directory is used, `godwit tour` follows.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { ensureHostPackages, updatePackageLists } from './host-packages.mjs';
import { root, setUp } from './setup.mjs';

const HELP = `npm start [-- OPTIONS] starts a cluster on this machine; the first time, a tour follows.

  --no-tour          leave the tour out
  --exit-after-tour  take the tour, even if it is not the first time, and stop; exits with 0 if all went well
                     (virtual machines go on)

All other options are those of 'godwit up':
`;
const GODWIT = 'npx --no-install godwit';
/** How long a tour may take to leave things as they were. */
const TOUR_END_MS = 10_000;
const main = join(root, 'dist', 'cli', 'main.js');

/** What follows an option, or comes after its equals sign. */
function valueOf(args, option) {
  const at = args.findIndex((argument) => argument === option || argument.startsWith(`${option}=`));
  if (at < 0) return undefined;
  return args[at].includes('=') ? args[at].slice(args[at].indexOf('=') + 1) : args[at + 1];
}

function fail(reason, code = 1) {
  console.error(`godwit: ${reason}`);
  process.exit(code);
}

/** The image of the examples. Answers whether there is one now, and what was said about it. */
function buildGuest() {
  const { status, stderr } = spawnSync(process.execPath, [join(root, 'guest', 'linux', 'build.mjs')], {
    encoding: 'utf8',
  });
  return { isBuilt: status === 0, said: stderr.trim() };
}

/** Who cannot build it can still run images of their own. Answers whether it is there. */
function ensureGuest() {
  const first = buildGuest();
  // Lists of packages that are not there, or are old, do not lead to a kernel that can be had.
  const { isBuilt, said } = first.isBuilt || !updatePackageLists() ? first : buildGuest();
  if (!isBuilt) console.error(`godwit: the guest of the examples was not built: ${said}`);
  return isBuilt;
}

// What serves goes on though nobody reads what is said of it any more, as through `head`.
for (const output of [process.stdout, process.stderr]) output.on('error', () => undefined);
const given = process.argv.slice(2);
const args = given.filter((argument) => argument !== '--no-tour' && argument !== '--exit-after-tour');
const isHelp = args.includes('--help') || args.includes('-h');
const exitsAfterTour = given.includes('--exit-after-tour') && !isHelp;
const usualDirectory = join(homedir(), '.godwit');
const dataDirectory = resolve(valueOf(args, '--data-dir') ?? process.env.GODWIT_DATA_DIR ?? usualDirectory);
/** There while a tour was begun and not brought to an end: whoever stops it is taken on it again. */
const begun = join(dataDirectory, 'tour-begun');
const isFirst = !existsSync(join(dataDirectory, 'data')) || existsSync(begun);
const nodes = Number(valueOf(args, '--nodes') ?? 3);
if (exitsAfterTour && given.includes('--no-tour')) fail('--no-tour and --exit-after-tour exclude each other', 2);
if (exitsAfterTour && nodes < 2) fail('a tour needs two nodes or more: leave out --nodes', 2);

setUp();
let hasGuest = false;
if (nodes !== 0 && !isHelp) {
  if (!ensureHostPackages('start again, or start without nodes: npm start -- --nodes 0')) process.exit(1);
  hasGuest = ensureGuest();
}
if (exitsAfterTour && !hasGuest) fail('there can be no tour: the guest of the examples was not built');
const hasTour = exitsAfterTour || (isFirst && !given.includes('--no-tour') && nodes >= 2 && hasGuest);
if (isHelp) console.log(HELP);

/** What to try next, for whoever has seen the tour. */
function suggest() {
  const isUsual = dataDirectory === usualDirectory;
  const cluster = isUsual ? '' : ` --kubeconfig ${join(dataDirectory, 'kubeconfig')}`;
  const directory = isUsual ? '' : ` --data-dir ${dataDirectory}`;
  console.log(`
Godwit goes on serving. In another terminal, in this directory, try:

  ${GODWIT} logs guest -f${cluster}
  ${GODWIT} migrate guest${cluster}
  ${GODWIT} console guest${cluster}

Ctrl-C stops it; the guest goes on, and the next 'npm start' finds it again.
'${GODWIT} down --stop-vms${directory}' stops both.`);
}

const up = spawn(process.execPath, [main, 'up', ...args], { stdio: ['inherit', 'inherit', 'inherit', 'ipc'] });
let tour;
let tourCode;
let isStopping = false;
if (given.includes('--no-tour')) rmSync(begun, { force: true });
const stop = () => {
  isStopping = true;
  tour?.kill('SIGTERM');
  up.kill('SIGTERM');
};
// It says so once it serves.
up.once('message', () => {
  up.disconnect();
  if (!hasTour || isStopping) return;
  console.log();
  writeFileSync(begun, '');
  tour = spawn(process.execPath, [main, 'tour', '--data-dir', dataDirectory], { stdio: 'inherit' });
  tour.on('exit', (code) => {
    tourCode = code ?? 1;
    if (!isStopping) rmSync(begun, { force: true });
    if (exitsAfterTour) up.kill('SIGTERM');
    else if (isStopping) return;
    else if (tourCode === 0) suggest();
    else console.error(`godwit: the cluster goes on; '${GODWIT} tour' takes the tour again`);
  });
});
// The terminal sends Ctrl-C to the children too, who take it well to be told twice; what is sent to this process alone is
// passed on.
process.on('SIGINT', stop);
process.on('SIGTERM', stop);
up.on('exit', (code, signal) => {
  const end = () => {
    const upCode = code ?? (signal ? 1 : 0);
    if (upCode === 0 && exitsAfterTour && tourCode === 0)
      console.log("The guest goes on; 'npm start' serves it again.");
    process.exit(upCode || (exitsAfterTour ? (tourCode ?? 1) : 0));
  };
  if (!tour || tourCode !== undefined) return end();
  isStopping = true;
  tour.once('exit', end);
  tour.kill('SIGTERM');
  setTimeout(() => tour.kill('SIGKILL'), TOUR_END_MS);
});
