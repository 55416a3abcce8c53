import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseAllDocuments } from 'yaml';
import type { KubeObject } from '../../api/meta.ts';
import type { Env } from '../../env/ports.ts';
import { sharedAbortController } from '../../kube/abort.ts';
import { withCluster } from '../cluster-connection.ts';
import { holderOf } from '../data-directory.ts';
import { UserError } from '../failure.ts';
import { PACKAGE_ROOT } from '../package-root.ts';
import { inkFor, LineScreen, TerminalScreen } from './screen.ts';
import { Tour } from './tour.ts';

/** `godwit tour`. */

export interface TourCommandOptions {
  readonly dataDir: string;
}

/** Where it is shown, and how people stop it. */
export interface TourTerminal {
  readonly output: NodeJS.WriteStream;
  /** Aborts when they do. */
  readonly interrupted: AbortSignal;
}

const EXAMPLE = 'examples/vm.yaml';
const INTERRUPTED = 130;

/** Takes whoever watches on a tour through the cluster of a data directory. Rejects with what went wrong. */
export async function tour(
  { dataDir }: TourCommandOptions,
  env: Env,
  print: (line: string) => void,
  { output, interrupted }: TourTerminal,
): Promise<void> {
  const dataDirectory = resolve(dataDir);
  if (!holderOf(dataDirectory)?.url)
    throw new UserError(
      `nothing serves ${dataDirectory}; start it with 'godwit up', or say with --data-dir where it is`,
    );
  const screen = output.isTTY ? new TerminalScreen(output) : new LineScreen(print);
  const ink = inkFor(output, process.env);
  const stopping = sharedAbortController();
  interrupted.addEventListener('abort', () => stopping.abort());
  const kubeconfig = join(dataDirectory, 'kubeconfig');
  await withCluster({ kubeconfig, namespace: 'default' }, env, async (connection) => {
    try {
      await new Tour({ connection, env, dataDirectory, screen, ink, example: exampleOf() }).run(stopping.signal);
    } catch (error) {
      if (interrupted.aborted) throw new UserError('the tour was stopped', { exitCode: INTERRUPTED, cause: error });
      throw error;
    }
  });
}

/** The first example, as it is beside this program. */
function exampleOf(): { readonly file: string; readonly objects: readonly KubeObject[]; readonly machine: string } {
  const path = fileURLToPath(new URL(EXAMPLE, PACKAGE_ROOT));
  const objects = parseAllDocuments(readFileSync(path, 'utf8')).map((each) => each.toJS() as KubeObject);
  const machine = objects.find(({ kind }) => kind === 'VirtualMachine')?.metadata.name ?? '';
  return { file: EXAMPLE, objects, machine };
}
