// `node scripts/bundle.mjs ENTRY DIRECTORY`: puts a program and all it imports of our own into a few files of that directory, which
// holds nothing else. Hundreds of modules would take as long to load as the program takes to start. Packages stay where they are.
import { join } from 'node:path';
import { rolldown } from 'rolldown';
import { root } from './setup.mjs';

const [entry, directory] = process.argv.slice(2);
const program = await rolldown({
  input: join(root, entry),
  platform: 'node',
  external: (id) => /^[^./]/.test(id),
});
await program.write({ dir: join(root, directory), format: 'esm', sourcemap: true, cleanDir: true });
await program.close();
