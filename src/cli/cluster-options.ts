import { join } from 'node:path';
import { type Command, Option } from 'commander';
import { defaultDataDirectory } from './data-directory.ts';
import { UserError } from './failure.ts';
import { withKubectlOptions } from './kubectl-options.ts';

/** Options that several commands have, said once. */

/** Adds the options by which a command is told which cluster is meant, but for those of kubectl's that mean something else in it. */
export function withCluster(command: Command, own: readonly string[] = []): Command {
  const placed = command
    .option('--data-dir <directory>', 'the data directory of the cluster')
    .option(
      '--kubeconfig <file>',
      'the cluster (default: that of --data-dir, KUBECONFIG, the default data directory, or ~/.kube/config)',
    )
    .option('--context <context>', 'the context of the kubeconfig (default: the current one)');
  return withKubectlOptions(placed, own);
}

/** The same, for what is in a namespace. */
export function withNamespace(command: Command): Command {
  return withCluster(
    command.option('-n, --namespace <namespace>', 'the namespace that it is in (default: as the kubeconfig has it)'),
  );
}

/** The option for the directory that all of a cluster, or something below it, is kept in on this machine. */
export function dataDirectory(description: string, below = ''): Option {
  const where = `GODWIT_DATA_DIR, or ~/.godwit${below === '' ? '' : `, and there ${below}`}`;
  return new Option('--data-dir <directory>', description).default(join(defaultDataDirectory(), below), where);
}

/** How something can be printed for programs, or with more for people. */
export type OutputFormat = 'json' | 'yaml' | 'wide';

/** Adds `-o`. */
export function withOutput(command: Command, formats: readonly OutputFormat[] = ['json', 'yaml', 'wide']): Command {
  return command.addOption(new Option('-o, --output <format>', 'how to print it').choices(formats));
}

/** Refuses `-o` of what prints for programs only what it would do. */
export function checkOutput({ dryRun, output }: { readonly dryRun?: boolean; readonly output?: OutputFormat }): void {
  if (output !== undefined && dryRun !== true)
    throw new UserError('-o prints what would be done: give --dry-run with it', { exitCode: 2 });
}
