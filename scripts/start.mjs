// `npm start`: sets up what is missing, then runs `godwit up` with the arguments given after `--`.
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { root, setUp } from './setup.mjs';

setUp();
const child = spawn(process.execPath, [join(root, 'dist', 'cli', 'main.js'), 'up', ...process.argv.slice(2)], {
  stdio: 'inherit',
});
// The terminal sends Ctrl-C to the child too; what is sent to this process alone is passed on.
process.on('SIGINT', () => undefined);
process.on('SIGTERM', () => child.kill('SIGTERM'));
child.on('exit', (code, signal) => process.exit(code ?? (signal ? 1 : 0)));
