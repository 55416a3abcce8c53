// Brings a clone to the point where it runs: dependencies as the lockfile says, and a build. Quick when there is
// nothing to do. Plain JavaScript on Node's own modules, since it runs before anything is installed.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('..', import.meta.url));
const NODE_MINIMUM = [20, 19];

/** Runs a command in the repository; ends this process with its exit code when it fails. */
export function run(command, args, options = {}) {
  const result = spawnSync(command, args, { cwd: root, stdio: 'inherit', ...options });
  if (result.error) {
    console.error(`godwit: cannot run ${command}: ${result.error.message}`);
    process.exit(1);
  }
  if (result.status !== 0) process.exit(result.status ?? 1);
}

function hash(parts) {
  const digest = createHash('sha256');
  for (const part of parts) digest.update(part).update('\0');
  return digest.digest('hex');
}

function isStamped(file, value) {
  return existsSync(file) && readFileSync(file, 'utf8') === value;
}

function checkNode() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major > NODE_MINIMUM[0] || (major === NODE_MINIMUM[0] && minor >= NODE_MINIMUM[1])) return;
  console.error(
    `godwit: Node.js ${NODE_MINIMUM.join('.')} or later is needed, this is ${process.versions.node}; ` +
      "get it from https://nodejs.org, from your distribution if its package 'nodejs' is new enough, " +
      'from NodeSource (https://github.com/nodesource/distributions) or with nvm (https://github.com/nvm-sh/nvm), and start again',
  );
  process.exit(1);
}

function ensureDependencies() {
  const wanted = hash([readFileSync(join(root, 'package-lock.json')), process.versions.modules]);
  const stamp = join(root, 'node_modules', '.godwit-lock');
  if (isStamped(stamp, wanted)) return;
  console.error('godwit: installing dependencies (npm ci)');
  run('npm', ['ci', '--ignore-scripts', '--no-fund', '--no-audit', '--loglevel=error']);
  writeFileSync(stamp, wanted);
}

function sourcesBelow(directory) {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name))
    .sort();
}

function ensureBuild() {
  const files = [...sourcesBelow(join(root, 'src')), join(root, 'scripts', 'bundle.mjs')];
  const wanted = hash(files.map((file) => `${file} ${statSync(file).mtimeMs}`));
  const stamp = join(root, 'dist', '.stamp');
  if (isStamped(stamp, wanted)) return;
  console.error('godwit: building');
  run(process.execPath, [join(root, 'scripts', 'bundle.mjs'), join('src', 'cli', 'main.ts'), join('dist', 'cli')]);
  // npm leaves a link to it on the PATH, and does not look after it again.
  chmodSync(join(root, 'dist', 'cli', 'main.js'), 0o755);
  writeFileSync(stamp, wanted);
}

/** Installs and builds what is missing or out of date. */
export function setUp() {
  checkNode();
  ensureDependencies();
  ensureBuild();
}

if (process.argv[1] === fileURLToPath(import.meta.url)) setUp();
