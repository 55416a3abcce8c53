// Helm, built from its own Go module: the chart is installed by what admins install it with.
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ensureGoPrograms } from './go-programs.mjs';
import { root } from './setup.mjs';

function fail(reason) {
  console.error(`godwit: there can be no Helm here, which installs the chart: ${reason}`);
  process.exit(1);
}

/** Sees to it that Helm is there, and answers its path. Ends the process where it cannot be. */
export function ensureHelm() {
  const directory = ensureGoPrograms({
    name: 'helm',
    module: join(root, 'test', 'kubernetes', 'helm'),
    source: 'helm.sh/helm/v3',
    programs: ['helm'],
    minutes: 5,
    fail,
  });
  return join(directory, 'helm');
}

if (process.argv[1] === fileURLToPath(import.meta.url)) console.log(ensureHelm());
