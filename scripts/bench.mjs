// `npm run bench -- NAME`: one JSON line per figure on standard output. Without a name it lists what there is.
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { ensureGuestsCanRun } from './host-packages.mjs';
import { ensureKubernetes } from './kubernetes-programs.mjs';
import { root, run, setUp } from './setup.mjs';

const [name, ...rest] = process.argv.slice(2);
const names = readdirSync(join(root, 'bench'))
  .filter((file) => file.endsWith('.bench.ts'))
  .map((file) => file.replace('.bench.ts', ''));
if (!name || !existsSync(join(root, 'bench', `${name}.bench.ts`))) {
  console.error(`godwit: say which benchmark: npm run bench -- ${names.join(' | ')}`);
  process.exit(2);
}
ensureGuestsCanRun();
setUp();
run(process.execPath, [join(root, 'node_modules', 'typescript', 'bin', 'tsc'), '-p', 'bench']);
const env = name === 'kubernetes' ? { ...process.env, GODWIT_TEST_KUBERNETES: ensureKubernetes() } : process.env;
run(process.execPath, [join(root, 'dist', 'bench', `${name}.bench.js`), ...rest], { env });
