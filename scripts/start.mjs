// `npm start`: sets up what is missing, then runs `godwit up` with the arguments given after `--`.
import { spawn, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { ensureHostPackages } from './host-packages.mjs';
import { root, setUp } from './setup.mjs';

/** The image of the examples. Who cannot build it can still run images of their own. */
function buildGuest() {
  const { status, stderr } = spawnSync(process.execPath, [join(root, 'guest', 'linux', 'build.mjs')], {
    encoding: 'utf8',
  });
  if (status !== 0) console.error(`godwit: the guest of the examples was not built: ${stderr.trim()}`);
}

const args = process.argv.slice(2);
setUp();
const nodesAt = args.findIndex((argument) => argument === '--nodes' || argument.startsWith('--nodes='));
const nodes = nodesAt < 0 ? undefined : (args[nodesAt].split('=')[1] ?? args[nodesAt + 1]);
if (nodes !== '0') {
  if (!ensureHostPackages()) process.exit(1);
  buildGuest();
}
const child = spawn(process.execPath, [join(root, 'dist', 'cli', 'main.js'), 'up', ...args], { stdio: 'inherit' });
// The terminal sends Ctrl-C to the child too; what is sent to this process alone is passed on.
process.on('SIGINT', () => undefined);
process.on('SIGTERM', () => child.kill('SIGTERM'));
child.on('exit', (code, signal) => process.exit(code ?? (signal ? 1 : 0)));
